//! Kernels of models.

pub mod laplace;
pub mod nuts;
pub mod wild;
