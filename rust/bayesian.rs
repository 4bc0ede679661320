//! The Bayesian bootstrap: clusters weighted at random instead of drawn.
//!
//! Weights are Dirichlet(1, ..., 1), scaled to sum to the number of clusters (Rubin 1981, "The
//! Bayesian bootstrap", Annals of Statistics 9(1):130-134, doi 10.1214/aos/1176345338). They are
//! exponential draws divided by their mean.

use crate::bootstrap::Totals;
use crate::cpu::Cpu;
use crate::error::{Result, check_rows, check_some};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES};
use crate::stream::{Stream, check_range, to_unit};

/// Clusters that are weighted and summed at a time: whole steps of a stream's four generators.
const STRETCH: usize = 1_024;

/// Weights of the clusters in the replicates `first`, `first + 1`, ...: fills `out`, (R, G) row by
/// row.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooManyRows`], [`Error::PartialReplicate`] or
/// [`Error::ReplicateRange`].
///
/// [`Error::Empty`]: crate::Error::Empty
/// [`Error::TooManyRows`]: crate::Error::TooManyRows
/// [`Error::PartialReplicate`]: crate::Error::PartialReplicate
/// [`Error::ReplicateRange`]: crate::Error::ReplicateRange
pub fn weights(n_clusters: usize, seed: u64, first: u64, out: &mut [f64]) -> Result<()> {
    check_some("the number of clusters", n_clusters)?;
    let size = f64::from(check_rows(n_clusters)?);
    check_range(first, count_rows(out, n_clusters)?)?;
    let cpu = Cpu::detect();
    let mut words = [0; STRETCH];
    for (row, index) in out.chunks_exact_mut(n_clusters).zip(first..) {
        let mut stream = Stream::new(cpu, seed, index);
        let mut total = 0.0;
        for row in row.chunks_mut(STRETCH) {
            let words = &mut words[..row.len()];
            each_exponential(&mut stream, words, row.iter_mut(), |weight, drawn| {
                *weight = drawn;
                total += drawn;
            });
        }
        let scale = size / total;
        for weight in row {
            *weight *= scale;
        }
    }
    Ok(())
}

/// Calls `visit` with each place and an exponential draw, which is above 0.
#[inline]
fn each_exponential<P>(
    stream: &mut Stream,
    words: &mut [u64],
    places: impl Iterator<Item = P>,
    mut visit: impl FnMut(P, f64),
) {
    stream.words(words);
    for (place, &mut word) in places.zip(words) {
        visit(place, -libm::log(to_unit(word)));
    }
}

/// Weighted totals of the replicates `first`, `first + 1`, ...: fills `out`, (R, K) row by row.
///
/// A row is the sum over the clusters, in ascending order, of exponential draw times totals,
/// divided by the mean of the draws; so up to rounding it is weights times totals.
///
/// # Errors
/// [`Error::PartialReplicate`], [`Error::Empty`] or [`Error::ReplicateRange`].
///
/// [`Error::Empty`]: crate::Error::Empty
/// [`Error::PartialReplicate`]: crate::Error::PartialReplicate
/// [`Error::ReplicateRange`]: crate::Error::ReplicateRange
pub fn totals(totals: &Totals, seed: u64, first: u64, run: Run, out: &mut [f64]) -> Result<()> {
    let (n_clusters, n_columns) = (totals.n_clusters(), totals.n_columns());
    let size = f64::from(check_rows(n_clusters)?);
    check_range(first, count_rows(out, n_columns.get())?)?;
    let stretch = STRETCH.min(n_clusters);
    let scratch =
        || (vec![0; stretch], vec![[0.0; LANES]; stretch], vec![[0.0; LANES]; n_columns.get()]);
    parallel::fill(out, Split::lanes(n_columns, run), scratch, |scratch, start, rows| {
        let (words, drawn, sums) = scratch;
        let mut indices = (first..).skip(start);
        for rows in rows.chunks_mut(n_columns.get() * LANES) {
            let streams = indices.by_ref().map(|index| Stream::new(run.cpu, seed, index));
            let mut streams: Vec<_> = streams.take(rows.len() / n_columns).collect();
            let mut all = [0.0; LANES];
            sums.fill([0.0; LANES]);
            for values in totals.values().chunks(stretch * n_columns.get()) {
                let size = values.len() / n_columns;
                for ((lane, stream), total) in streams.iter_mut().enumerate().zip(&mut all) {
                    let places = drawn[..size].iter_mut();
                    each_exponential(stream, &mut words[..size], places, |lanes, drawn| {
                        lanes[lane] = drawn;
                        *total += drawn;
                    });
                }
                products::add(run.cpu, &drawn[..size], values, sums);
            }
            let scales = all.map(|total| size / total);
            for (sum, scale) in sums.iter_mut().flat_map(|sums| sums.iter_mut().zip(scales)) {
                *sum *= scale;
            }
            products::write_lanes(sums, |sum| sum, rows);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::parallel::runs;

    #[test]
    fn totals_are_weights_times_totals() {
        for (g, k) in [(1, 1), (30, 5), (2_500, 2)] {
            let values: Vec<f64> =
                (0_u32..).take(g * k).map(|i| f64::from(i * 7919 % 1009) / 1009.0 + 0.1).collect();
            let data = Totals::new(&values, g, k).expect("finite");
            let mut drawn = vec![0.0; 13 * g];
            assert_eq!(weights(g, 4, 7, &mut drawn), Ok(()));
            let mut once = vec![0.0; 13 * k];
            assert_eq!(totals(&data, 4, 7, runs()[0], &mut once), Ok(()));
            for (drawn, row) in drawn.chunks(g).zip(once.chunks(k)) {
                let size = f64::from(u32::try_from(g).expect("few"));
                assert!((drawn.iter().sum::<f64>() - size).abs() < 1e-9);
                for (column, sum) in row.iter().enumerate() {
                    let expected: f64 = (0..g).map(|i| drawn[i] * values[i * k + column]).sum();
                    assert!((sum - expected).abs() < 1e-12 * expected * size, "{sum} {expected}");
                }
            }
            for run in runs() {
                let mut out = vec![0.0; 13 * k];
                assert_eq!(totals(&data, 4, 7, run, &mut out), Ok(()));
                assert_eq!(out, once);
                let mut later = vec![0.0; 3 * k];
                assert_eq!(totals(&data, 4, 12, run, &mut later), Ok(()));
                assert_eq!(later, once[5 * k..8 * k]);
            }
        }
    }

    /// Mean 1, variance (G - 1) / (G + 1) and skewness near 2 of a weight, within five standard
    /// errors.
    #[test]
    fn weights_are_dirichlet() {
        let mut drawn = vec![0.0; 50 * 10_000];
        assert_eq!(weights(50, 1, 0, &mut drawn), Ok(()));
        assert!(drawn.iter().all(|&weight| weight > 0.0));
        let power =
            |power: i32| drawn.iter().map(|weight| (weight - 1.0).powi(power)).sum::<f64>() / 5e5;
        let variance = 49.0 / 51.0;
        assert!((power(2) - variance).abs() < 5.0 * (8.0_f64 / 5e5).sqrt(), "{}", power(2));
        let third = 2.0 * 49.0 * 48.0 / (51.0 * 52.0);
        assert!((power(3) - third).abs() < 5.0 * (265.0_f64 / 5e5).sqrt(), "{}", power(3));
    }

    #[test]
    fn invalid_input_is_refused() {
        let what = "the number of clusters";
        assert_eq!(weights(0, 1, 0, &mut [0.0]), Err(Error::Empty { what }));
    }
}
