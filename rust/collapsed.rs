//! The cluster bootstrap when many clusters have the same totals: a multinomial draw of the
//! distinct rows.

use std::num::NonZeroUsize;

use crate::binomial::Chance;
use crate::bootstrap::Totals;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_rows, check_some};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES};
use crate::stream::{Stream, check_range};

/// Classes of equal clusters.
///
/// The number drawn of each class, given those of the classes before, is binomial.
#[derive(Debug, Clone)]
pub struct Classes {
    n_clusters: u32,
    /// Chance of each class among itself and those after it.
    chances: Vec<Chance>,
}

impl Classes {
    /// Classes of so many clusters each.
    ///
    /// # Errors
    /// [`Error::Empty`] without clusters, [`Error::TooManyRows`] past 32 bits.
    pub fn new<T: Copy + Into<u64>>(sizes: &[T]) -> Result<Self> {
        check_some("the number of classes", sizes.len())?;
        let total = sizes.iter().fold(0_u64, |sum, &size| sum.saturating_add(size.into()));
        let n_clusters = check_rows(usize::try_from(total).unwrap_or(usize::MAX))?;
        check_some("the number of clusters", n_clusters as usize)?;
        let mut left = n_clusters;
        let chances = sizes.iter().map(|&size| {
            let size = u32::try_from(size.into()).unwrap_or(u32::MAX);
            let chance = Chance::new(size, left);
            left -= size;
            // Nothing is left for the classes without clusters at the end.
            if size == 0 { Chance::new(0, 1) } else { chance }
        });
        Ok(Self { n_clusters, chances: chances.collect() })
    }

    /// Number of classes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chances.len()
    }

    /// Never: there is a class.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chances.is_empty()
    }

    /// Calls `visit` with each place and the number drawn of its class.
    #[inline]
    fn draw<P>(
        &self,
        stream: &mut Stream,
        places: impl Iterator<Item = P>,
        mut visit: impl FnMut(P, u32),
    ) {
        let mut left = self.n_clusters;
        for (place, chance) in places.zip(&self.chances) {
            let drawn = chance.draw(stream, left);
            left -= drawn;
            visit(place, drawn);
        }
    }
}

/// Times each class is drawn in the replicates `first`, `first + 1`, ...: fills `out`, (R, D) row
/// by row.
///
/// # Errors
/// [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn counts(classes: &Classes, seed: u64, first: u64, out: &mut [u32]) -> Result<()> {
    check_range(first, count_rows(out, classes.len())?)?;
    let cpu = Cpu::detect();
    for (row, index) in out.chunks_exact_mut(classes.len()).zip(first..) {
        let mut stream = Stream::new(cpu, seed, index);
        classes.draw(&mut stream, row.iter_mut(), |place, drawn| *place = drawn);
    }
    Ok(())
}

/// Replicate totals of the replicates `first`, `first + 1`, ...: fills `out`, (R, K) row by row.
///
/// A row is the sum over the classes, in ascending order, of the times drawn times the class's row
/// of `totals`.
///
/// # Errors
/// [`Error::Shape`] for another number of rows, [`Error::PartialReplicate`] or
/// [`Error::ReplicateRange`].
pub fn totals(
    totals: &Totals,
    classes: &Classes,
    seed: u64,
    first: u64,
    run: Run,
    out: &mut [f64],
) -> Result<()> {
    let n_columns: NonZeroUsize = totals.n_columns();
    if totals.n_clusters() != classes.len() {
        return Err(Error::Shape {
            name: "multiplicities",
            expected: totals.n_clusters(),
            actual: classes.len(),
        });
    }
    check_range(first, count_rows(out, n_columns.get())?)?;
    let scratch = || (vec![[0_u32; LANES]; classes.len()], vec![[0.0; LANES]; n_columns.get()]);
    parallel::fill(out, Split::lanes(n_columns, run), scratch, |(counts, sums), start, rows| {
        let mut indices = (first..).skip(start);
        for rows in rows.chunks_mut(n_columns.get() * LANES) {
            for (lane, index) in (0..rows.len() / n_columns).zip(&mut indices) {
                let mut stream = Stream::new(run.cpu, seed, index);
                let places = counts.iter_mut().map(|counts| &mut counts[lane]);
                classes.draw(&mut stream, places, |place, drawn| *place = drawn);
            }
            sums.fill([0.0; LANES]);
            products::add(run.cpu, counts, totals.values(), sums);
            products::write_lanes(sums, |sum| sum, rows);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::runs;

    #[test]
    fn totals_are_counts_times_totals() {
        let sizes = [5_u32, 0, 40, 1, 900, 0];
        let values: Vec<f64> = (0..18).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3).collect();
        let classes = Classes::new(&sizes).expect("there are clusters");
        let data = Totals::new(&values, 6, 3).expect("finite");
        let mut drawn = vec![9; 29 * 6];
        assert_eq!(counts(&classes, 2, 1, &mut drawn), Ok(()));
        for run in runs() {
            let mut out = vec![0.0; 29 * 3];
            assert_eq!(totals(&data, &classes, 2, 1, run, &mut out), Ok(()));
            for (drawn, row) in drawn.chunks(6).zip(out.chunks(3)) {
                assert_eq!(drawn.iter().sum::<u32>(), 946);
                assert_eq!((drawn[1], drawn[5]), (0, 0));
                for (column, sum) in row.iter().enumerate() {
                    let expected = (0..6).fold(0.0, |sum, class| {
                        sum + f64::from(drawn[class]) * values[class * 3 + column]
                    });
                    assert_eq!(sum.to_bits(), expected.to_bits());
                }
            }
            for (rows, first) in out.chunks(5 * 3).zip((1..).step_by(5)) {
                let mut chunk = vec![0.0; rows.len()];
                assert_eq!(totals(&data, &classes, 2, first, run, &mut chunk), Ok(()));
                assert_eq!(chunk, rows);
            }
        }
    }

    /// Means and covariances of a multinomial, within five standard errors.
    #[test]
    fn counts_are_multinomial() {
        const DRAWS: f64 = 40_000.0;
        let sizes = [5_u64, 40, 1, 154];
        let classes = Classes::new(&sizes).expect("there are clusters");
        let mut drawn = vec![0; 4 * 40_000];
        assert_eq!(counts(&classes, 2, 0, &mut drawn), Ok(()));
        for a in 0..4 {
            for b in 0..4 {
                let share = |class: usize| [5.0, 40.0, 1.0, 154.0][class] / 200.0;
                let away = |row: &[u32], class: usize| f64::from(row[class]) - 200.0 * share(class);
                let mean = drawn.chunks(4).map(|row| away(row, a)).sum::<f64>() / DRAWS;
                let both = drawn.chunks(4).map(|row| away(row, a) * away(row, b)).sum::<f64>();
                let variance = |class| 200.0 * share(class) * (1.0 - share(class));
                let expected = if a == b { variance(a) } else { -200.0 * share(a) * share(b) };
                assert!(mean.abs() < 5.0 * (variance(a) / DRAWS).sqrt(), "{a}: {mean}");
                let error = 5.0 * (4.0 * variance(a) * variance(b) / DRAWS).sqrt();
                assert!((both / DRAWS - expected).abs() < error, "{a} {b}: {both}");
            }
        }
    }

    #[test]
    fn invalid_input_is_refused() {
        let none: [u32; 0] = [];
        let what = "the number of classes";
        assert_eq!(Classes::new(&none).err(), Some(Error::Empty { what }));
        let what = "the number of clusters";
        assert_eq!(Classes::new(&[0_u32, 0]).err(), Some(Error::Empty { what }));
        assert!(matches!(Classes::new(&[u64::MAX, 2]), Err(Error::TooManyRows { .. })));
        let classes = Classes::new(&[1_u32, 2]).expect("three clusters");
        let data = Totals::new(&[1.0], 1, 1).expect("finite");
        assert_eq!(
            totals(&data, &classes, 0, 0, runs()[0], &mut [0.0]),
            Err(Error::Shape { name: "multiplicities", expected: 1, actual: 2 })
        );
    }
}
