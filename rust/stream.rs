//! Random streams addressed by `(seed, index)`.
//!
//! A replicate's draws come from a stream of its own, so it does not matter which thread makes
//! them, or in which order. The draw below a bound is written out here instead of taken from a
//! distribution library, because libraries may change how they turn words into integers, and the
//! same seed must give the same resample for as long as possible.

use std::num::{NonZeroU32, NonZeroU64};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::error::{Error, Result};

/// 2^64 divided by the golden ratio, made odd; its multiples serve as round constants without
/// structure.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of integers determined by `(seed, index)`.
///
/// The generator is xoshiro256++ (Blackman and Vigna 2021, "Scrambled linear pseudorandom number
/// generators", ACM TOMS 47(4):36, doi 10.1145/3460772). Its 256-bit state comes from a Feistel
/// network over the pair `(seed, index)`: a round maps `(l, r)` to `(r, l + mix(r + c))`, with the
/// 64-bit finaliser of Steele, Lea and Flood (2014, "Fast splittable pseudorandom number
/// generators", OOPSLA, doi 10.1145/2660193.2660195) as `mix` and another constant `c` in each
/// round. The pair after four rounds is one half of the state, the pair after eight the other.
///
/// A round can be undone, so different pairs always give different states: no `(seed, index)`
/// shares its stream with `(seed + 1, index - 1)` or with any other pair. Four rounds let every
/// input bit reach every state bit (the count after which Luby and Rackoff 1988, doi
/// 10.1137/0217022, show such a network to resist even a test that may run it backwards, given
/// ideal round functions), so neighbouring seeds and neighbouring indices are unrelated.
#[derive(Debug, Clone)]
pub struct Stream {
    generator: Xoshiro256PlusPlus,
    /// High half of the last word, when only its low half has been used.
    half: Option<u32>,
}

impl Stream {
    /// The stream of replicate `index` under `seed`.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(state(seed, index)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Self { generator: Xoshiro256PlusPlus::from_seed(bytes), half: None }
    }

    /// A uniform integer below `n`.
    ///
    /// Multiplies a random word by `n` and keeps the high part, after rejecting the few words that
    /// would favour some results (Lemire 2019, "Fast random integer generation in an interval", ACM
    /// TOMACS 29(1):3, doi 10.1145/3230636). A bound below 2^32 takes half a word, the low half
    /// first; a half that is left over waits for the next such bound.
    pub fn below(&mut self, n: NonZeroU64) -> u64 {
        if let Ok(narrow) = NonZeroU32::try_from(n) {
            let mut drawn = 0;
            self.each_below(narrow, 1, |value| drawn = value);
            return u64::from(drawn);
        }
        let threshold = n.get().wrapping_neg() % n;
        loop {
            let product = u128::from(self.generator.next_u64()) * u128::from(n.get());
            let (low, high) = split_wide(product);
            if low >= threshold {
                return high;
            }
        }
    }

    /// Calls `visit` with each of `times` uniform integers below `n`: the same integers as `times`
    /// calls of [`Self::below`].
    #[inline]
    pub fn each_below(&mut self, n: NonZeroU32, times: u32, mut visit: impl FnMut(u32)) {
        let threshold = n.get().wrapping_neg() % n;
        let accept = |half: u32| {
            let (low, high) = split(u64::from(half) * u64::from(n.get()));
            (low >= threshold).then_some(high)
        };
        let mut left = times;
        if left > 0
            && let Some(value) = self.half.take().and_then(accept)
        {
            visit(value);
            left -= 1;
        }
        while left > 0 {
            let (low, high) = split(self.generator.next_u64());
            if let Some(value) = accept(low) {
                visit(value);
                left -= 1;
                if left == 0 {
                    self.half = Some(high);
                    return;
                }
            }
            if let Some(value) = accept(high) {
                visit(value);
                left -= 1;
            }
        }
    }
}

/// Checks that `n_resamples` replicates from `first` on have a number each.
///
/// # Errors
/// [`Error::ReplicateRange`] when the last number would not fit in 64 bits.
pub fn check_range(first: u64, n_resamples: usize) -> Result<()> {
    u64::try_from(n_resamples)
        .ok()
        .and_then(|n| first.checked_add(n))
        .map(|_| ())
        .ok_or(Error::ReplicateRange { first, n_resamples })
}

/// State of the generator for a pair. It is never all zero, which the generator could not leave:
/// the second four rounds take `(0, 0)` elsewhere.
fn state(seed: u64, index: u64) -> [u64; 4] {
    let first = four_rounds((seed, index), 0);
    let second = four_rounds(first, 4);
    [first.0, first.1, second.0, second.1]
}

/// Rounds `done + 1` to `done + 4` of the network.
fn four_rounds(pair: (u64, u64), done: u64) -> (u64, u64) {
    (done + 1..=done + 4).fold(pair, |(left, right), round| {
        let constant = round.wrapping_mul(GOLDEN);
        (right, left.wrapping_add(mix(right.wrapping_add(constant))))
    })
}

/// A bijection of 64-bit words in which every input bit moves about half of the output bits.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Low and high half.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each half is meant to lose the other")]
const fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Low and high half of a double word.
#[expect(clippy::cast_possible_truncation, reason = "each half is meant to lose the other")]
const fn split_wide(word: u128) -> (u64, u64) {
    (word as u64, (word >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn wide(n: u64) -> NonZeroU64 {
        NonZeroU64::new(n).expect("bounds in tests are positive")
    }

    fn narrow(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).expect("bounds in tests are positive")
    }

    /// The golden values come from a separate implementation with arbitrary-precision integers.
    #[test]
    fn states_keep_their_values() {
        assert_eq!(
            state(0, 0),
            [
                0x56b6_e7e1_14a7_1868,
                0x2777_1ff3_8eea_f660,
                0x19ba_f13a_c457_a0b4,
                0xda24_9889_5c14_4c46
            ]
        );
        assert_eq!(
            state(u64::MAX, u64::MAX),
            [
                0x1d92_0578_cfd7_e94c,
                0xb5af_9580_51f9_2bf7,
                0x65ab_6380_9d8b_0f8b,
                0xe30f_ae45_1ee9_b7df
            ]
        );
    }

    #[test]
    fn draws_keep_their_values() {
        let mut stream = Stream::new(0, 0);
        let drawn: Vec<u64> = (0..8).map(|_| stream.below(wide(1000))).collect();
        assert_eq!(drawn, [420, 546, 113, 808, 181, 85, 307, 771]);

        // Narrow and wide bounds mixed, so that a waiting half and rejections both occur.
        let mut stream = Stream::new(20_261_130, 7);
        let bounds =
            [2, 6, 1000, 3_000_000_000, 1 << 32, 1_000_000_000_000_000_000, u64::MAX, 7, 5];
        let drawn: Vec<u64> = bounds.iter().map(|&n| stream.below(wide(n))).collect();
        assert_eq!(
            drawn,
            [
                1,
                5,
                87,
                1_941_467_794,
                58_061_272,
                817_503_040_484_085_824,
                1_115_477_343_724_676_637,
                1,
                0
            ]
        );
    }

    #[test]
    fn many_draws_are_the_single_draws() {
        for n in [1, 2, 3, 6, 1000, 3_000_000_000, u32::MAX] {
            let mut single = Stream::new(5, 9);
            let expected: Vec<u64> = (0..23).map(|_| single.below(wide(u64::from(n)))).collect();
            let mut many = Stream::new(5, 9);
            let mut drawn = Vec::new();
            for times in [0, 1, 2, 3, 0, 7, 10] {
                many.each_below(narrow(n), times, |value| drawn.push(u64::from(value)));
            }
            assert_eq!(drawn, expected, "below {n}");
        }
    }

    /// Chi-square statistics of uniform draws, against the 0.9999 quantiles for their degrees of
    /// freedom.
    #[test]
    fn draws_are_uniform() {
        for (n, quantile) in [(2_u32, 15.14), (6, 25.74), (24, 57.08), (100, 160.06)] {
            let mut cells = vec![0_u32; n as usize];
            // Many short streams, because that is how replicates use them.
            for index in 0..2_000 {
                Stream::new(42, index).each_below(narrow(n), 100, |v| cells[v as usize] += 1);
            }
            let expected = 200_000.0 / f64::from(n);
            let chi_square: f64 =
                cells.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            assert!(chi_square < quantile, "below {n}: {chi_square}");
        }
    }

    /// A bound of 3/4 of the range would show the bias of a draw without rejection: it rejects
    /// every fourth half.
    #[test]
    fn rejection_removes_the_bias() {
        let n = narrow(3 << 30);
        let mut thirds = [0_u32; 3];
        Stream::new(1, 1).each_below(n, 30_000, |v| thirds[(v >> 30) as usize] += 1);
        let mut residues = [0_u32; 3];
        Stream::new(1, 2).each_below(n, 30_000, |v| residues[(v % 3) as usize] += 1);
        for cells in [thirds, residues] {
            let chi_square: f64 =
                cells.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
            assert!(chi_square < 18.42, "0.9999 quantile with 2 degrees of freedom: {chi_square}");
        }
    }

    #[test]
    fn neighbours_share_nothing() {
        let mut words = HashSet::new();
        for seed in 0..100 {
            for index in 0..100 {
                words.extend(state(seed, index));
            }
        }
        assert_eq!(words.len(), 40_000);

        // Words of neighbouring streams differ in half of their bits: 32 +- 5 standard errors of a
        // mean over 10,000 words.
        let mut differing = 0;
        for index in 0..10_000 {
            let word = |seed, index| Stream::new(seed, index).generator.next_u64();
            differing += (word(3, index) ^ word(3, index + 1)).count_ones();
            differing += (word(index, 3) ^ word(index + 1, 3)).count_ones();
        }
        let mean = f64::from(differing) / 20_000.0;
        assert!((mean - 32.0).abs() < 5.0 * 4.0 / 100.0, "{mean}");
    }

    #[test]
    fn no_state_is_all_zero() {
        assert_ne!(four_rounds((0, 0), 4), (0, 0));
    }

    #[test]
    fn numbers_stay_within_64_bits() {
        assert_eq!(check_range(u64::MAX - 5, 5), Ok(()));
        assert_eq!(
            check_range(u64::MAX - 5, 6),
            Err(Error::ReplicateRange { first: u64::MAX - 5, n_resamples: 6 })
        );
    }
}
