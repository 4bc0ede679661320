//! Resampling kernels on plain slices.
//!
//! Every kernel turns per-cluster totals into replicate totals and knows no statistic by name. The
//! modules here are free of Python; `python` alone, behind the feature of that name, binds them to
//! it.
//!
//! A replicate is addressed by its number. Its random draws depend on `(seed, number)` only and its
//! sums run over the clusters in ascending order, so that threads, chunks and platforms cannot
//! change a result.

pub mod bootstrap;
pub mod error;
pub mod parallel;
pub mod permutation;
pub mod stream;
mod sum;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Result};
