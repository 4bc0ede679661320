//! Draws of the effects that were integrated out, given all else.

use super::{LANES, Lanes, Nodes, centre, exp, fill_powers, log};
use crate::cpu::{Cpu, on_cpu};
use crate::stream::Stream;

/// The log-density of a standardised effect, up to a constant, and its slope.
struct Density<'a> {
    n: &'a [f64],
    powers: &'a [Lanes],
    lane: usize,
    y: f64,
    s: f64,
}

impl Density<'_> {
    #[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
    #[inline(always)]
    fn at(&self, effect: f64) -> Tangent {
        let factor = exp(self.s * effect);
        let (mut logs, mut mean) = (0.0, 0.0);
        for (n, powers) in self.n.chunks_exact(LANES).zip(self.powers) {
            let n = n[self.lane];
            let all = 1.0 + powers[self.lane] * factor;
            mean += n * (1.0 - 1.0 / all);
            logs += n * log(all);
        }
        Tangent {
            at: effect,
            value: self.y * self.s * effect - logs - 0.5 * effect * effect,
            slope: self.s * (self.y - mean) - effect,
        }
    }
}

/// A line that touches a concave function, and bounds it.
#[derive(Debug, Clone, Copy)]
struct Tangent {
    at: f64,
    value: f64,
    slope: f64,
}

impl Tangent {
    fn height(&self, x: f64) -> f64 {
        self.value + self.slope * (x - self.at)
    }

    /// Where two tangents of a concave function meet: between the points that they touch at.
    fn meets(&self, other: &Tangent) -> f64 {
        let steeper = self.slope - other.slope;
        if steeper.abs() < 1e-12 {
            return 0.5 * (self.at + other.at);
        }
        let x =
            (other.value - self.value + self.slope * self.at - other.slope * other.at) / steeper;
        x.clamp(self.at.min(other.at), self.at.max(other.at))
    }
}

/// A draw from a log-concave density, by rejection from the hull of three tangents: about the mode
/// and a standard deviation to each side (Gilks and Wild 1992, "Adaptive rejection sampling for
/// Gibbs sampling", Applied Statistics 41(2):337-348, doi 10.2307/2347565; here the hull stays as
/// it is).
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn draw_one(density: &Density, mode: f64, scale: f64, stream: &mut Stream) -> f64 {
    let middle = density.at(mode);
    // The curvature is at least that of the standard normal density, so these loops end.
    let mut left = density.at(mode - scale);
    while left.slope <= 0.0 {
        left = density.at(left.at - 1.0 - left.slope.abs());
    }
    let mut right = density.at(mode + scale);
    while right.slope >= 0.0 {
        right = density.at(right.at + 1.0 + right.slope.abs());
    }
    let (low, high) = (left.meets(&middle), middle.meets(&right));
    let base = middle.value;
    let area_left = (left.height(low) - base).exp() / left.slope;
    let area_right = (right.height(high) - base).exp() / -right.slope;
    // Of the middle line, in a form that also holds when it is level.
    let (width, rise) = (high - low, middle.slope * (high - low));
    let start = (middle.height(low) - base).exp();
    let mean_height = if rise.abs() < 1e-9 { 1.0 } else { rise.exp_m1() / rise };
    let area_middle = start * width * mean_height;
    loop {
        let share = stream.unit() * (area_left + area_middle + area_right);
        let u = stream.unit();
        let (x, hull) = if share < area_left {
            let x = low + u.ln() / left.slope;
            (x, left.height(x))
        } else if share < area_left + area_middle {
            let part = if rise.abs() < 1e-9 { u } else { (u * rise.exp_m1()).ln_1p() / rise };
            let x = low + width * part;
            (x, middle.height(x))
        } else {
            let x = high + u.ln() / right.slope;
            (x, right.height(x))
        };
        if stream.unit().ln() <= density.at(x).value - hull {
            return x;
        }
    }
}

/// Draws the effects of all levels, given the tables that the part holds.
pub(super) fn draw_all(part: &mut Nodes, cpu: Cpu, s: f64, stream: &mut Stream, out: &mut [f64]) {
    on_cpu!(cpu, draws, draws_wide, (part, s, stream, out));
}

#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn draws(part: &mut Nodes, s: f64, stream: &mut Stream, out: &mut [f64]) {
    for number in 0..part.blocks.len() {
        fill_powers(part, number);
        let block = &part.blocks[number];
        let n = &part.cells.n[block.first..block.first + block.rows * LANES];
        let powers = &part.scratch.powers[..block.rows];
        let (middle, curvature) = centre(block, n, powers, s);
        for lane in 0..LANES {
            if let Some(place) = out.get_mut(block.levels[lane] as usize) {
                let density = Density { n, powers, lane, y: block.y[lane], s };
                let scale = 1.0 / curvature[lane].sqrt();
                *place = s * draw_one(&density, middle[lane], scale, stream);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn draws_wide(part: &mut Nodes, s: f64, stream: &mut Stream, out: &mut [f64]) {
    draws(part, s, stream, out);
}
