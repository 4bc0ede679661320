//! The bootstrap of two crossed classifications, such as scenarios and judges: both are drawn, each
//! independently of the other, and a pair weighs the product of its multiplicities.
//!
//! Owen (2007, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2):386-411, doi
//! 10.1214/07-AOAS122).

use std::num::NonZeroUsize;

use crate::cpu::Cpu;
use crate::error::{Error, Result, check_values};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES};
use crate::scheme::{Draws, Scheme};
use crate::stream::check_range;

/// Totals of the pairs of two classifications, and how each is drawn.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    values: &'a [f64],
    n_columns: NonZeroUsize,
    rows: Scheme,
    columns: Scheme,
}

impl<'a> Pairs<'a> {
    /// Reads `values` as (first, second, columns).
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`] or [`Error::NotFinite`].
    pub fn new(values: &'a [f64], sizes: [usize; 2], n_columns: usize) -> Result<Self> {
        let [rows, columns] = sizes;
        let pairs = Self {
            values,
            n_columns: NonZeroUsize::MIN,
            rows: Scheme::plain(rows)?,
            columns: Scheme::plain(columns)?,
        };
        let n_columns =
            NonZeroUsize::new(n_columns).ok_or(Error::Empty { what: "the number of columns" })?;
        check_values("totals", values, &[rows, columns, n_columns.get()])?;
        Ok(Self { n_columns, ..pairs })
    }
}

/// Multiplicities of the replicates `first`, `first + 1`, ...: fills `out`, a row of G1 + G2 each,
/// those of the first classification and then those of the second.
///
/// Those of the first are those of [`crate::bootstrap::counts`].
///
/// # Errors
/// [`Error::PartialReplicate`], [`Error::Empty`] or [`Error::ReplicateRange`].
pub fn counts(schemes: [&Scheme; 2], seed: u64, first: u64, out: &mut [u32]) -> Result<()> {
    let [rows, columns] = schemes;
    let width = rows.n_clusters() + columns.n_clusters();
    check_range(first, count_rows(out, width)?)?;
    let cpu = Cpu::detect();
    let mut draws = Draws::new(cpu);
    for (row, index) in out.chunks_exact_mut(width).zip(first..) {
        draw(&mut draws, schemes, cpu, seed, index, row);
    }
    Ok(())
}

fn draw(
    draws: &mut Draws,
    [rows, columns]: [&Scheme; 2],
    cpu: Cpu,
    seed: u64,
    index: u64,
    counts: &mut [u32],
) {
    let (first, second) = counts.split_at_mut(rows.n_clusters());
    draws.start(rows, cpu, seed, index);
    rows.count(draws, first);
    draws.go_on(columns);
    columns.count(draws, second);
}

/// Replicate totals of the replicates `first`, `first + 1`, ...: fills `out`, (R, K) row by row.
///
/// A row is the sum over the pairs, in ascending order of the first and then of the second, of the
/// product of their multiplicities times the pair's totals.
///
/// # Errors
/// [`Error::PartialReplicate`], [`Error::Empty`] or [`Error::ReplicateRange`].
pub fn totals(pairs: &Pairs, seed: u64, first: u64, run: Run, out: &mut [f64]) -> Result<()> {
    let Pairs { values, n_columns, rows: scheme, columns } = pairs;
    let (n_columns, n_rows, n_second) = (*n_columns, scheme.n_clusters(), columns.n_clusters());
    check_range(first, count_rows(out, n_columns.get())?)?;
    let scratch = || Batch {
        draws: Draws::new(run.cpu),
        counts: vec![0; n_rows + n_second],
        multiplicities: vec![[0.0; LANES]; n_rows + n_second],
        weights: vec![[0.0; LANES]; n_second],
        sums: vec![[0.0; LANES]; n_columns.get()],
    };
    parallel::fill(out, Split::lanes(n_columns, run), scratch, |batch, start, rows| {
        let mut indices = (first..).skip(start);
        for rows in rows.chunks_mut(n_columns.get() * LANES) {
            for (lane, index) in (0..rows.len() / n_columns).zip(&mut indices) {
                let schemes = [scheme, columns];
                draw(&mut batch.draws, schemes, run.cpu, seed, index, &mut batch.counts);
                for (lanes, &count) in batch.multiplicities.iter_mut().zip(&batch.counts) {
                    lanes[lane] = f64::from(count);
                }
            }
            batch.sums.fill([0.0; LANES]);
            let (first, second) = batch.multiplicities.split_at(n_rows);
            for (first, values) in first.iter().zip(values.chunks_exact(n_second * n_columns.get()))
            {
                for (weights, second) in batch.weights.iter_mut().zip(second) {
                    for ((weight, a), b) in weights.iter_mut().zip(first).zip(second) {
                        *weight = a * b;
                    }
                }
                products::add(run.cpu, &batch.weights, values, &mut batch.sums);
            }
            products::write_lanes(&batch.sums, |sum| sum, rows);
        }
    });
    Ok(())
}

/// What a thread needs.
struct Batch {
    draws: Draws,
    counts: Vec<u32>,
    /// Of both classifications, one after the other.
    multiplicities: Vec<[f64; LANES]>,
    /// Of the pairs of one member of the first classification.
    weights: Vec<[f64; LANES]>,
    sums: Vec<[f64; LANES]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap;
    use crate::parallel::runs;

    #[test]
    fn totals_are_products_of_counts_times_totals() {
        for (a, b, k) in [(1, 1, 1), (30, 4, 5), (3, 50, 2), (20, 20, 9)] {
            let values: Vec<f64> = (0_u32..)
                .take(a * b * k)
                .map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3)
                .collect();
            let pairs = Pairs::new(&values, [a, b], k).expect("finite");
            let mut drawn = vec![9; 13 * (a + b)];
            assert_eq!(counts([&pairs.rows, &pairs.columns], 4, 7, &mut drawn), Ok(()));
            let mut alone = vec![0; 13 * a];
            assert_eq!(bootstrap::counts(&pairs.rows, 4, 7, &mut alone), Ok(()));
            for run in runs() {
                let mut out = vec![0.0; 13 * k];
                assert_eq!(totals(&pairs, 4, 7, run, &mut out), Ok(()));
                for ((drawn, row), alone) in
                    drawn.chunks(a + b).zip(out.chunks(k)).zip(alone.chunks(a))
                {
                    let (first, second) = drawn.split_at(a);
                    assert_eq!(first, alone);
                    assert_eq!(second.iter().sum::<u32>() as usize, b);
                    for (column, sum) in row.iter().enumerate() {
                        let expected = (0..a * b).fold(0.0, |sum, pair| {
                            let weight = f64::from(first[pair / b]) * f64::from(second[pair % b]);
                            sum + weight * values[pair * k + column]
                        });
                        assert_eq!(sum.to_bits(), expected.to_bits());
                    }
                }
                let mut later = vec![0.0; 3 * k];
                assert_eq!(totals(&pairs, 4, 12, run, &mut later), Ok(()));
                assert_eq!(later, out[5 * k..8 * k]);
            }
        }
    }

    #[test]
    fn invalid_input_is_refused() {
        let none = Error::Empty { what: "the number of clusters" };
        assert_eq!(Pairs::new(&[], [0, 2], 1).err(), Some(none.clone()));
        assert_eq!(Pairs::new(&[], [2, 0], 1).err(), Some(none));
        let what = "the number of columns";
        assert_eq!(Pairs::new(&[], [2, 2], 0).err(), Some(Error::Empty { what }));
        assert_eq!(
            Pairs::new(&[1.0], [2, 2], 1).err(),
            Some(Error::Shape { name: "totals", expected: 4, actual: 1 })
        );
    }
}
