//! DLPack tensors, both ways: arrays and buffers as tensors, tensors as arrays, legacy and versioned; and every rule that
//! a tensor's struct can break.

mod check;
mod element;
mod export;
mod ffi;
mod import;
mod legacy;
mod made;
mod shape_text;
mod view;

pub use check::check_tensor;
pub use export::{TensorOptions, array_to_tensor, buffer_to_tensor, validity_to_tensor};
pub use ffi::{
    LegacyTensor, Tensor, described, owner_of_legacy, owner_of_versioned, release_legacy, release_versioned,
    view_legacy, view_versioned,
};
pub use import::array_from_tensor;
pub use legacy::{check_writable, rewrapped};
pub use made::{Dims, Spec};
pub use view::{Axes, MAX_NDIM, TensorView, Told};
