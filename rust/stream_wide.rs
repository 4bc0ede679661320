//! The loops of [`crate::stream`] in 256-bit registers, which the compiler does not find by itself:
//! the same words and integers.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_cmpeq_epi16, _mm256_max_epu16, _mm256_movemask_epi8,
    _mm256_mulhi_epu16, _mm256_mullo_epi16, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi16,
    _mm256_slli_epi64, _mm256_srli_epi64, _mm256_xor_si256,
};
use std::num::NonZeroU16;

use crate::stream::{LANES, QUARTERS, State, threshold};

/// The words of state, one of every generator in a register.
type Registers = [__m256i; 4];

/// Fills `out` with words.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn fill_words(state: &mut State, out: &mut [u64]) {
    let mut registers = load(state);
    for place in out.chunks_mut(LANES) {
        let words = to_words(step(&mut registers));
        if let Some(place) = place.first_chunk_mut() {
            *place = words;
        } else {
            place.copy_from_slice(&words[..place.len()]);
        }
    }
    *state = registers.map(to_words);
}

/// Fills `out` with uniform integers below `n`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn fill_indices(state: &mut State, n: NonZeroU16, out: &mut [u16]) {
    let bound = _mm256_set1_epi16(n.get().cast_signed());
    let threshold = threshold(n);
    let least = _mm256_set1_epi16(threshold.cast_signed());
    let mut registers = load(state);
    let mut filled = 0;
    while filled < out.len() {
        let words = step(&mut registers);
        let high = to_quarters(_mm256_mulhi_epu16(words, bound));
        let low = _mm256_mullo_epi16(words, bound);
        let kept = _mm256_cmpeq_epi16(_mm256_max_epu16(low, least), low);
        if let Some(place) = out[filled..].first_chunk_mut()
            && _mm256_movemask_epi8(kept) == -1
        {
            *place = high;
            filled += QUARTERS;
            continue;
        }
        // Which quarter is rejected cannot be predicted, so each is written and then kept or not.
        for (high, low) in high.into_iter().zip(to_quarters(low)) {
            let Some(place) = out.get_mut(filled) else { break };
            *place = high;
            filled += usize::from(low >= threshold);
        }
    }
    *state = registers.map(to_words);
}

/// One step of every generator.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn step(state: &mut Registers) -> __m256i {
    let [s0, s1, s2, s3] = *state;
    let sum = _mm256_add_epi64(s0, s3);
    let turned = _mm256_or_si256(_mm256_slli_epi64::<23>(sum), _mm256_srli_epi64::<41>(sum));
    let words = _mm256_add_epi64(turned, s0);
    let shifted = _mm256_slli_epi64::<17>(s1);
    let s2 = _mm256_xor_si256(s2, s0);
    let s3 = _mm256_xor_si256(s3, s1);
    let s1 = _mm256_xor_si256(s1, s2);
    let s0 = _mm256_xor_si256(s0, s3);
    let s2 = _mm256_xor_si256(s2, shifted);
    let s3 = _mm256_or_si256(_mm256_slli_epi64::<45>(s3), _mm256_srli_epi64::<19>(s3));
    *state = [s0, s1, s2, s3];
    words
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn load(state: &State) -> Registers {
    state.map(|words| {
        let [a, b, c, d] = words.map(u64::cast_signed);
        _mm256_set_epi64x(d, c, b, a)
    })
}

#[inline]
#[expect(unsafe_code, reason = "a register has no safe conversion")]
fn to_words(register: __m256i) -> [u64; LANES] {
    // SAFETY: both types are 32 bytes, and all bytes are valid in both.
    unsafe { std::mem::transmute(register) }
}

#[inline]
#[expect(unsafe_code, reason = "a register has no safe conversion")]
fn to_quarters(register: __m256i) -> [u16; QUARTERS] {
    // SAFETY: both types are 32 bytes, and all bytes are valid in both.
    unsafe { std::mem::transmute(register) }
}
