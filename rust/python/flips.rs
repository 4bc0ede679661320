//! Random signs.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, threads};
use crate::error::check_some;
use crate::flips::{self, Flips};

/// Totals under a random sign for each cluster.
///
/// Replicate r keeps or negates each cluster, each with chance 1/2, and returns sum over g of
/// sign[r, g] * values[g]. Its signs depend on `seed` and `first + r` alone.
///
/// Parameters
/// ----------
/// values : float64 array, shape (G, K), C-contiguous
///     Finite sums of each cluster, in any units.
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
///     In the units of `values`. Integers from -255 to 255 are summed fastest, and exactly.
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
#[pyo3(signature = (values, n_resamples, seed, *, first=0, n_threads=1))]
pub fn sign_flip_totals<'py>(
    values: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = values.py();
    let run_on = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix2>("values", "float64 array of shape (G, K)", values)?;
    let values = array.as_slice()?;
    let &[n_clusters, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`values` must have two axes"));
    };
    let values = py.detach(|| Flips::new(values, n_clusters, n_columns))?;
    let rows_per_chunk = chunk(array.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        flips::totals(&values, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Signs that `sign_flip_totals` multiplies with.
///
/// For the same `seed` and `first`; -1 where `permutation_codes` of two labels is 1.
///
/// Parameters
/// ----------
/// n_clusters : int
///     Number G of clusters, at least 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// int8 array, shape (R, G)
///     1 or -1.
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
#[pyo3(signature = (n_clusters, n_resamples, seed, *, first=0))]
pub fn sign_flips(
    py: Python<'_>,
    n_clusters: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<Bound<'_, PyArray2<i8>>> {
    check_some("the number of clusters", n_clusters)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        flips::signs(n_clusters, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}
