//! Permutations of labels.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{PyArray2, PyArray3, PyReadonlyArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, threads};
use crate::permutation::{self, Blocks, Permutations};

/// The blocks argument, read as (clusters, labels, columns).
fn read_blocks<'a>(array: &'a PyReadonlyArray<'_, f64, numpy::Ix3>) -> PyResult<Blocks<'a>> {
    let &[n_clusters, n_labels, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`blocks` must have three axes"));
    };
    let values = array.as_slice()?;
    Ok(array.py().detach(|| Blocks::new(values, n_clusters, n_labels, n_columns))?)
}

/// Totals after a random permutation of the labels within each cluster.
///
/// Replicate r draws one permutation a cluster, uniformly among L!, which moves whole blocks of K
/// columns: out[r, l] = sum over g of blocks[g, permutation[r, g][l]]. Its draws depend on `seed`
/// and `first + r` alone.
///
/// Parameters
/// ----------
/// blocks : float64 array, shape (G, L, K), C-contiguous
///     Finite sums of each cluster under each of 2 to 8 labels, in any units.
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
/// float64 array, shape (R, L, K)
///     In the units of `blocks`.
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
#[pyo3(signature = (blocks, n_resamples, seed, *, first=0, n_threads=1))]
pub fn permute_blocks<'py>(
    blocks: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let py = blocks.py();
    let run_on = threads(n_threads)?;
    let array = borrow("blocks", "float64 array of shape (G, L, K)", blocks)?;
    let blocks = read_blocks(&array)?;
    let rows_per_chunk = chunk(array.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, blocks.width().get(), rows_per_chunk, |number, rows| {
        permutation::blocks(&blocks, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, array.shape()[1], array.shape()[2]), out)
}

/// Codes of the permutations that `permute_blocks` draws.
///
/// A code is the place of a permutation in the lexicographic list of the permutations of 0..L-1;
/// code 0 moves nothing.
///
/// Parameters
/// ----------
/// n_clusters : int
///     Number G of clusters, at least 1.
/// n_labels : int
///     Number L of labels, 2 to 8.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// uint16 array, shape (R, G)
///     Codes from 0 to L! - 1.
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
#[pyo3(signature = (n_clusters, n_labels, n_resamples, seed, *, first=0))]
pub fn permutation_codes(
    py: Python<'_>,
    n_clusters: usize,
    n_labels: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<Bound<'_, PyArray2<u16>>> {
    let permutations = Permutations::new(n_labels)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        permutation::codes(&permutations, n_clusters, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}

/// Totals under the arrangements number `first` to `first + n_resamples - 1` of all (L!)**G.
///
/// The digits of an arrangement's number in base L! are the permutation codes of the clusters, with
/// cluster 0 the least significant. Arrangement 0 moves nothing.
///
/// Parameters
/// ----------
/// blocks : float64 array, shape (G, L, K), C-contiguous
///     Finite sums of each cluster under each of 2 to 8 labels, in any units.
/// n_resamples : int
///     Number R of arrangements, at least 1.
/// first : int
///     Number of the first arrangement.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (R, L, K)
///     In the units of `blocks`.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For an array that is not contiguous, for values outside the ranges above, for arrangements
///     past the last one, or if 64 bits cannot number all arrangements.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (blocks, n_resamples, *, first=0, n_threads=1))]
pub fn enumerate_blocks<'py>(
    blocks: &Bound<'py, PyAny>,
    n_resamples: usize,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let py = blocks.py();
    let run_on = threads(n_threads)?;
    let array = borrow("blocks", "float64 array of shape (G, L, K)", blocks)?;
    let blocks = read_blocks(&array)?;
    blocks.check_arrangements(first, n_resamples)?;
    let rows_per_chunk = chunk(array.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, blocks.width().get(), rows_per_chunk, |number, rows| {
        permutation::enumerate(&blocks, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, array.shape()[1], array.shape()[2]), out)
}
