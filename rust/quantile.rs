//! Two quantiles of each column of replicates, by selection instead of sorting.

use std::num::NonZeroUsize;

use crate::error::{Error, Result, check_some};
use crate::parallel::{self, Run, Split, count_rows};

/// Columns copied together, as many as there are floats in a line of cache.
const TOGETHER: usize = 8;

/// Fewest values for which a look at some of them is worth it.
const FEW: usize = 256;

/// Values between two that are looked at; at most [`MOST_SEEN`] are.
const STEP: usize = 16;
const MOST_SEEN: usize = 512;

/// Replicates of estimates, (R, E) row by row, and the probabilities of two quantiles of each.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    replicates: &'a [f64],
    low: &'a [f64],
    high: &'a [f64],
}

impl<'a> Ends<'a> {
    /// Reads the probabilities as (E,) each; what is not finite, here or there, is left out.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Shape`] or [`Error::PartialReplicate`].
    pub fn new(replicates: &'a [f64], low: &'a [f64], high: &'a [f64]) -> Result<Self> {
        let n_columns = low.len();
        check_some("the number of columns", n_columns)?;
        if high.len() != n_columns {
            return Err(Error::Shape { name: "high", expected: n_columns, actual: high.len() });
        }
        if !replicates.len().is_multiple_of(n_columns) {
            return Err(Error::PartialReplicate { row_len: n_columns, actual: replicates.len() });
        }
        Ok(Self { replicates, low, high })
    }
}

/// Quantiles of the finite values of the columns `first`, `first + 1`, ...: fills `out`, a row of
/// two each, the low and the high; NaN for both where either probability is not finite, or no value
/// is.
///
/// With n finite values, the quantile of p interpolates between the values of rank
/// `p (n + 1)`, counted from 1 and kept within 1 and n (type 6 of Hyndman and Fan 1996, "Sample
/// quantiles in statistical packages", The American Statistician 50:361-365, doi
/// 10.1080/00031305.1996.10473566). Ranks are rounded to nine decimals.
///
/// # Errors
/// [`Error::PartialReplicate`] or [`Error::Empty`] for an output without whole rows,
/// [`Error::Shape`] past the last column.
pub fn pairs(ends: &Ends, first: usize, run: Run, out: &mut [f64]) -> Result<()> {
    let &Ends { replicates, low, high } = ends;
    let two = const { NonZeroUsize::new(2).unwrap() };
    let actual = first.saturating_add(count_rows(out, two.get())?);
    if actual > low.len() {
        return Err(Error::Shape { name: "out", expected: low.len(), actual });
    }
    let batch = const { NonZeroUsize::new(TOGETHER).unwrap() };
    let split = Split { row_len: two, batch, n_threads: run.n_threads };
    parallel::fill(out, split, Scratch::default, |scratch, start, out| {
        let firsts = (first + start..).step_by(TOGETHER);
        for (out, column) in out.chunks_mut(2 * TOGETHER).zip(firsts) {
            let columns = column..column + out.len() / 2;
            scratch.copy_finite(replicates, low.len(), columns.start, columns.len());
            for ((out, column), lane) in out.chunks_exact_mut(2).zip(columns).zip(0..) {
                out.copy_from_slice(&scratch.ends(lane, [low[column], high[column]]));
            }
        }
    });
    Ok(())
}

/// What a thread needs.
#[derive(Default)]
struct Scratch {
    columns: [Vec<f64>; TOGETHER],
    seen: Vec<f64>,
    near: Vec<f64>,
}

impl Scratch {
    /// Copies the finite values of some columns.
    fn copy_finite(&mut self, replicates: &[f64], n_columns: usize, first: usize, n: usize) {
        let mut used = [0; TOGETHER];
        let rows = replicates.chunks_exact(n_columns);
        for column in &mut self.columns[..n] {
            column.resize(rows.len(), 0.0);
        }
        for row in rows {
            for ((column, used), &value) in
                self.columns.iter_mut().zip(&mut used).zip(&row[first..first + n])
            {
                column[*used] = value;
                *used += usize::from(value.is_finite());
            }
        }
        for (column, used) in self.columns.iter_mut().zip(used) {
            column.truncate(used);
        }
    }

    fn ends(&mut self, lane: usize, probabilities: [f64; 2]) -> [f64; 2] {
        let values = &self.columns[lane];
        if values.is_empty() || probabilities.iter().any(|p| !p.is_finite()) {
            return [f64::NAN; 2];
        }
        self.seen.clear();
        if values.len() >= FEW {
            let step = STEP.max(values.len() / MOST_SEEN);
            self.seen.extend(values.iter().step_by(step));
            self.seen.sort_unstable_by(f64::total_cmp);
        }
        probabilities.map(|p| {
            let (below, share) = rank(values.len(), p);
            let [lower, upper] = neighbours(values, below, &self.seen, &mut self.near);
            lower + share * (upper - lower)
        })
    }
}

/// Rank from 0 of the value at or below a quantile, and the way from there to the next.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a rank is a whole number below that of values that memory holds"
)]
fn rank(n: usize, p: f64) -> (usize, f64) {
    const DECIMALS: f64 = 1e9;
    let n = n as f64;
    let rank = ((p * (n + 1.0) - 1.0) * DECIMALS).round_ties_even() / DECIMALS;
    let rank = rank.clamp(0.0, n - 1.0);
    let below = rank as usize;
    (below, rank - below as f64)
}

/// The values of rank `below` and, unless it is the last, `below + 1`.
///
/// `seen` is a sorted sample of the values. It tells between which bounds the two are most likely,
/// so that only the few values there need be looked at closely.
fn neighbours(values: &[f64], below: usize, seen: &[f64], near: &mut Vec<f64>) -> [f64; 2] {
    let above = (below + 1).min(values.len() - 1);
    let (least, most) = bounds(values.len(), below, seen);
    near.resize(values.len(), 0.0);
    let (mut smaller, mut used) = (0, 0);
    for &value in values {
        // Where a value belongs cannot be predicted, so each is written and then kept or not.
        near[used] = value;
        smaller += usize::from(value < least);
        used += usize::from(value >= least && value <= most);
    }
    if smaller <= below && above < smaller + used {
        return select(&mut near[..used], below - smaller, above - smaller);
    }
    near.copy_from_slice(values);
    select(near, below, above)
}

/// Values of a rank and of the next, or the same, in any order.
fn select(values: &mut [f64], below: usize, above: usize) -> [f64; 2] {
    let (_, &mut lower, larger) = values.select_nth_unstable_by(below, f64::total_cmp);
    if above == below {
        return [lower; 2];
    }
    [lower, larger.iter().copied().fold(f64::INFINITY, f64::min)]
}

/// Values between which that of a rank and the next lie, but for a chance of about one in a
/// thousand.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "ranks are small, and kept within those that there are"
)]
fn bounds(n: usize, rank: usize, seen: &[f64]) -> (f64, f64) {
    let size = seen.len() as f64;
    let share = (rank as f64 + 0.5) / n as f64;
    let middle = share * size;
    let margin = 3.5 * (middle * (1.0 - share)).sqrt() + 1.5;
    let least = if middle - margin < 0.0 { None } else { seen.get((middle - margin) as usize) };
    let most = seen.get((middle + margin) as usize);
    (least.copied().unwrap_or(f64::NEG_INFINITY), most.copied().unwrap_or(f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::parallel::runs;
    use crate::stream::Stream;

    /// By sorting.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn sorted(mut values: Vec<f64>, p: f64) -> f64 {
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return f64::NAN;
        }
        values.sort_by(f64::total_cmp);
        let rank = p * (values.len() as f64 + 1.0) - 1.0;
        let rank = (rank * 1e9).round_ties_even() / 1e9;
        let rank = rank.clamp(0.0, values.len() as f64 - 1.0);
        let below = rank.floor() as usize;
        let above = (below + 1).min(values.len() - 1);
        values[below] + (rank - rank.floor()) * (values[above] - values[below])
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the same values are selected")]
    fn quantiles_are_those_of_the_sorted_values() {
        let shares = [0.025, 0.975, 0.5, 0.0, 1.0, 0.3, 0.999, 0.0001, 0.05, 0.1, -3.0, 7.0];
        let n_columns = shares.len();
        for n_rows in [1_usize, 2, 39, 255, 256, 300, 2_000, 9_999, 20_000] {
            for kind in 0..5 {
                let mut stream = Stream::new(Cpu::detect(), kind, n_rows as u64);
                let mut replicates: Vec<f64> = (0..n_rows * n_columns)
                    .map(|i| match kind {
                        0 => stream.unit(),
                        1 => (stream.unit() * 4.0).floor() - 2.0,
                        2 => f64::from(u32::try_from(i).expect("few")),
                        3 => 1.0 / (stream.unit() - 0.5).powi(5),
                        _ => [stream.unit(), f64::NAN, f64::INFINITY][i % 3],
                    })
                    .collect();
                replicates[0] = f64::NAN;
                let mut high = shares;
                high.reverse();
                for run in runs() {
                    let mut out = vec![0.0; 2 * n_columns];
                    let ends = Ends::new(&replicates, &shares, &high).expect("whole rows");
                    assert_eq!(pairs(&ends, 0, run, &mut out), Ok(()));
                    let mut later = [0.0; 6];
                    assert_eq!(pairs(&ends, 7, run, &mut later), Ok(()));
                    let bits =
                        |ends: &[f64]| ends.iter().map(|end| end.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&later), bits(&out[14..20]));
                    for (column, ends) in out.chunks(2).enumerate() {
                        for (end, p) in ends.iter().zip([shares[column], high[column]]) {
                            let values = replicates.iter().skip(column).step_by(n_columns);
                            let expected = sorted(values.copied().collect(), p);
                            assert!(
                                *end == expected || end.is_nan() && expected.is_nan(),
                                "{n_rows} of kind {kind} at {p}: {end} {expected}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_missing_probability_gives_none() {
        let mut out = [0.0; 4];
        let (low, high) = ([0.1, f64::NAN], [f64::INFINITY, 0.9]);
        let ends = Ends::new(&[1.0; 8], &low, &high).expect("whole rows");
        assert_eq!(pairs(&ends, 0, runs()[1], &mut out), Ok(()));
        assert!(out.iter().all(|end| end.is_nan()));
    }

    #[test]
    fn invalid_input_is_refused() {
        let what = "the number of columns";
        assert_eq!(Ends::new(&[], &[], &[]).err(), Some(Error::Empty { what }));
        assert_eq!(
            Ends::new(&[1.0], &[0.1], &[]).err(),
            Some(Error::Shape { name: "high", expected: 1, actual: 0 })
        );
        assert_eq!(
            Ends::new(&[1.0; 3], &[0.1; 2], &[0.9; 2]).err(),
            Some(Error::PartialReplicate { row_len: 2, actual: 3 })
        );
        let ends = Ends::new(&[1.0; 4], &[0.1; 2], &[0.9; 2]).expect("whole rows");
        assert_eq!(
            pairs(&ends, 1, runs()[0], &mut [0.0; 4]),
            Err(Error::Shape { name: "out", expected: 2, actual: 3 })
        );
    }
}
