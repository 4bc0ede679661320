//! The likelihood of cells, each with a linear predictor that is a sum of table entries.

use super::lanes::{LANES, Lanes, exp_lanes, log_lanes, total};
use crate::cpu::{Cpu, on_cpu};
use crate::error::{Error, Result, check_rows, check_some, check_values};

/// Numbers of successes and trials, and for each table the entry that enters the linear predictor
/// of the cell.
///
/// The cells stand in rows of [`LANES`]; cells without trials fill up the last row.
#[derive(Debug, Clone)]
pub struct Cells {
    pub(super) y: Vec<f64>,
    pub(super) n: Vec<f64>,
    /// Table by table.
    pub(super) codes: Vec<Vec<u32>>,
}

/// Checks that codes name entries of a table.
pub(super) fn check_codes(codes: &[u32], size: usize) -> Result<()> {
    check_rows(size)?;
    match codes.iter().max() {
        Some(&code) if code as usize >= size => Err(Error::CodeTooLarge { code, size }),
        _ => Ok(()),
    }
}

impl Cells {
    /// Reads `codes` table by table, for tables of `sizes` entries.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Shape`], [`Error::NotFinite`] or [`Error::CodeTooLarge`].
    pub fn new(y: &[f64], n: &[f64], codes: &[u32], sizes: &[usize]) -> Result<Self> {
        check_some("the number of cells", n.len())?;
        check_some("the number of tables", sizes.len())?;
        check_values("y", y, &[n.len()])?;
        check_values("counts", n, &[n.len()])?;
        let expected = n.len().saturating_mul(sizes.len());
        if codes.len() != expected {
            return Err(Error::Shape { name: "codes", expected, actual: codes.len() });
        }
        for (codes, &size) in codes.chunks(n.len()).zip(sizes) {
            check_codes(codes, size)?;
        }
        let padded = n.len().next_multiple_of(LANES);
        let pad = |values: &[f64]| {
            let mut values = values.to_vec();
            values.resize(padded, 0.0);
            values
        };
        let codes = codes
            .chunks(n.len())
            .map(|codes| {
                let mut codes = codes.to_vec();
                codes.resize(padded, 0);
                codes
            })
            .collect();
        Ok(Self { y: pad(y), n: pad(n), codes })
    }

    /// The linear predictors of the row of cells that starts at `first`.
    #[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
    #[inline(always)]
    pub(super) fn predictors(&self, tables: &[Vec<f64>], first: usize) -> Lanes {
        let mut eta = [0.0; LANES];
        for (table, codes) in tables.iter().zip(&self.codes) {
            for (eta, &code) in eta.iter_mut().zip(&codes[first..first + LANES]) {
                *eta += table[code as usize];
            }
        }
        eta
    }

    /// Adds what the cells of a row contribute to each entry they use.
    #[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
    #[inline(always)]
    pub(super) fn scatter(&self, values: &Lanes, first: usize, out: &mut [Vec<f64>]) {
        for (out, codes) in out.iter_mut().zip(&self.codes) {
            for (value, &code) in values.iter().zip(&codes[first..first + LANES]) {
                out[code as usize] += value;
            }
        }
    }

    /// The log-likelihood without its constant; adds its derivative by each entry of the tables to
    /// `out`.
    pub(super) fn log_likelihood(
        &self,
        cpu: Cpu,
        tables: &[Vec<f64>],
        out: &mut [Vec<f64>],
    ) -> f64 {
        on_cpu!(cpu, sum, sum_wide, (self, tables, out))
    }
}

#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn sum(cells: &Cells, tables: &[Vec<f64>], out: &mut [Vec<f64>]) -> f64 {
    let mut sum = [0.0; LANES];
    for first in (0..cells.n.len()).step_by(LANES) {
        let eta = cells.predictors(tables, first);
        let (y, n) = (&cells.y[first..first + LANES], &cells.n[first..first + LANES]);
        let mut residuals = [0.0; LANES];
        let small = exp_lanes(&eta.map(|eta| -eta.abs()));
        let logs = log_lanes(&small.map(|small| 1.0 + small));
        for lane in 0..LANES {
            let (eta, all) = (eta[lane], 1.0 + small[lane]);
            let (positive, top) = if eta > 0.0 { (eta, 1.0) } else { (0.0, small[lane]) };
            sum[lane] += y[lane] * eta - n[lane] * (positive + logs[lane]);
            residuals[lane] = y[lane] - n[lane] * (top / all);
        }
        cells.scatter(&residuals, first, out);
    }
    total(&sum)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn sum_wide(cells: &Cells, tables: &[Vec<f64>], out: &mut [Vec<f64>]) -> f64 {
    sum(cells, tables, out)
}
