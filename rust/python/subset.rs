//! Subsets of the clusters.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, threads};
use crate::bootstrap::Totals;
use crate::subset::{self, Subsets};

/// Totals of random subsets of the clusters.
///
/// Replicate r draws `size` of the G clusters without replacement and returns their sum. Its draws
/// depend on `seed` and `first + r` alone.
///
/// Parameters
/// ----------
/// totals : float64 array, shape (G, K), C-contiguous
///     Finite sums of each cluster, in any units.
/// size : int
///     Clusters in a subset, 1 to G.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (R, K)
///     In the units of `totals`.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For an array that is not contiguous, or for values outside the ranges above.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (totals, size, n_resamples, seed, *, first=0, n_threads=1))]
pub fn subset_totals<'py>(
    totals: &Bound<'py, PyAny>,
    size: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = totals.py();
    let run_on = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix2>("totals", "float64 array of shape (G, K)", totals)?;
    let values = array.as_slice()?;
    let &[n_clusters, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have two axes"));
    };
    let totals = py.detach(|| Totals::new(values, n_clusters, n_columns))?;
    let rows_per_chunk = chunk(array.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        subset::totals(&totals, size, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Subsets that `subset_totals` sums, for the same `seed` and `first`.
///
/// Parameters
/// ----------
/// n_clusters : int
///     Number G of clusters, at least 1.
/// size : int
///     Clusters in a subset, 1 to G.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// uint8 array, shape (R, G)
///     1 for the clusters that were drawn, 0 for the others.
///
/// Raises
/// ------
/// ValueError
///     For values outside the ranges above.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (n_clusters, size, n_resamples, seed, *, first=0))]
pub fn subset_masks(
    py: Python<'_>,
    n_clusters: usize,
    size: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<Bound<'_, PyArray2<u8>>> {
    let subsets = Subsets::new(n_clusters, size)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        subset::masks(subsets, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}
