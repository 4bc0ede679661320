//! Elementary functions of several numbers at a time.
//!
//! Written in operations that a compiler turns into those of wide registers. None is a fused
//! multiply-add, which processors without it would emulate at great cost, and which would make the
//! results depend on the processor.

/// Numbers that are worked on together.
pub(super) const LANES: usize = 8;

/// A number in each lane.
pub(super) type Lanes = [f64; LANES];

/// Arguments of `exp` are cut to plus and minus this.
const LARGEST: f64 = 700.0;

/// Adding it rounds a float to an integer, which is then in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The natural logarithm of 2 in two parts; the first has zeros at the end, so that its product
/// with a small integer is exact.
const LN2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// 1 / 13!, 1 / 12!, ... 1.
const EXP: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// 2 / 21, 2 / 19, ... 2 / 3.
const LOG: [f64; 10] = [
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];

/// The bits of the square root of 1/2.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
/// The bits of 1.
const ONE: u64 = 0x3ff0_0000_0000_0000;
/// The bits of 2^52.
const TWO_52: u64 = 0x4330_0000_0000_0000;

/// `exp(x)`, to 2 units in the last place; `x` is cut to +-700.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Comparisons instead of `clamp`, so that NaN takes no branch; it stays NaN.
    let x = if x > LARGEST { LARGEST } else { x };
    let x = if x < -LARGEST { -LARGEST } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let k = shifted - ROUNDER;
    let r = (x - k * LN2[0]) - k * LN2[1];
    let mut sum = EXP[0];
    for term in &EXP[1..] {
        sum = sum * r + term;
    }
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// `log(x)` of a normal positive number, to 2 units in the last place or 1e-16.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let bits = x.to_bits().wrapping_add(ONE - ROOT_HALF);
    let exponent = f64::from_bits(TWO_52 | (bits >> 52)) - f64::from_bits(TWO_52 | 1023);
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut sum = LOG[0];
    for term in &LOG[1..] {
        sum = sum * z + term;
    }
    // log(1 + f) = 2s + s^3 * (2/3 + ...)
    exponent * LN2[0] + (exponent * LN2[1] + (2.0 * s + s * z * sum))
}

/// [`exp`] of each lane: step by step for all of them, which compilers recognise.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
pub(super) fn exp_lanes(x: &Lanes) -> Lanes {
    let (mut r, mut power, mut sum) = ([0.0; LANES], [0.0; LANES], [EXP[0]; LANES]);
    for lane in 0..LANES {
        let x = if x[lane] > LARGEST { LARGEST } else { x[lane] };
        let x = if x < -LARGEST { -LARGEST } else { x };
        let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
        let k = shifted - ROUNDER;
        r[lane] = (x - k * LN2[0]) - k * LN2[1];
        power[lane] = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    }
    for term in &EXP[1..] {
        for lane in 0..LANES {
            sum[lane] = sum[lane] * r[lane] + term;
        }
    }
    for lane in 0..LANES {
        sum[lane] *= power[lane];
    }
    sum
}

/// [`log`] of each lane.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
pub(super) fn log_lanes(x: &Lanes) -> Lanes {
    let (mut exponent, mut s, mut z) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let bits = x[lane].to_bits().wrapping_add(ONE - ROOT_HALF);
        exponent[lane] = f64::from_bits(TWO_52 | (bits >> 52)) - f64::from_bits(TWO_52 | 1023);
        let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF)) - 1.0;
        s[lane] = f / (2.0 + f);
        z[lane] = s[lane] * s[lane];
    }
    let mut sum = [LOG[0]; LANES];
    for term in &LOG[1..] {
        for lane in 0..LANES {
            sum[lane] = sum[lane] * z[lane] + term;
        }
    }
    for lane in 0..LANES {
        let rest = 2.0 * s[lane] + s[lane] * z[lane] * sum[lane];
        sum[lane] = exponent[lane] * LN2[0] + (exponent[lane] * LN2[1] + rest);
    }
    sum
}

/// The sum of the lanes, in a fixed order.
pub(super) fn total(lanes: &Lanes) -> f64 {
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units in the last place, and what the cut of the series adds.
    const RELATIVE: f64 = 5e-16;

    #[test]
    fn exp_is_that_of_the_library() {
        for step in -70_000..=70_000 {
            let x = f64::from(step) * 0.009_999_3;
            let expected = x.exp();
            assert!((exp(x) - expected).abs() <= RELATIVE * expected, "{x}");
        }
        assert!(exp(0.0).to_bits() == 1.0_f64.to_bits());
        assert!(exp(1e9).is_finite() && exp(-1e9) > 0.0 && exp(f64::NAN).is_nan());
    }

    #[test]
    fn lanes_are_what_they_are_alone() {
        let x: Lanes = [-40.0, -3.7, -0.1, 0.0, 1e-9, 0.6, 17.2, 39.0];
        let bits = |x: Lanes| x.map(f64::to_bits);
        assert_eq!(bits(exp_lanes(&x)), bits(x.map(exp)));
        assert_eq!(bits(log_lanes(&x.map(exp))), bits(x.map(exp).map(log)));
    }

    #[test]
    fn log_is_that_of_the_library() {
        for step in 1..=100_000 {
            for x in
                [f64::from(step) * 1e-3, f64::from(step).powi(40), 1.0 + 1e-7 * f64::from(step)]
            {
                let expected = x.ln();
                assert!((log(x) - expected).abs() <= RELATIVE * expected.abs().max(0.5), "{x}");
            }
        }
    }
}
