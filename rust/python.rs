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
    Element, IntoPyArray, PyArray, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::{Error, Result};
use crate::parallel::{self, Run};
use crate::scheme::Scheme;
use crate::stream::check_range;

mod bootstrap;
mod flips;
mod laplace;
mod levels;
mod nuts;
mod permutation;
mod quantile;
mod subset;
mod weights;
mod wild_regression;

/// Additions between two looks for Ctrl-C: about a tenth of a second for one thread.
const ADDITIONS_PER_CHUNK: usize = 1 << 27;

/// Replicates that are summed together, and fewest that a thread gets in a chunk.
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

/// As [`run`], for two results of the same shape.
fn run_pair<T: Copy + Default + Send, U: Copy + Default + Send>(
    py: Python<'_>,
    first: u64,
    n_resamples: usize,
    row_len: usize,
    rows_per_chunk: usize,
    kernel: impl Fn(u64, &mut [T], &mut [U]) -> Result<()> + Send + Sync,
) -> PyResult<(Vec<T>, Vec<U>)> {
    check_range(first, n_resamples)?;
    let mut out = py.detach(|| parallel::zeros(n_resamples, row_len))?;
    let mut other = py.detach(|| parallel::zeros(n_resamples, row_len))?;
    let rows_per_chunk = rows_per_chunk.max(1);
    let size = rows_per_chunk.saturating_mul(row_len);
    let chunks = out.chunks_mut(size).zip(other.chunks_mut(size));
    for ((rows, others), number) in chunks.zip((first..).step_by(rows_per_chunk)) {
        py.detach(|| kernel(number, rows, others))?;
        py.check_signals()?;
    }
    Ok((out, other))
}

/// Replicates in a chunk, when each makes so many additions; whole groups of those that are summed
/// together.
fn chunk(additions: usize, n_threads: NonZeroUsize) -> usize {
    let groups = ADDITIONS_PER_CHUNK / CHUNK_PER_THREAD / additions.max(1);
    groups.max(1).saturating_mul(CHUNK_PER_THREAD).saturating_mul(n_threads.get())
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
fn threads(n_threads: usize) -> Result<Run> {
    NonZeroUsize::new(n_threads).map(Run::on).ok_or(Error::Empty { what: "`n_threads`" })
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

/// Resampling kernels: per-cluster totals in, replicate totals out.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(bootstrap::bootstrap_totals, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap::bootstrap_totals_int, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap::bootstrap_counts, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap::bootstrap_collapsed, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap::collapsed_counts, module)?)?;
    module.add_function(wrap_pyfunction!(laplace::fit_laplace, module)?)?;
    module.add_function(wrap_pyfunction!(levels::nested_totals, module)?)?;
    module.add_function(wrap_pyfunction!(levels::crossed_totals, module)?)?;
    module.add_function(wrap_pyfunction!(levels::crossed_counts, module)?)?;
    module.add_function(wrap_pyfunction!(weights::bayesian_totals, module)?)?;
    module.add_function(wrap_pyfunction!(weights::bayesian_weights, module)?)?;
    module.add_function(wrap_pyfunction!(weights::wild_weights, module)?)?;
    module.add_function(wrap_pyfunction!(wild_regression::wild_regression, module)?)?;
    module.add_function(wrap_pyfunction!(wild_regression::enumerate_wild_regression, module)?)?;
    module.add_function(wrap_pyfunction!(wild_regression::weighted_wild_regression, module)?)?;
    module.add_function(wrap_pyfunction!(flips::sign_flip_totals, module)?)?;
    module.add_function(wrap_pyfunction!(flips::sign_flips, module)?)?;
    module.add_function(wrap_pyfunction!(permutation::permute_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(permutation::permutation_codes, module)?)?;
    module.add_function(wrap_pyfunction!(permutation::enumerate_blocks, module)?)?;
    module.add_class::<nuts::MixedPosterior>()?;
    module.add_function(wrap_pyfunction!(quantile::quantile_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(subset::subset_totals, module)?)?;
    module.add_function(wrap_pyfunction!(subset::subset_masks, module)?)?;
    Ok(())
}
