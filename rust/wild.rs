//! Weights of the wild cluster bootstrap: mean 0, variance 1, one a cluster.

use crate::cpu::Cpu;
use crate::error::{Result, check_rows, check_some};
use crate::flips::each_sign;
use crate::parallel::count_rows;
use crate::stream::{Stream, check_range};
use std::num::NonZeroU16;

/// Clusters that are weighted at a time: whole steps of a stream's four generators.
const STRETCH: usize = 1_024;

/// Square roots of 1/2 and 3/2.
const ROOTS: [f64; 2] = [std::f64::consts::FRAC_1_SQRT_2, 1.224_744_871_391_589];

/// A distribution of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 1 or -1, the signs of [`crate::flips::signs`].
    Rademacher,
    /// Plus or minus the roots of 1/2, 1 and 3/2, each as likely (Webb 2023, "Reworking wild
    /// bootstrap-based inference for clustered errors", Canadian Journal of Economics
    /// 56(3):839-858, doi 10.1111/caje.12661).
    Webb,
    /// With chance `(sqrt 5 + 1) / (2 sqrt 5)` the smaller root of `x^2 = x + 1`, else the larger
    /// (Mammen 1993, "Bootstrap and wild bootstrap for high dimensional linear models", Annals of
    /// Statistics 21(1):255-285, doi 10.1214/aos/1176349025).
    Mammen,
}

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
pub fn weights(
    kind: Kind,
    n_clusters: usize,
    seed: u64,
    first: u64,
    out: &mut [f64],
) -> Result<()> {
    check_some("the number of clusters", n_clusters)?;
    check_rows(n_clusters)?;
    check_range(first, count_rows(out, n_clusters)?)?;
    let cpu = Cpu::detect();
    for (row, index) in out.chunks_exact_mut(n_clusters).zip(first..) {
        draw(kind, &mut Stream::new(cpu, seed, index), row);
    }
    Ok(())
}

/// Weights of the clusters in one replicate, from its stream.
pub(crate) fn draw(kind: Kind, stream: &mut Stream, row: &mut [f64]) {
    match kind {
        Kind::Rademacher => each_sign(stream, row.iter_mut(), |weight, negative| {
            *weight = if negative { -1.0 } else { 1.0 };
        }),
        Kind::Webb => webb(stream, row),
        Kind::Mammen => mammen(stream, row),
    }
}

fn webb(stream: &mut Stream, row: &mut [f64]) {
    const SIX: NonZeroU16 = NonZeroU16::new(6).unwrap();
    let [half, more] = ROOTS;
    let points = [-more, -1.0, -half, half, 1.0, more];
    let mut places = [0; STRETCH];
    for row in row.chunks_mut(STRETCH) {
        let places = &mut places[..row.len()];
        stream.indices(SIX, places);
        for (weight, &mut place) in row.iter_mut().zip(places) {
            *weight = points[usize::from(place)];
        }
    }
}

fn mammen(stream: &mut Stream, row: &mut [f64]) {
    const LARGER: f64 = 1.618_033_988_749_895;
    /// 2^64 times the chance of the smaller root.
    const SMALLER: u64 = 0xb93e_4b8b_7fdb_b26b;
    let mut words = [0; STRETCH];
    for row in row.chunks_mut(STRETCH) {
        let words = &mut words[..row.len()];
        stream.words(words);
        for (weight, &mut word) in row.iter_mut().zip(words) {
            *weight = if word < SMALLER { 1.0 - LARGER } else { LARGER };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::flips;

    fn drawn(kind: Kind, n_clusters: usize, n: usize) -> Vec<f64> {
        let mut out = vec![0.0; n * n_clusters];
        assert_eq!(weights(kind, n_clusters, 3, 2, &mut out), Ok(()));
        out
    }

    /// The first four moments within five standard errors, for which no power exceeds 50.
    #[test]
    fn moments_are_right() {
        for (kind, third, fourth) in
            [(Kind::Rademacher, 0.0, 1.0), (Kind::Webb, 0.0, 7.0 / 6.0), (Kind::Mammen, 1.0, 2.0)]
        {
            let drawn = drawn(kind, 1_250, 400);
            for (power, expected) in [(1, 0.0), (2, 1.0), (3, third), (4, fourth)] {
                let mean = drawn.iter().map(|weight| weight.powi(power)).sum::<f64>() / 5e5;
                assert!((mean - expected).abs() < 0.02, "{kind:?} {power}: {mean}");
            }
        }
        let points = drawn(Kind::Webb, 60, 1_000);
        for point in [1.5_f64.sqrt(), 1.0, 0.5_f64.sqrt()] {
            for point in [point, -point] {
                let n =
                    points.iter().filter(|&&weight| weight.to_bits() == point.to_bits()).count();
                assert!(n.abs_diff(10_000) < 457, "{point}: {n}");
            }
        }
    }

    #[test]
    fn rademacher_weights_are_the_signs() {
        let mut signs = vec![0; 70 * 5];
        assert_eq!(flips::signs(70, 3, 2, &mut signs), Ok(()));
        let signs: Vec<f64> = signs.into_iter().map(f64::from).collect();
        assert_eq!(drawn(Kind::Rademacher, 70, 5), signs);
    }

    #[test]
    fn chunks_change_nothing() {
        for kind in [Kind::Rademacher, Kind::Webb, Kind::Mammen] {
            let mut later = vec![0.0; 3 * 1_500];
            assert_eq!(weights(kind, 1_500, 3, 4, &mut later), Ok(()));
            assert_eq!(later, drawn(kind, 1_500, 5)[2 * 1_500..]);
        }
    }

    #[test]
    fn invalid_input_is_refused() {
        let what = "the number of clusters";
        assert_eq!(weights(Kind::Webb, 0, 1, 0, &mut [0.0]), Err(Error::Empty { what }));
    }
}
