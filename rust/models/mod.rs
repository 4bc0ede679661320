//! Kernels of models.

pub mod wild;
