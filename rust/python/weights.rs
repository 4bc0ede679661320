//! Random weights.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, threads};
use crate::bayesian;
use crate::bootstrap::Totals;
use crate::error::check_some;
use crate::wild::{self, Kind};

/// Weighted totals of the Bayesian bootstrap.
///
/// Replicate r weights the clusters at random and returns sum over g of weight[r, g] * totals[g].
/// Up to rounding, the weights are those of `bayesian_weights` for the same `seed` and `first`.
///
/// Parameters
/// ----------
/// totals : float64 array, shape (G, K), C-contiguous
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
#[pyo3(signature = (totals, n_resamples, seed, *, first=0, n_threads=1))]
pub fn bayesian_totals<'py>(
    totals: &Bound<'py, PyAny>,
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
    let rows_per_chunk = chunk(array.len().saturating_add(16 * n_clusters), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        bayesian::totals(&totals, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Weights of the clusters in the Bayesian bootstrap.
///
/// Dirichlet(1, ..., 1) weights, scaled to sum to G.
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
/// float64 array, shape (R, G)
///     Positive, with mean 1.
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
pub fn bayesian_weights(
    py: Python<'_>,
    n_clusters: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    check_some("the number of clusters", n_clusters)?;
    let rows_per_chunk = chunk(n_clusters.saturating_mul(16), NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        bayesian::weights(n_clusters, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}

/// Weights of the clusters in the wild cluster bootstrap.
///
/// Each has mean 0 and variance 1. "rademacher": 1 or -1, those of `sign_flips`. "webb": plus or
/// minus the square root of 1/2, 1 or 3/2, each as likely. "mammen": (1 - sqrt 5) / 2 with chance
/// (sqrt 5 + 1) / (2 sqrt 5), else (1 + sqrt 5) / 2.
///
/// Parameters
/// ----------
/// n_clusters : int
///     Number G of clusters, at least 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// kind : {"rademacher", "webb", "mammen"}
///     The distribution.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// float64 array, shape (R, G)
///     The weights.
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
#[pyo3(signature = (n_clusters, n_resamples, seed, *, kind, first=0))]
pub fn wild_weights<'py>(
    py: Python<'py>,
    n_clusters: usize,
    n_resamples: usize,
    seed: u64,
    kind: &str,
    first: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let kind = kind_of(kind)?;
    check_some("the number of clusters", n_clusters)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        wild::weights(kind, n_clusters, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}

/// A distribution of weights by its name.
pub fn kind_of(kind: &str) -> PyResult<Kind> {
    match kind {
        "rademacher" => Ok(Kind::Rademacher),
        "webb" => Ok(Kind::Webb),
        "mammen" => Ok(Kind::Mammen),
        _ => Err(PyValueError::new_err(format!(
            "`kind` must be \"rademacher\", \"webb\" or \"mammen\", got {kind:?}"
        ))),
    }
}
