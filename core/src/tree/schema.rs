//! A type as an `ArrowSchema` tree in one block, which keeps the type alive for its strings.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;
use std::alloc::Layout;

use super::release::{BlockNode, release_in_place};
use crate::abi::ArrowSchema;
use crate::error::{Report, Result};
use crate::memory::Plan;
use crate::memory::counts::{self, take_off};
use crate::types::Type;

#[repr(C)]
pub(super) struct SchemaNode {
    schema: ArrowSchema,
    block: *mut Block,
    end: *mut SchemaNode,
}

struct Block {
    live: AtomicUsize,
    layout: Layout,
    ty: ManuallyDrop<Type>,
}

impl BlockNode<ArrowSchema> for SchemaNode {
    const RELEASE: unsafe extern "C" fn(*mut ArrowSchema) = release_schema;
    fn structure(node: *mut Self) -> *mut ArrowSchema {
        node.cast()
    }
    unsafe fn end(node: *mut Self) -> *mut Self {
        // SAFETY: as the caller promises.
        unsafe { (*node).end }
    }
    unsafe fn let_go(_: *mut Self, _: *mut Self) {}
}

/// A live `ArrowSchema` of ours, released when it is dropped.
#[derive(Debug)]
pub struct ExportedSchema(ArrowSchema);

impl ExportedSchema {
    /// The struct, which the caller now owns and must release.
    pub fn into_raw(self) -> ArrowSchema {
        // SAFETY: the struct is moved out bit by bit, as the interface allows, and the original is forgotten.
        unsafe { core::ptr::read(&ManuallyDrop::new(self).0) }
    }
}

impl Drop for ExportedSchema {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the struct is live and ours.
            unsafe { release(&mut self.0) };
        }
    }
}

/// The type as a tree of schemas: one allocation, names never NULL.
pub fn export_schema(ty: &Type, report: &mut Report<'_>) -> Result<ExportedSchema> {
    let n_nodes = ty.n_nodes();
    let mut plan = Plan::starting_with::<Block>();
    let nodes_at = plan.array::<SchemaNode>(n_nodes);
    let links_at = plan.array::<*mut ArrowSchema>(n_nodes);
    let (memory, layout) = plan.allocate(report)?;
    let block: NonNull<Block> = memory.cast();
    let first = ty.base();
    let texts = ty.texts();
    // SAFETY: the plan made room for the block, for a node a type node and for a link a child.
    unsafe {
        block.write(Block { live: AtomicUsize::new(n_nodes), layout, ty: ManuallyDrop::new(ty.clone()) });
        let nodes: *mut SchemaNode = memory.as_ptr().add(nodes_at).cast();
        let mut links: *mut *mut ArrowSchema = memory.as_ptr().add(links_at).cast();
        let at = |absolute: u32| nodes.add((absolute as usize).wrapping_sub(first));
        let mut own = nodes;
        for node in ty.nodes() {
            let mut children = core::ptr::null_mut();
            if node.n_children != 0 {
                children = links;
                for child in ty.children_of(node) {
                    links.write(SchemaNode::structure(at(*child)));
                    links = links.add(1);
                }
            }
            let dictionary = if node.has_dictionary() {
                SchemaNode::structure(at(node.dictionary))
            } else {
                core::ptr::null_mut()
            };
            own.write(SchemaNode {
                schema: ArrowSchema {
                    format: texts.format_ptr(node),
                    name: texts.name_ptr(node),
                    metadata: texts.metadata_ptr(node),
                    flags: node.flags,
                    n_children: i64::from(node.n_children),
                    children,
                    dictionary,
                    release: Some(release_schema),
                    private_data: own.cast::<c_void>(),
                },
                block: block.as_ptr(),
                end: at(node.subtree_end),
            });
            own = own.add(1);
        }
        counts::BLOCKS.add();
        Ok(ExportedSchema(core::ptr::read(&raw const (*nodes).schema)))
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: a consumer calls this with a live struct of ours, wherever it was moved.
    unsafe {
        if schema.is_null() || (*schema).release.is_none() {
            return;
        }
        let node: *mut SchemaNode = (*schema).private_data.cast();
        let block = (*node).block;
        let released = release_in_place::<ArrowSchema, SchemaNode>(schema);
        if take_off(&(*block).live, released) {
            let layout = (*block).layout;
            ManuallyDrop::drop(&mut (*block).ty);
            counts::BLOCKS.remove();
            std::alloc::dealloc(block.cast(), layout);
        }
    }
}
