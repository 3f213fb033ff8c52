//! The text form of an array: its tree, and every buffer's role, address and size. Nothing waits or is copied.

use core::fmt::{self, Write};

use crate::device::device_name;
use crate::error::Report;
use crate::memory::Event;
use crate::tree::{Array, role_name};
use crate::types::Role;

impl Array {
    /// Writes the array as lines: a node, its buffers, then its children one step further in.
    pub fn to_text(&self, out: &mut impl Write) -> fmt::Result {
        let device = self.tree().device();
        for i in 0..self.n_nodes() {
            let mut quiet = Report::silent();
            let Ok(info) = self.node_info(i, &mut quiet) else { continue };
            let depth = self.depth(i);
            let Some(ty) = self.tree().ty().at(self.node().saturating_add(i)) else { continue };
            indent(out, depth)?;
            if ty.root_node().is_dictionary && i != 0 {
                out.write_str("<dictionary> ")?;
            }
            ty.to_text(out)?;
            write!(out, "  length {}", info.length)?;
            if info.offset != 0 {
                write!(out, ", offset {}", info.offset)?;
            }
            match info.null_count {
                -1 => out.write_str(", nulls unknown")?,
                nulls => write!(out, ", nulls {nulls}")?,
            }
            if i == 0 {
                write!(out, ", device {}({})", device_name(device.r#type), device.id)?;
                if device_name(device.r#type) == "device" {
                    write!(out, " of type {}", device.r#type)?;
                }
                if self.tree().place().event != Event::NONE {
                    out.write_str(", event pending or done")?;
                }
            }
            out.write_char('\n')?;
            for k in info.first_buffer..info.first_buffer.saturating_add(info.n_buffers) {
                let Ok(buffer) = self.buffer_info(k, &mut quiet) else { continue };
                indent(out, depth.saturating_add(1))?;
                let role = ROLES.iter().find(|role| **role as i32 == buffer.role);
                write!(out, "[{k}] {}", role_name(role.copied().unwrap_or(Role::Data)))?;
                match (buffer.data.is_null(), buffer.size_bytes) {
                    (true, _) => out.write_str(" NULL")?,
                    (false, -1) => write!(out, " {:p}, size unknown", buffer.data)?,
                    (false, size) => write!(out, " {:p}, {size} bytes", buffer.data)?,
                }
                out.write_char('\n')?;
            }
        }
        Ok(())
    }

    fn depth(&self, i: usize) -> usize {
        let (ty, mut depth) = (self.tree().ty(), 0usize);
        let mut node = self.node().saturating_add(i);
        while node != self.node() {
            let Some(above) = ty.node(node).and_then(|n| (n.parent as usize).checked_sub(ty.base())) else {
                break;
            };
            node = above;
            depth = depth.saturating_add(1);
        }
        depth
    }
}

const ROLES: [Role; 8] = [
    Role::Validity,
    Role::Offsets,
    Role::Sizes,
    Role::TypeIds,
    Role::Views,
    Role::Data,
    Role::Variadic,
    Role::VariadicSizes,
];

fn indent(out: &mut impl Write, depth: usize) -> fmt::Result {
    for _ in 0..depth {
        out.write_str("  ")?;
    }
    Ok(())
}
