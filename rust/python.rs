//! The Python module `_native`: arrays in, arrays out, and nothing decided here.
//!
//! The module has no state of its own, so the default declaration, that it does not need the
//! global lock, is right.
//!
//! Arrays are borrowed, not copied, while the lock is released. NumPy cannot stop another Python
//! thread from writing to them meanwhile; the callers pass arrays that nobody else holds.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::ndarray::{Array, Dimension, ShapeBuilder};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::bootstrap::{self, Scheme, Totals};
use crate::error::{Error, Result};
use crate::parallel;
use crate::permutation::{self, Blocks, Permutations};
use crate::stream::check_range;

/// Additions between two looks for Ctrl-C: about a tenth of a second for one thread.
const ADDITIONS_PER_CHUNK: usize = 1 << 27;

/// Fewest replicates a thread gets in a chunk, so that large inputs are still read once for several
/// replicates.
const CHUNK_PER_THREAD: usize = 8;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge { .. } => PyMemoryError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}

/// An argument as a C-contiguous array of the given type, or an error that says what came instead.
fn borrow<'py, T: Element, D: Dimension>(
    name: &str,
    expected: &str,
    argument: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    let Ok(array) = argument.cast::<PyArray<T, D>>() else {
        let kind = argument.get_type().name()?;
        let actual = match (argument.getattr("dtype"), argument.getattr("ndim")) {
            (Ok(dtype), Ok(ndim)) => format!("{kind} of type {dtype} with {ndim} axes"),
            _ => kind.to_string(),
        };
        return Err(PyTypeError::new_err(format!(
            "`{name}` must be a C-contiguous {expected}, got {actual}; \
             convert it with np.ascontiguousarray"
        )));
    };
    let readable = array
        .try_readonly()
        .map_err(|error| PyValueError::new_err(format!("`{name}` cannot be read: {error}")))?;
    // A Fortran-ordered array also reads as a slice, though in another order; a misaligned one
    // does not.
    if !array.is_c_contiguous() || readable.as_slice().is_err() {
        return Err(PyValueError::new_err(format!(
            "`{name}` must be C-contiguous and aligned, got strides {:?}; \
             copy it with np.array(..., order=\"C\")",
            array.strides()
        )));
    }
    Ok(readable)
}

/// Fills `n_resamples` replicates with the lock released, in chunks between which Ctrl-C is heard.
fn run<T: Copy + Default + Send>(
    py: Python<'_>,
    first: u64,
    n_resamples: usize,
    row_len: usize,
    rows_per_chunk: usize,
    kernel: impl Fn(u64, &mut [T]) -> Result<()> + Send + Sync,
) -> PyResult<Vec<T>> {
    check_range(first, n_resamples)?;
    let mut out = py.detach(|| parallel::zeros(n_resamples, row_len))?;
    let chunks = out.chunks_mut(rows_per_chunk.max(1).saturating_mul(row_len));
    for (rows, number) in chunks.zip((first..).step_by(rows_per_chunk.max(1))) {
        py.detach(|| kernel(number, rows))?;
        py.check_signals()?;
    }
    Ok(out)
}

/// Replicates in a chunk, when each makes so many additions.
fn chunk(additions: usize, n_threads: NonZeroUsize) -> usize {
    let one_thread = (ADDITIONS_PER_CHUNK / additions.max(1)).max(CHUNK_PER_THREAD);
    one_thread.saturating_mul(n_threads.get())
}

/// An owned array of the given shape; the values are moved, not copied.
fn into_array<T: Element, D: Dimension>(
    py: Python<'_>,
    shape: impl ShapeBuilder<Dim = D> + Into<numpy::ndarray::StrideShape<D>>,
    values: Vec<T>,
) -> PyResult<Bound<'_, PyArray<T, D>>> {
    Array::from_shape_vec(shape, values)
        .map(|array| array.into_pyarray(py))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Number of threads as the kernels take it.
fn threads(n_threads: usize) -> Result<NonZeroUsize> {
    NonZeroUsize::new(n_threads).ok_or(Error::Empty { what: "`n_threads`" })
}

/// The drawing scheme for G clusters, stratified if there are codes.
fn scheme(n_clusters: usize, strata: Option<&Bound<'_, PyAny>>) -> PyResult<Scheme> {
    let Some(strata) = strata else {
        return Ok(Scheme::plain(n_clusters)?);
    };
    let codes = borrow::<u32, numpy::Ix1>("strata", "uint32 array of shape (G,)", strata)?;
    let codes = codes.as_slice()?;
    if codes.len() != n_clusters {
        let (expected, actual) = (n_clusters, codes.len());
        return Err(Error::Shape { name: "strata", expected, actual }.into());
    }
    Ok(Scheme::stratified(codes)?)
}

/// Replicate totals of the multinomial cluster bootstrap.
///
/// Replicate r draws G clusters with replacement, or as many as there are in each stratum, and
/// returns sum over g of count[r, g] * totals[g]. Its draws depend on `seed` and `first + r` alone.
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
/// strata : uint32 array, shape (G,), optional
///     Stratum of each cluster, 0 to S - 1 without gaps, in any order.
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
#[pyo3(signature = (totals, n_resamples, seed, *, first=0, strata=None, n_threads=1))]
fn bootstrap_totals<'py>(
    totals: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = totals.py();
    let n_threads = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix2>("totals", "float64 array of shape (G, K)", totals)?;
    let values = array.as_slice()?;
    let &[n_clusters, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have two axes"));
    };
    let totals = py.detach(|| Totals::new(values, n_clusters, n_columns))?;
    let scheme = scheme(n_clusters, strata)?;
    let rows_per_chunk = chunk(values.len(), n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        bootstrap::totals(&totals, &scheme, seed, number, n_threads, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Multiplicities of the clusters in the multinomial cluster bootstrap.
///
/// The counts that `bootstrap_totals` multiplies with, for the same `seed`, `first` and `strata`.
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
/// strata : uint32 array, shape (G,), optional
///     Stratum of each cluster, 0 to S - 1 without gaps, in any order.
///
/// Returns
/// -------
/// uint32 array, shape (R, G)
///     Times each cluster was drawn; a row sums to G, and within a stratum to its number of
///     clusters.
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
#[pyo3(signature = (n_clusters, n_resamples, seed, *, first=0, strata=None))]
fn bootstrap_counts<'py>(
    py: Python<'py>,
    n_clusters: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let scheme = scheme(n_clusters, strata)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        bootstrap::counts(&scheme, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}

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
fn permute_blocks<'py>(
    blocks: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let py = blocks.py();
    let n_threads = threads(n_threads)?;
    let array = borrow("blocks", "float64 array of shape (G, L, K)", blocks)?;
    let blocks = read_blocks(&array)?;
    let rows_per_chunk = chunk(array.len(), n_threads);
    let out = run(py, first, n_resamples, blocks.width().get(), rows_per_chunk, |number, rows| {
        permutation::blocks(&blocks, seed, number, n_threads, rows)
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
fn permutation_codes(
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
fn enumerate_blocks<'py>(
    blocks: &Bound<'py, PyAny>,
    n_resamples: usize,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let py = blocks.py();
    let n_threads = threads(n_threads)?;
    let array = borrow("blocks", "float64 array of shape (G, L, K)", blocks)?;
    let blocks = read_blocks(&array)?;
    blocks.check_arrangements(first, n_resamples)?;
    let rows_per_chunk = chunk(array.len(), n_threads);
    let out = run(py, first, n_resamples, blocks.width().get(), rows_per_chunk, |number, rows| {
        permutation::enumerate(&blocks, number, n_threads, rows)
    })?;
    into_array(py, (n_resamples, array.shape()[1], array.shape()[2]), out)
}

/// Resampling kernels: per-cluster totals in, replicate totals out.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(bootstrap_totals, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap_counts, module)?)?;
    module.add_function(wrap_pyfunction!(permute_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(permutation_codes, module)?)?;
    module.add_function(wrap_pyfunction!(enumerate_blocks, module)?)?;
    Ok(())
}
