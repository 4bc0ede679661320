//! The likelihood of cells that cross one part with everything else, with few exponentials.
//!
//! The linear predictor of a cell is `a[i] + f[c]`: the effect of a level of the part, and that of a
//! combination of all other effects. With `exp(a)` and `exp(f)`, a cell takes a product instead of
//! an exponential. Where all cells have the same number of trials, the logarithm of the product of
//! many `1 + exp(eta)` replaces one of each.

use super::cells::check_codes;
use super::lanes::{LANES, exp, log_lanes, total};
use crate::cpu::{Cpu, on_cpu};
use crate::error::{Error, Result, check_some, check_values};

/// Linear predictors beyond this, which no data can tell from it, are an overflow.
pub(super) const LARGEST_PREDICTOR: f64 = 340.0;

/// A product of so many `exp(x)`, `|x|` summing to this, is a float.
const LARGEST_SUM: f64 = 690.0;

/// All cells of a part with `I` levels crossed with `C` combinations; those not observed have no
/// trials.
#[derive(Debug, Clone)]
pub struct Crossed {
    /// The table of the part.
    main: usize,
    /// For each other table, the entry that a combination uses.
    codes: Vec<Vec<u32>>,
    /// Trials, level by level, each padded to a multiple of [`LANES`].
    n: Vec<f64>,
    width: usize,
    n_combinations: usize,
    /// The number of trials where all cells with trials have the same; `n` is then 0 or 1.
    common: Option<f64>,
    /// Successes of each level, and of each combination.
    y_main: Vec<f64>,
    y_combined: Vec<f64>,
    /// exp(f), f, and their derivatives, of the combinations.
    scratch: Scratch,
}

#[derive(Debug, Clone)]
struct Scratch {
    sums: Vec<f64>,
    powers: Vec<f64>,
    expected: Vec<f64>,
    combined: Vec<f64>,
}

impl Crossed {
    /// Reads the trials `n` and the successes `y` as (levels, combinations), and `codes` as
    /// (tables, combinations); the codes for the table `main` itself are not read.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Shape`], [`Error::NotFinite`], [`Error::CodeTooLarge`], or
    /// [`Error::OutOfRange`] when there is no table `main`.
    pub fn new(y: &[f64], n: &[f64], codes: &[u32], sizes: &[usize], main: usize) -> Result<Self> {
        let Some(&n_levels) = sizes.get(main) else {
            return Err(Error::OutOfRange { what: "`main`", limit: sizes.len(), actual: main });
        };
        let n_combinations = codes.len() / sizes.len();
        check_some("the number of combinations", n_combinations)?;
        check_values("counts", n, &[n_levels, n_combinations])?;
        check_values("y", y, &[n_levels, n_combinations])?;
        let codes: Vec<Vec<u32>> = codes.chunks(n_combinations).map(<[u32]>::to_vec).collect();
        if codes.len() != sizes.len() {
            let expected = sizes.len() * n_combinations;
            return Err(Error::Shape { name: "codes", expected, actual: codes.len() });
        }
        for (table, (codes, &size)) in codes.iter().zip(sizes).enumerate() {
            if table != main {
                check_codes(codes, size)?;
            }
        }
        let first = n.iter().copied().find(|&n| n > 0.0);
        let same = |n: f64, first: f64| n.to_bits() == first.to_bits();
        let common = first.filter(|&first| n.iter().all(|&n| n == 0.0 || same(n, first)));
        let width = n_combinations.next_multiple_of(LANES);
        let mut padded = vec![0.0; n_levels * width];
        let mut y_combined = vec![0.0; n_combinations];
        for (row, given) in padded.chunks_mut(width).zip(n.chunks(n_combinations)) {
            for (place, &n) in row.iter_mut().zip(given) {
                *place = if common.is_some() && n > 0.0 { 1.0 } else { n };
            }
        }
        for y in y.chunks(n_combinations) {
            for (sum, y) in y_combined.iter_mut().zip(y) {
                *sum += y;
            }
        }
        let scratch = Scratch {
            sums: vec![0.0; width],
            powers: vec![0.0; width],
            expected: vec![0.0; width],
            combined: vec![0.0; width],
        };
        let y_main = y.chunks(n_combinations).map(|y| y.iter().sum()).collect();
        Ok(Self {
            main,
            codes,
            n: padded,
            width,
            n_combinations,
            common,
            y_main,
            y_combined,
            scratch,
        })
    }

    /// As [`super::Cells::log_likelihood`]; `None` where a linear predictor is too large.
    pub(super) fn log_likelihood(
        &mut self,
        cpu: Cpu,
        tables: &[Vec<f64>],
        out: &mut [Vec<f64>],
    ) -> Option<f64> {
        let Scratch { sums, powers, expected, combined } = &mut self.scratch;
        sums.fill(0.0);
        expected.fill(0.0);
        for (table, (values, codes)) in tables.iter().zip(&self.codes).enumerate() {
            if table != self.main {
                for (sum, &code) in sums.iter_mut().zip(codes) {
                    *sum += values[code as usize];
                }
            }
        }
        let main = &tables[self.main];
        let top = |values: &[f64]| values.iter().fold(0.0, |top: f64, x| top.max(x.abs()));
        let largest = top(main) + top(sums);
        // `max` passes over NaN, which then makes the sum below NaN.
        if largest >= LARGEST_PREDICTOR {
            return None;
        }
        let mut linear = 0.0;
        for (effect, y) in main.iter().zip(&self.y_main) {
            linear += effect * y;
        }
        for (sum, y) in sums.iter().zip(&self.y_combined) {
            linear += sum * y;
        }
        let cells = Rows { n: &self.n, width: self.width, common: self.common, largest };
        let logs = on_cpu!(
            cpu,
            rows,
            rows_wide,
            (cells, main, sums, powers, expected, &mut out[self.main])
        );
        let weight = self.common.unwrap_or(1.0);
        for (derivative, y) in out[self.main].iter_mut().zip(&self.y_main) {
            *derivative += y;
        }
        for c in 0..self.n_combinations {
            combined[c] = self.y_combined[c] - weight * expected[c];
        }
        for (table, (out, codes)) in out.iter_mut().zip(&self.codes).enumerate() {
            if table != self.main {
                for (value, &code) in combined.iter().zip(codes) {
                    out[code as usize] += value;
                }
            }
        }
        Some(linear - weight * logs)
    }
}

/// What the loop over the cells reads.
#[derive(Debug, Clone, Copy)]
struct Rows<'a> {
    n: &'a [f64],
    width: usize,
    common: Option<f64>,
    largest: f64,
}

/// The sum of `n log(1 + exp(eta))`. Adds `n p` to `expected` by combination, and takes it from
/// `out` by level, there times the common number of trials.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn rows(
    cells: Rows,
    main: &[f64],
    sums: &[f64],
    powers: &mut [f64],
    expected: &mut [f64],
    out: &mut [f64],
) -> f64 {
    for (power, &sum) in powers.iter_mut().zip(sums) {
        *power = exp(sum);
    }
    let weight = cells.common.unwrap_or(1.0);
    let mut logs = [0.0; LANES];
    let mut product = [1.0; LANES];
    let mut left = LARGEST_SUM;
    // log(1 + exp(x)) is at most x + log 2.
    let step = cells.largest + std::f64::consts::LN_2;
    for ((n, &effect), out) in cells.n.chunks_exact(cells.width).zip(main).zip(out) {
        let power = exp(effect);
        let mut row = [0.0; LANES];
        let chunks = n.chunks_exact(LANES).zip(powers.chunks_exact(LANES));
        for ((n, powers), expected) in chunks.zip(expected.chunks_exact_mut(LANES)) {
            if cells.common.is_some() {
                if left < step {
                    for (sum, log) in logs.iter_mut().zip(log_lanes(&product)) {
                        *sum += log;
                    }
                    product = [1.0; LANES];
                    left = LARGEST_SUM;
                }
                left -= step;
                for lane in 0..LANES {
                    let odds = n[lane] * (power * powers[lane]);
                    let all = 1.0 + odds;
                    let p = odds / all;
                    product[lane] *= all;
                    row[lane] += p;
                    expected[lane] += p;
                }
            } else {
                let mut all = [0.0; LANES];
                for lane in 0..LANES {
                    let odds = power * powers[lane];
                    all[lane] = 1.0 + odds;
                    let mean = n[lane] * (odds / all[lane]);
                    row[lane] += mean;
                    expected[lane] += mean;
                }
                let log_all = log_lanes(&all);
                for lane in 0..LANES {
                    logs[lane] += n[lane] * log_all[lane];
                }
            }
        }
        *out -= weight * total(&row);
    }
    for (sum, log) in logs.iter_mut().zip(log_lanes(&product)) {
        *sum += log;
    }
    total(&logs)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn rows_wide(
    cells: Rows,
    main: &[f64],
    sums: &[f64],
    powers: &mut [f64],
    expected: &mut [f64],
    out: &mut [f64],
) -> f64 {
    rows(cells, main, sums, powers, expected, out)
}
