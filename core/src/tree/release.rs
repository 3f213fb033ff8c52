//! The one release path: how a node of an exported block is released, in its place or moved out of it.

use core::ffi::c_void;

use super::export::ExportNode;
use super::schema::SchemaNode;
use crate::abi::{ArrowArray, ArrowSchema};
use crate::memory::scope;

/// What arrays and schemas have in common.
pub(super) trait CStruct: Sized {
    /// The release callback; `None` when released.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
    /// The producer's own.
    fn private_data(&self) -> *mut c_void;
}

impl CStruct for ArrowArray {
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.release
    }
    fn private_data(&self) -> *mut c_void {
        self.private_data
    }
}

impl CStruct for ArrowSchema {
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.release
    }
    fn private_data(&self) -> *mut c_void {
        self.private_data
    }
}

/// A node of a block: its struct, and where its descendants end. Nodes lie in preorder.
pub(super) trait BlockNode<S: CStruct>: Sized {
    /// The release function of this kind of node.
    const RELEASE: unsafe extern "C" fn(*mut S);
    /// The struct. The root's is the caller's, and this one is not used.
    fn structure(node: *mut Self) -> *mut S;
    /// The node after the last descendant.
    ///
    /// # Safety
    /// `node` lies in a live block.
    unsafe fn end(node: *mut Self) -> *mut Self;
    /// Lets go of what the nodes from `from` up to `end` hold themselves.
    ///
    /// # Safety
    /// There is at least one, and they lie in a live block and were not let go before.
    unsafe fn let_go(from: *mut Self, end: *mut Self);
}

/// Releases `structure` and its descendants that are still in their places, and returns how many nodes that were.
///
/// A descendant whose release is NULL was moved out and lives on with all below it. Anything else that is not the
/// node's own struct was put there by a consumer, and is called.
///
/// # Safety
/// `structure` is a live struct whose private data is a node of a live block.
pub(super) unsafe fn release_in_place<S: CStruct, N: BlockNode<S>>(structure: *mut S) -> usize {
    // SAFETY: as the caller promises; nodes lie one after the other up to the node's end.
    unsafe {
        let node: *mut N = (*structure).private_data().cast();
        let end = N::end(node);
        *(*structure).release() = None;
        let mut released: usize = 1;
        // What was found in its place is let go a run at a time.
        let (mut from, mut next) = (node, node.add(1));
        while next < end {
            let child = N::structure(next);
            let release = *(*child).release();
            let own = release.is_some_and(|f| f as usize == N::RELEASE as usize);
            if own && (*child).private_data() == next.cast() {
                *(*child).release() = None;
                released = released.wrapping_add(1);
                next = next.add(1);
                continue;
            }
            if from < next {
                N::let_go(from, next);
            }
            if let Some(release) = release {
                call(child, release, own);
            }
            next = N::end(next);
            from = next;
        }
        if from < next {
            N::let_go(from, next);
        }
        released
    }
}

/// Calls a release callback: our own as it is, a foreign one inside the callback scope. One that the scope skips is leaked,
/// and the struct is released all the same.
unsafe fn call<S: CStruct>(structure: *mut S, release: unsafe extern "C" fn(*mut S), own: bool) {
    // SAFETY: the caller has a live struct, whose release takes the struct itself.
    unsafe {
        if own {
            release(structure);
        } else if !scope::run(|| release(structure)) {
            *(*structure).release() = None;
        }
    }
}

/// Releases an array that is live; a released one is left alone.
///
/// # Safety
/// `array` leads to a live or released struct.
pub unsafe fn release_array_struct(array: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(release) = (*array).release {
            call(array, release, release as usize == ExportNode::RELEASE as *const () as usize);
        }
    }
}

/// Releases a schema that is live; a released one is left alone.
///
/// # Safety
/// `schema` leads to a live or released struct.
pub unsafe fn release_schema_struct(schema: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(release) = (*schema).release {
            call(schema, release, release as usize == SchemaNode::RELEASE as *const () as usize);
        }
    }
}
