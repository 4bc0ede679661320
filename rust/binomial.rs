//! Binomial draws that are the same integers everywhere.
//!
//! All arithmetic is that of IEEE 754 without fusing, and the logarithms come from the crate `libm`
//! and not from the platform.

// Counts below 2^32 are exact in a float, and floats are turned into integers after they have been
// found to lie in range.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::stream::Stream;

/// Most trials that are tossed one by one, as bits, when both outcomes are equally likely.
const MOST_TOSSES: u32 = 512;

/// Expected successes below which counting up beats rejection, and for which the rejection is not
/// made.
const FEW: f64 = 10.0;

/// Successes past which counting up starts again: with fewer than ten expected, the chance of so
/// many is below 1e-80, while the rounded terms of the sum could stay below the random number for
/// ever.
const MOST_COUNTED: u32 = 128;

/// The chance of a success.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    /// Chance of the rarer outcome, at most 1/2.
    rarer: f64,
    /// Chance of the other outcome.
    other: f64,
    /// Natural logarithm of `other`.
    log_other: f64,
    /// Whether the rarer outcome is the failure.
    flipped: bool,
}

impl Chance {
    /// `part` out of `whole`; a part beyond the whole, or of nothing, counts as all of it.
    #[must_use]
    pub fn new(part: u32, whole: u32) -> Self {
        let (part, whole) = (part.min(whole), whole.max(1));
        let rest = whole - part;
        let flipped = part > rest;
        let rarer = f64::from(part.min(rest)) / f64::from(whole);
        let other = f64::from(part.max(rest)) / f64::from(whole);
        Self { rarer, other, log_other: libm::log1p(-rarer), flipped }
    }

    /// Successes among `n` trials.
    ///
    /// Bits are counted for few tosses of an even coin. Otherwise, when less than ten of the rarer
    /// outcome are expected, the probabilities are added up until they pass a random number; else
    /// it is the transformed rejection BTRS of Hörmann (1993, "The generation of binomial random
    /// variates", J. Stat. Comput. Simul. 46:101-110, doi 10.1080/00949659308811496). Both are
    /// exact up to the rounding of floats.
    #[inline]
    pub fn draw(&self, stream: &mut Stream, n: u32) -> u32 {
        #[expect(clippy::float_cmp, reason = "halves are exact")]
        let even = self.rarer == 0.5;
        if even && n <= MOST_TOSSES {
            return toss(stream, n);
        }
        if self.rarer <= 0.0 || n == 0 {
            return if self.flipped { n } else { 0 };
        }
        let drawn = if f64::from(n) * self.rarer < FEW {
            self.count_up(stream, n)
        } else {
            self.reject(stream, n)
        };
        if self.flipped { n - drawn } else { drawn }
    }

    /// Inversion from zero upwards.
    fn count_up(&self, stream: &mut Stream, n: u32) -> u32 {
        let odds = self.rarer / self.other;
        let scale = (f64::from(n) + 1.0) * odds;
        let none = libm::exp(f64::from(n) * self.log_other);
        'again: loop {
            let mut left = stream.unit();
            let mut chance = none;
            let mut drawn = 0;
            while left > chance {
                left -= chance;
                drawn += 1;
                if drawn > n.min(MOST_COUNTED) {
                    continue 'again;
                }
                chance *= scale / f64::from(drawn) - odds;
            }
            return drawn;
        }
    }

    /// Transformed rejection with a squeeze; the names are those of the paper.
    #[allow(clippy::many_single_char_names)]
    fn reject(&self, stream: &mut Stream, trials: u32) -> u32 {
        let (n, p, q) = (f64::from(trials), self.rarer, self.other);
        let spread = (n * p * q).sqrt();
        let b = 1.15 + 2.53 * spread;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let c = n * p + 0.5;
        let v_r = 0.92 - 4.2 / b;
        loop {
            let v = stream.unit();
            let u = stream.unit() - 0.5;
            let us = 0.5 - u.abs();
            let place = (2.0 * a / us + b) * u + c;
            if us >= 0.07 && v <= v_r {
                return place as u32;
            }
            // Cut off, a negative place would be no success.
            if place < 0.0 || place >= n + 1.0 {
                continue;
            }
            let k = f64::from(place as u32);
            let alpha = (2.83 + 5.1 / b) * spread;
            let m = f64::from(((n + 1.0) * p) as u32);
            let v = v * alpha / (a / (us * us) + b);
            if libm::log(v) <= log_ratio(n, p / q, m, k) {
                return place as u32;
            }
        }
    }
}

/// Heads among `n` tosses of an even coin.
#[inline]
fn toss(stream: &mut Stream, n: u32) -> u32 {
    let mut heads = 0;
    let mut left = n;
    while left > 64 {
        heads += stream.word().count_ones();
        left -= 64;
    }
    if left > 0 {
        heads += (stream.word() >> (64 - left)).count_ones();
    }
    heads
}

/// Logarithm of the probability of `k` successes over that of `m`.
///
/// From Stirling's formula with its error. The large terms are left out of it by hand, so that what
/// remains is as accurate for many trials as for few.
fn log_ratio(n: f64, odds: f64, m: f64, k: f64) -> f64 {
    let more = k - m;
    let slope = odds * (n - k + 1.0) / (k + 1.0);
    more * libm::log(slope)
        - (m + 0.5) * libm::log1p(more / (m + 1.0))
        - (n - m + 0.5) * libm::log1p(-more / (n - m + 1.0))
        + (stirling_error(m) - stirling_error(k))
        + (stirling_error(n - m) - stirling_error(n - k))
}

/// `ln k! - ((k + 1/2) ln (k + 1) - (k + 1) + 1/2 ln 2 pi)`.
fn stirling_error(k: f64) -> f64 {
    const SMALL: [f64; 10] = [
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_193,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
    ];
    if let Some(&error) = SMALL.get(k as usize) {
        return error;
    }
    let r = 1.0 / (k + 1.0);
    let square = r * r;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - square / 1680.0) * square) * square) * r
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;

    fn log_factorial(n: u32) -> f64 {
        libm::lgamma(f64::from(n) + 1.0)
    }

    /// Probability of `k` among `n`.
    fn chance(n: u32, p: f64, k: u32) -> f64 {
        if p <= 0.0 || p >= 1.0 {
            return f64::from(u8::from(k == if p <= 0.0 { 0 } else { n }));
        }
        let ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k);
        libm::exp(ways + f64::from(k) * libm::log(p) + f64::from(n - k) * libm::log1p(-p))
    }

    /// Chi-square against the exact probabilities, neighbouring counts taken together until 20 are
    /// expected; the Wilson-Hilferty bound for a chance of 1e-5.
    #[test]
    fn counts_follow_the_exact_probabilities() {
        const DRAWS: u32 = 200_000;
        for (place, (n, part, whole)) in (0..).zip([
            (1, 1, 3),
            (7, 1, 2),
            (130, 1, 2),
            (3, 9, 10),
            (5, 4, 4),
            (5, 0, 4),
            (40, 1, 9),
            (33, 1, 3),
            (25, 2, 5),
            (21, 1, 2),
            (600, 1, 2),
            (600, 1, 60),
            (1_000, 17, 100),
            (1_000, 83, 100),
            (100_000, 1, 20_000),
            (100_000, 1, 9_000),
            (100_000, 37, 99),
            (1_000_000, 1, 2),
            (4_000_000_000, 1, 300_000_000),
            (50_000_000, 1, 1_000),
        ]) {
            let p = f64::from(part) / f64::from(whole);
            let chances = Chance::new(part, whole);
            let mean = f64::from(n) * p;
            let width = (12.0 * (mean * (1.0 - p)).sqrt() + 30.0).ceil();
            let start = (mean - width).max(0.0) as u32;
            let end = (mean + width).min(f64::from(n)) as u32;
            let mut cells = vec![0_u32; (end - start) as usize + 1];
            let mut stream = Stream::new(Cpu::detect(), 77, place);
            for _ in 0..DRAWS {
                let drawn = chances.draw(&mut stream, n);
                assert!((start..=end).contains(&drawn), "{drawn} of {n} at {p}");
                cells[(drawn - start) as usize] += 1;
            }
            let (mut chi_square, mut groups) = (0.0, 0.0_f64);
            let (mut expected, mut observed, mut left) = (0.0, 0.0, f64::from(DRAWS));
            for (&cell, k) in cells.iter().zip(start..) {
                let here = f64::from(DRAWS) * chance(n, p, k);
                left -= here;
                expected += here;
                observed += f64::from(cell);
                if expected >= 20.0 && (left >= 20.0 || k == end) || k == end && expected > 0.0 {
                    chi_square += (observed - expected) * (observed - expected) / expected;
                    groups += 1.0;
                    (expected, observed) = (0.0, 0.0);
                }
            }
            let df = groups - 1.0;
            let bound = if df > 0.0 {
                let spread = 2.0 / (9.0 * df);
                df * (1.0 - spread + 4.265 * spread.sqrt()).powi(3)
            } else {
                1e-6
            };
            assert!(chi_square < bound, "{n} at {p}: {chi_square} with {df}");
        }
    }

    /// Both methods where they meet, and the tosses, agree in mean and variance with theory within
    /// five standard errors.
    #[test]
    fn moments_are_right_where_the_methods_meet() {
        let mut stream = Stream::new(Cpu::detect(), 78, 0);
        for (n, part, whole) in
            [(99, 1, 10), (101, 1, 10), (512, 1, 2), (513, 1, 2), (20, 499, 1000)]
        {
            let p = f64::from(part) / f64::from(whole);
            let (mean, variance) = (f64::from(n) * p, f64::from(n) * p * (1.0 - p));
            let chances = Chance::new(part, whole);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..100_000 {
                let away = f64::from(chances.draw(&mut stream, n)) - mean;
                sum += away;
                squares += away * away;
            }
            assert!((sum / 1e5).abs() < 5.0 * (variance / 1e5).sqrt(), "{n} at {p}: {sum}");
            let error = 5.0 * variance * (3.0 / 1e5_f64).sqrt();
            assert!((squares / 1e5 - variance).abs() < error, "{n} at {p}: {squares}");
        }
    }

    #[test]
    fn ratios_are_those_of_the_probabilities() {
        for (n, p, m, k) in
            [(50, 0.3, 15, 2), (50, 0.3, 15, 50), (1_000, 0.01, 10, 0), (9_000, 0.5, 4_500, 4_400)]
        {
            let expected = libm::log(chance(n, p, k) / chance(n, p, m));
            let (n, m, k) = (f64::from(n), f64::from(m), f64::from(k));
            let ratio = log_ratio(n, p / (1.0 - p), m, k);
            assert!((ratio - expected).abs() < 1e-9, "{n} {p} {m} {k}: {ratio} {expected}");
        }
    }

    #[test]
    fn certain_outcomes_are_certain() {
        let mut stream = Stream::new(Cpu::detect(), 1, 0);
        for n in [0, 1, 600, u32::MAX] {
            assert_eq!(Chance::new(0, 7).draw(&mut stream, n), 0);
            assert_eq!(Chance::new(7, 7).draw(&mut stream, n), n);
            assert_eq!(Chance::new(9, 7).draw(&mut stream, n), n);
        }
        assert_eq!(Chance::new(1, 2).draw(&mut stream, 0), 0);
    }

    #[test]
    fn draws_keep_their_values() {
        let mut stream = Stream::new(Cpu::plain(), 5, 5);
        let drawn = [(10, 1, 2), (70, 1, 2), (90, 1, 10), (1_000, 1, 3), (100_000, 9, 10)]
            .map(|(n, part, whole)| Chance::new(part, whole).draw(&mut stream, n));
        assert_eq!(drawn, [7, 21, 5, 316, 90_070]);
    }
}
