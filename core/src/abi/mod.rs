//! The foreign structs, byte for byte, and views that read them.
//!
//! The layouts are those of the Arrow C Data, Stream, Device and asynchronous interfaces (`abi.h`) and of DLPack 1.3.
//! Nothing here owns anything: ownership lives in `memory` and `tree`.

mod arrow;
mod device;
mod dlpack;
mod streams;
mod view;

pub use arrow::*;
pub use device::*;
pub use dlpack::*;
pub use streams::{RawArray, RawStream, WholeArray};
pub use view::*;
