//! Resampling kernels on plain slices.
//!
//! Every kernel turns per-cluster totals into replicate totals and knows no statistic by name. The
//! modules here are free of Python; `python` alone, behind the feature of that name, binds them to
//! it.
//!
//! A replicate is addressed by its number. Its random draws depend on `(seed, number)` only and its
//! sums run over the clusters in ascending order, so that threads, chunks and platforms cannot
//! change a result.

pub mod bayesian;
pub mod binomial;
pub mod bootstrap;
mod bytes;
pub mod collapsed;
pub mod cpu;
pub mod crossed;
pub mod error;
pub mod flips;
#[cfg(test)]
mod golden;
pub mod integers;
pub mod models;
pub mod nested;
pub mod parallel;
pub mod permutation;
mod products;
pub mod quantile;
pub mod scheme;
pub mod stream;
#[cfg(target_arch = "x86_64")]
mod stream_wide;
pub mod subset;
mod sum;
pub mod wild;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Result};
