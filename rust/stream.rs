//! Random streams addressed by `(seed, index)`.
//!
//! A replicate's draws come from a stream of its own, so it does not matter which thread makes
//! them, or in which order. The draws are written out here instead of taken from a library of
//! distributions, because libraries may change how they turn words into integers, and the same seed
//! must give the same resample for as long as possible.

use std::array;
use std::num::NonZeroU16;

use crate::cpu::{Cpu, on_cpu};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::stream_wide::{fill_indices as fill_indices_wide, fill_words as fill_words_wide};

/// 2^64 divided by the golden ratio, made odd; its multiples serve as round constants without
/// structure.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Generators that step together, so that a wide register holds a word of each.
pub(crate) const LANES: usize = 4;

/// Rounds of the network that makes the state of one generator.
const ROUNDS: u64 = 8;

/// 16-bit draws from one word of every generator.
pub(crate) const QUARTERS: usize = 4 * LANES;

/// Words made in advance for those who take one at a time: those of four steps.
const WAITING: usize = 4 * LANES;

/// The four words of state of every generator: word by word, not generator by generator.
pub(crate) type State = [[u64; LANES]; 4];

/// A stream of integers determined by `(seed, index)`.
///
/// Four generators xoshiro256++ (Blackman and Vigna 2021, "Scrambled linear pseudorandom number
/// generators", ACM TOMS 47(4):36, doi 10.1145/3460772) take turns. The 256-bit state of each comes
/// from a Feistel network over the pair `(seed, index)`: a round maps `(l, r)` to
/// `(r, l + mix(r + c))`, with the 64-bit finaliser of Steele, Lea and Flood (2014, "Fast
/// splittable pseudorandom number generators", OOPSLA, doi 10.1145/2660193.2660195) as `mix` and
/// another constant `c` in each round of each network. The pair after four rounds is one half of
/// the state, the pair after eight the other.
///
/// A round can be undone, so different pairs always give different states: no `(seed, index)`
/// shares a generator with `(seed + 1, index - 1)` or with any other pair. Four rounds let every
/// input bit reach every state bit (the count after which Luby and Rackoff 1988, doi
/// 10.1137/0217022, show such a network to resist even a test that may run it backwards, given
/// ideal round functions), so neighbouring seeds and neighbouring indices are unrelated.
#[derive(Debug, Clone)]
pub struct Stream {
    cpu: Cpu,
    state: State,
    /// Words of the last few steps, of which the last `left` have not been used.
    words: [u64; WAITING],
    left: usize,
}

impl Stream {
    /// The stream of replicate `index` under `seed`.
    #[must_use]
    #[inline]
    pub fn new(cpu: Cpu, seed: u64, index: u64) -> Self {
        Self { cpu, state: states(seed, index), words: [0; WAITING], left: 0 }
    }

    /// A uniform 64-bit word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        if self.left == 0 {
            on_cpu!(self.cpu, fill_words, fill_words_wide, (&mut self.state, &mut self.words));
            self.left = WAITING;
        }
        let word = self.words[WAITING - self.left];
        self.left -= 1;
        word
    }

    /// A uniform float above 0 and below 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        to_unit(self.word())
    }

    /// Fills `out` with uniform words.
    ///
    /// The generators take a step for every four words; words left over, here or from before, are
    /// thrown away.
    #[inline]
    pub fn words(&mut self, out: &mut [u64]) {
        self.left = 0;
        on_cpu!(self.cpu, fill_words, fill_words_wide, (&mut self.state, out));
    }

    /// Fills `out` with uniform integers below `n`.
    ///
    /// Multiplies each quarter of a word, the lowest first, by `n` and keeps the high part, after
    /// rejecting the few quarters that would favour some results (Lemire 2019, "Fast random integer
    /// generation in an interval", ACM TOMACS 29(1):3, doi 10.1145/3230636). The generators take a
    /// step for every sixteen quarters; quarters left over, and words left over from before, are
    /// thrown away.
    #[inline]
    pub fn indices(&mut self, n: NonZeroU16, out: &mut [u16]) {
        self.left = 0;
        on_cpu!(self.cpu, fill_indices, fill_indices_wide, (&mut self.state, n, out));
    }
}

/// A uniform float above 0 and below 1 from a uniform word: the middle of one of 2^52 cells of
/// equal width.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "52 bits and a half are exact in a float")]
pub(crate) fn to_unit(word: u64) -> f64 {
    const CELL: f64 = 1.0 / (1_u64 << 52) as f64;
    ((word >> 12) as f64 + 0.5) * CELL
}

/// One step of every generator.
#[inline]
fn step(state: &mut State) -> [u64; LANES] {
    let [s0, s1, s2, s3] = state;
    array::from_fn(|lane| {
        let word = s0[lane].wrapping_add(s3[lane]).rotate_left(23).wrapping_add(s0[lane]);
        let shifted = s1[lane] << 17;
        s2[lane] ^= s0[lane];
        s3[lane] ^= s1[lane];
        s1[lane] ^= s2[lane];
        s0[lane] ^= s3[lane];
        s2[lane] ^= shifted;
        s3[lane] = s3[lane].rotate_left(45);
        word
    })
}

fn fill_words(state: &mut State, out: &mut [u64]) {
    for place in out.chunks_mut(LANES) {
        let words = step(state);
        place.copy_from_slice(&words[..place.len()]);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each half is meant to lose the other")]
fn fill_indices(state: &mut State, n: NonZeroU16, out: &mut [u16]) {
    let bound = u32::from(n.get());
    let threshold = threshold(n);
    let mut filled = 0;
    while filled < out.len() {
        for mut word in step(state) {
            // Which quarter is rejected cannot be predicted, so each is written and then kept or
            // not.
            for _ in 0..QUARTERS / LANES {
                let product = u32::from(word as u16) * bound;
                let Some(place) = out.get_mut(filled) else { return };
                *place = (product >> 16) as u16;
                filled += usize::from(product as u16 >= threshold);
                word >>= 16;
            }
        }
    }
}

/// The smallest low part that is not rejected.
#[expect(clippy::cast_possible_truncation, reason = "the rest of a division by 16 bits")]
pub(crate) fn threshold(n: NonZeroU16) -> u16 {
    ((1_u32 << 16) % u32::from(n.get())) as u16
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

/// States of the generators for a pair. None is ever all zero, which a generator could not leave:
/// the second four rounds take `(0, 0)` elsewhere.
#[inline]
fn states(seed: u64, index: u64) -> State {
    // Round by round through all networks, so that none waits for another.
    let mut pairs = [(seed, index); LANES];
    let mut state = [[0; LANES]; 4];
    for round in 1..=ROUNDS {
        let mut constant = round.wrapping_mul(GOLDEN);
        for (left, right) in &mut pairs {
            (*left, *right) = (*right, left.wrapping_add(mix(right.wrapping_add(constant))));
            constant = constant.wrapping_add(ROUNDS.wrapping_mul(GOLDEN));
        }
        if round == ROUNDS / 2 {
            state[0] = pairs.map(|(left, _)| left);
            state[1] = pairs.map(|(_, right)| right);
        }
    }
    state[2] = pairs.map(|(left, _)| left);
    state[3] = pairs.map(|(_, right)| right);
    state
}

/// A bijection of 64-bit words in which every input bit moves about half of the output bits.
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    fn narrow(n: u16) -> NonZeroU16 {
        NonZeroU16::new(n).expect("bounds in tests are positive")
    }

    /// State of one generator.
    fn state(seed: u64, index: u64, lane: usize) -> [u64; 4] {
        states(seed, index).map(|words| words[lane])
    }

    /// The golden values come from a separate implementation with arbitrary-precision integers.
    #[test]
    fn states_keep_their_values() {
        assert_eq!(
            state(0, 0, 0),
            [
                0x56b6_e7e1_14a7_1868,
                0x2777_1ff3_8eea_f660,
                0x19ba_f13a_c457_a0b4,
                0xda24_9889_5c14_4c46
            ]
        );
        assert_eq!(
            state(u64::MAX, u64::MAX, 0),
            [
                0x1d92_0578_cfd7_e94c,
                0xb5af_9580_51f9_2bf7,
                0x65ab_6380_9d8b_0f8b,
                0xe30f_ae45_1ee9_b7df
            ]
        );
        assert_eq!(
            state(20_261_130, 7, 3),
            [
                0x3afd_40b1_d01d_6f4e,
                0x9fee_1303_ed9c_f3af,
                0x0ce3_a248_2088_8f86,
                0x24d7_a0f6_69e3_408b
            ]
        );
    }

    #[test]
    fn words_are_those_of_four_generators_in_turn() {
        for cpu in [Cpu::plain(), Cpu::detect()] {
            let mut single = Stream::new(cpu, 9, 4);
            let mut generators: Vec<_> = (0..LANES)
                .map(|lane| {
                    let bytes: Vec<u8> =
                        state(9, 4, lane).iter().flat_map(|word| word.to_le_bytes()).collect();
                    Xoshiro256PlusPlus::from_seed(bytes.try_into().expect("32 bytes"))
                })
                .collect();
            let mut words = [0; 103];
            Stream::new(cpu, 9, 4).words(&mut words);
            for (place, word) in words.into_iter().enumerate() {
                assert_eq!(word, generators[place % LANES].next_u64());
                assert_eq!(word, single.word());
            }
        }
    }

    /// Draws after draws of all kinds, so that what is left over matters.
    #[test]
    fn the_width_of_registers_changes_no_integer() {
        let (mut plain, mut wide) =
            (Stream::new(Cpu::plain(), 1, 2), Stream::new(Cpu::detect(), 1, 2));
        for n in [1, 2, 3, 6, 255, 1_000, 1_024, 10_001, 16_384, 40_320, u16::MAX] {
            for size in [0, 1, 15, 16, 17, 100, 1_000] {
                let (mut a, mut b) = (vec![0; size], vec![0; size]);
                plain.indices(narrow(n), &mut a);
                wide.indices(narrow(n), &mut b);
                assert_eq!(a, b, "{size} below {n}");
                assert!(a.iter().all(|&drawn| drawn < n));
                let (mut a, mut b) = (vec![0; size], vec![0; size]);
                plain.words(&mut a);
                wide.words(&mut b);
                assert_eq!(a, b);
                assert_eq!(plain.word(), wide.word());
                assert_eq!(plain.unit().to_bits(), wide.unit().to_bits());
            }
        }
    }

    /// By the definition: quarters from the lowest, high part of the product, low parts below the
    /// rest of 2^16 divided by n rejected.
    #[test]
    fn indices_are_the_high_parts_of_products() {
        for n in [3, 1_000, 40_320] {
            let mut words = [0; 400];
            Stream::new(Cpu::plain(), 3, 3).words(&mut words);
            let expected: Vec<u64> = words
                .iter()
                .flat_map(|word| [0, 16, 32, 48].map(|shift| (word >> shift & 0xffff) * n))
                .filter(|product| product & 0xffff >= 65_536 % n)
                .map(|product| product >> 16)
                .take(700)
                .collect();
            let mut drawn = [0; 700];
            let bound = narrow(u16::try_from(n).expect("small"));
            Stream::new(Cpu::detect(), 3, 3).indices(bound, &mut drawn);
            assert!(drawn.iter().map(|&index| u64::from(index)).eq(expected));
        }
    }

    #[test]
    fn units_lie_inside() {
        assert!(to_unit(0) > 0.0);
        assert!(to_unit(u64::MAX) < 1.0);
        assert_eq!(to_unit(1 << 63).to_bits(), (0.5 + 0.5_f64.powi(53)).to_bits());
    }

    /// Chi-square statistics of uniform draws, against the 0.9999 quantiles for their degrees of
    /// freedom. A bound of 3/4 of the range would show the bias of a draw without rejection.
    #[test]
    fn draws_are_uniform() {
        for (n, cells, quantile) in
            [(2, 2, 15.14), (6, 6, 25.74), (24, 24, 57.08), (100, 100, 160.06), (49_152, 3, 18.42)]
        {
            let mut high = vec![0_u32; cells];
            let mut low = vec![0_u32; cells];
            // Many short streams, because that is how replicates use them.
            for index in 0..2_000 {
                let mut drawn = [0; 100];
                Stream::new(Cpu::detect(), 42, index).indices(narrow(n), &mut drawn);
                for drawn in drawn.map(usize::from) {
                    high[drawn * cells / usize::from(n)] += 1;
                    low[drawn % cells] += 1;
                }
            }
            for counts in [high, low] {
                let expected = 200_000.0 / f64::from(u32::try_from(cells).expect("few"));
                let chi_square: f64 =
                    counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
                assert!(chi_square < quantile, "below {n}: {chi_square}");
            }
        }
    }

    #[test]
    fn neighbours_share_nothing() {
        let mut words: HashSet<u64> = HashSet::new();
        for seed in 0..100 {
            for index in 0..100 {
                words.extend(states(seed, index).as_flattened());
            }
        }
        assert_eq!(words.len(), 160_000);

        // Words of neighbouring streams differ in half of their bits: 32 +- 5 standard errors of a
        // mean over 30,000 words.
        let mut differing = 0;
        for index in 0..10_000 {
            let word = |seed, index| Stream::new(Cpu::detect(), seed, index).word();
            differing += (word(3, index) ^ word(3, index + 1)).count_ones();
            differing += (word(index, 3) ^ word(index + 1, 3)).count_ones();
            let [first, second, ..] = states(3, index)[0];
            differing += (first ^ second).count_ones();
        }
        let mean = f64::from(differing) / 30_000.0;
        assert!((mean - 32.0).abs() < 5.0 * 4.0 / 30_000.0_f64.sqrt(), "{mean}");
    }

    /// The second four rounds of each network take `(0, 0)` elsewhere.
    #[test]
    fn no_state_is_all_zero() {
        for lane in 0..4_u64 {
            let pair =
                (ROUNDS / 2 + 1..=ROUNDS).fold((0, 0), |(left, right): (u64, u64), round| {
                    let constant = (lane * ROUNDS + round).wrapping_mul(GOLDEN);
                    (right, left.wrapping_add(mix(right.wrapping_add(constant))))
                });
            assert_ne!(pair, (0, 0));
        }
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
