//! The sampler of logistic mixed models.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};

use super::{borrow, into_array};
use crate::cpu::Cpu;
use crate::error::Error;
use crate::models::nuts::chains::{Plan, Trace, run};
use crate::models::nuts::part::{Layout, Part};
use crate::models::nuts::posterior::{Fixed, Likelihood, Posterior};
use crate::models::nuts::{Cells, Crossed, Nodes};

type Vector<'py, T> = PyReadonlyArray1<'py, T>;
type Matrix<'py, T> = PyReadonlyArray2<'py, T>;

fn floats<'py>(name: &str, argument: &Bound<'py, PyAny>) -> PyResult<Vector<'py, f64>> {
    borrow(name, "float64 array with one axis", argument)
}

fn integers<'py>(name: &str, argument: &Bound<'py, PyAny>) -> PyResult<Vector<'py, u32>> {
    borrow(name, "uint32 array with one axis", argument)
}

fn matrix<'py>(name: &str, argument: &Bound<'py, PyAny>) -> PyResult<Matrix<'py, f64>> {
    borrow(name, "float64 array with two axes", argument)
}

/// A random part as Python describes it.
struct Described<'py> {
    n_levels: usize,
    free: Vector<'py, u32>,
    bounds: Vector<'py, u32>,
    at: Vector<'py, u32>,
    normals: Vector<'py, f64>,
    information: Vector<'py, f64>,
    pull: Vector<'py, f64>,
    shares: Vector<'py, f64>,
    directions: Matrix<'py, f64>,
}

impl<'py> Described<'py> {
    fn new(part: &Bound<'py, PyAny>) -> PyResult<Self> {
        let field = |name| part.getattr(name);
        Ok(Self {
            n_levels: field("n_levels")?.extract()?,
            free: integers("free", &field("free")?)?,
            bounds: integers("bounds", &field("bounds")?)?,
            at: integers("at", &field("at")?)?,
            normals: floats("normals", &field("normals")?)?,
            information: floats("information", &field("information")?)?,
            pull: floats("pull", &field("pull")?)?,
            shares: floats("shares", &field("shares")?)?,
            directions: matrix("directions", &field("directions")?)?,
        })
    }

    fn read(&self) -> PyResult<Part> {
        Ok(Part::new(Layout {
            n_levels: self.n_levels,
            free: self.free.as_slice()?,
            bounds: self.bounds.as_slice()?,
            at: self.at.as_slice()?,
            normals: self.normals.as_slice()?,
            information: self.information.as_slice()?,
            pull: self.pull.as_slice()?,
            shares: self.shares.as_slice()?,
        })?)
    }
}

/// The posterior of a logistic mixed model with random intercepts.
///
/// Parameters
/// ----------
/// rows, centre, basis, variances : float64 arrays, shapes (K, p), (p,), (p, p) and (p,)
///     The distinct rows of fixed columns; the coefficients are `centre + basis @ z`, with prior
///     variances of their own that those of mean effects are added to.
/// parts : list
///     Objects with `n_levels`, `free`, `bounds`, `at`, `normals`, `information`, `pull`, `shares`
///     and `directions`: the parts that are not integrated out.
/// scales : float64 array, shape (T,)
///     Scales of the half-normal priors of the standard deviations.
/// y, counts : float64 arrays, shape (n,), or (I, C) with `crossed`
///     Successes and trials.
/// codes : uint32 array, shape (1 + parts, n), or (1 + parts, C) with `crossed`
///     Row of fixed columns, and level of each part.
/// crossed : int, optional
///     The table of codes that the I levels belong to: 1 for the first part.
/// groups, n_groups, nodes, log_weights : optional
///     Level of each cell in the part that is integrated out, their number, and the quadrature.
#[pyclass(frozen, module = "triagestats._native")]
pub struct MixedPosterior {
    posterior: Posterior,
}

#[pymethods]
impl MixedPosterior {
    #[new]
    #[pyo3(signature = (
        rows, centre, basis, variances, parts, scales, y, counts, codes, *, crossed=None,
        groups=None, n_groups=0, nodes=None, log_weights=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "a model has so many pieces")]
    #[expect(clippy::needless_pass_by_value, reason = "a list is taken by value")]
    fn new(
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        centre: &Bound<'_, PyAny>,
        basis: &Bound<'_, PyAny>,
        variances: &Bound<'_, PyAny>,
        parts: Vec<Bound<'_, PyAny>>,
        scales: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        counts: &Bound<'_, PyAny>,
        codes: &Bound<'_, PyAny>,
        crossed: Option<usize>,
        groups: Option<Bound<'_, PyAny>>,
        n_groups: usize,
        nodes: Option<Bound<'_, PyAny>>,
        log_weights: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let parts = parts.iter().map(Described::new).collect::<PyResult<Vec<_>>>()?;
        let rows = matrix("rows", rows)?;
        let centre = floats("centre", centre)?;
        let basis = matrix("basis", basis)?;
        let variances = floats("variances", variances)?;
        let directions = parts
            .iter()
            .map(|part| Ok(part.directions.as_slice()?))
            .collect::<PyResult<Vec<_>>>()?;
        let fixed = Fixed::new(
            rows.as_slice()?,
            centre.as_slice()?,
            basis.as_slice()?,
            variances.as_slice()?,
            &directions,
        )?;
        let mut sizes = vec![rows.shape()[0]];
        sizes.extend(parts.iter().map(|part| part.n_levels));
        let codes = borrow::<u32, numpy::Ix2>("codes", "uint32 array with two axes", codes)?;
        let codes = codes.as_slice()?;
        let likelihood = if let Some(main) = crossed {
            let (y, counts) = (matrix("y", y)?, matrix("counts", counts)?);
            let (y, counts) = (y.as_slice()?, counts.as_slice()?);
            Likelihood::Crossed(Crossed::new(y, counts, codes, &sizes, main)?)
        } else {
            let (y, counts) = (floats("y", y)?, floats("counts", counts)?);
            let cells = Cells::new(y.as_slice()?, counts.as_slice()?, codes, &sizes)?;
            match (groups, nodes, log_weights) {
                (Some(groups), Some(nodes), Some(log_weights)) => {
                    let groups = integers("groups", &groups)?;
                    let nodes = floats("nodes", &nodes)?;
                    let log_weights = floats("log_weights", &log_weights)?;
                    Likelihood::Nodes(Nodes::new(
                        &cells,
                        &sizes,
                        groups.as_slice()?,
                        n_groups,
                        nodes.as_slice()?,
                        log_weights.as_slice()?,
                    )?)
                }
                (None, None, None) => Likelihood::Cells(cells),
                _ => {
                    return Err(PyValueError::new_err(
                        "`groups`, `nodes` and `log_weights` must be given together",
                    ));
                }
            }
        };
        let parts = parts.iter().map(Described::read).collect::<PyResult<Vec<_>>>()?;
        let scales = floats("scales", scales)?;
        let scales = scales.as_slice()?;
        let posterior =
            py.detach(|| Posterior::new(Cpu::detect(), likelihood, fixed, parts, scales))?;
        Ok(Self { posterior })
    }

    /// Coordinates of a position.
    #[getter]
    fn n_coordinates(&self) -> usize {
        self.posterior.n_coordinates()
    }

    /// The log-density at a position, up to a constant, and its gradient.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        position: &Bound<'py, PyAny>,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        let position = floats("position", position)?;
        let position = position.as_slice()?;
        let size = self.posterior.n_coordinates();
        if position.len() != size {
            let (expected, actual) = (size, position.len());
            return Err(Error::Shape { name: "position", expected, actual }.into());
        }
        let mut gradient = vec![0.0; size];
        let value = py.detach(|| self.posterior.clone().log_density(position, &mut gradient));
        Ok((value.unwrap_or(f64::NEG_INFINITY), gradient.to_pyarray(py)))
    }

    /// Draws from the posterior, a chain from each row of `starts`.
    ///
    /// `watch` is called with the number of steps done; an exception of it, or Ctrl-C, stops the
    /// chains. With `keep`, what they have drawn until a KeyboardInterrupt is returned, as many
    /// draws of each; otherwise the exception is raised.
    #[pyo3(signature = (
        starts, *, n_tune, n_draws, seed, target_accept, max_depth, every=1,
        every_integrated=1, n_threads=1,
        watch=None, keep=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "the choices of a sampler")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        starts: &Bound<'py, PyAny>,
        n_tune: usize,
        n_draws: usize,
        seed: u64,
        target_accept: f64,
        max_depth: u64,
        every: usize,
        every_integrated: usize,
        n_threads: usize,
        watch: Option<Bound<'py, PyAny>>,
        keep: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let starts = matrix("starts", starts)?;
        let starts = starts.as_slice()?;
        let plan = Plan {
            n_tune,
            n_draws,
            seed,
            target_accept,
            max_depth,
            every,
            every_integrated,
            n_threads,
        };
        let watch = watch.map(Bound::unbind);
        let mut stopped: Option<PyErr> = None;
        let traces = py.detach(|| {
            run(&self.posterior, starts, plan, |done| {
                if stopped.is_none() {
                    stopped = Python::attach(|py| {
                        py.check_signals()?;
                        watch.as_ref().map_or(Ok(()), |watch| watch.call1(py, (done,)).map(drop))
                    })
                    .err();
                }
                stopped.is_none()
            })
        });
        if let Some(error) = stopped {
            let interrupt = error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py);
            if !(keep && interrupt) {
                return Err(error);
            }
        }
        let traces = traces?;
        gather(py, &traces, &self.posterior, plan)
    }
}

/// The draws that all chains have made, in arrays (chains, draws, ...).
fn gather<'py>(
    py: Python<'py>,
    traces: &[Trace],
    posterior: &Posterior,
    plan: Plan,
) -> PyResult<Bound<'py, PyDict>> {
    let n_chains = traces.len();
    let n_draws = traces.iter().map(Trace::n_draws).min().unwrap_or(0);
    let out = PyDict::new(py);
    let cube = |values: fn(&Trace) -> &Vec<f64>, every: usize, width: usize| {
        let rows = n_draws.div_ceil(every);
        let all: Vec<f64> =
            traces.iter().flat_map(|trace| &values(trace)[..rows * width]).copied().collect();
        into_array(py, (n_chains, rows, width), all)
    };
    let n_head = posterior.n_head();
    let n_tail = posterior.n_coordinates() - n_head;
    out.set_item("heads", cube(|trace| &trace.heads, 1, n_head)?)?;
    out.set_item("tails", cube(|trace| &trace.tails, plan.every, n_tail)?)?;
    let integrated = cube(|trace| &trace.effects, plan.every_integrated, posterior.n_integrated())?;
    out.set_item("integrated", integrated)?;
    let flat = |values: fn(&Trace) -> &Vec<f64>| {
        let all: Vec<f64> =
            traces.iter().flat_map(|trace| &values(trace)[..n_draws]).copied().collect();
        into_array(py, (n_chains, n_draws), all)
    };
    out.set_item("energy", flat(|trace| &trace.energy)?)?;
    out.set_item("lp", flat(|trace| &trace.log_density)?)?;
    out.set_item("acceptance_rate", flat(|trace| &trace.acceptance_rate)?)?;
    out.set_item("step_size", flat(|trace| &trace.step_size)?)?;
    let whole = |values: fn(&Trace) -> &Vec<i64>| {
        let all: Vec<i64> =
            traces.iter().flat_map(|trace| &values(trace)[..n_draws]).copied().collect();
        into_array(py, (n_chains, n_draws), all)
    };
    out.set_item("tree_depth", whole(|trace| &trace.depth)?)?;
    out.set_item("n_steps", whole(|trace| &trace.n_steps)?)?;
    let diverging: Vec<bool> =
        traces.iter().flat_map(|trace| &trace.diverging[..n_draws]).copied().collect();
    out.set_item("diverging", into_array(py, (n_chains, n_draws), diverging)?)?;
    Ok(out)
}
