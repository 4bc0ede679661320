//! The likelihood of cells with the effects of one part integrated out.
//!
//! Given all else, the effects of different levels are independent, so that the likelihood is a
//! product of integrals over one standardised effect `w` each: of the likelihood of the level's
//! cells at `eta + s w`, times the standard normal density. Each is a Gauss-Hermite sum whose nodes
//! stand around the mode, at the scale of the curvature there (Naylor and Smith 1982,
//! "Applications of a method for the efficient computation of posterior distributions", Applied
//! Statistics 31(3):214-225, doi 10.2307/2347995).
//!
//! The derivatives are the averages of those of the integrand over the nodes.

mod redraw;

use self::redraw::draw_all;
use super::cells::Cells;
use super::crossed::LARGEST_PREDICTOR;
use super::lanes::{LANES, Lanes, exp, exp_lanes, log, log_lanes, total};
use crate::cpu::{Cpu, on_cpu};
use crate::error::{Error, Result, check_some, check_values};
use crate::stream::Stream;

/// Steps of a search for a mode; all searches end far earlier.
const MAX_STEPS: usize = 50;
/// The mode is where the step is below this, in standard deviations of the effect. Nodes need not
/// stand exactly around it.
const CLOSE: f64 = 0.1;
/// No mode is beyond so many standard deviations, where a float cannot hold the density.
const FURTHEST: f64 = 1e3;
/// A product of floats whose logarithms sum to this is a float, and so is that of two such.
const LARGEST_PRODUCT: f64 = 300.0;
/// Powers up to this are taken by multiplication.
const LARGEST_POWER: i32 = 16;
/// The level of a lane without one.
const NONE: u32 = u32::MAX;

/// Cells by levels of the part that is integrated out: a lane a level, in blocks of levels with
/// about as many cells.
#[derive(Debug, Clone)]
pub struct Nodes {
    cells: Cells,
    blocks: Vec<Block>,
    n_levels: usize,
    /// Tables of which all cells of a level use the same entry, with that entry: a lane a level.
    shared: Vec<(usize, Vec<u32>)>,
    /// The other tables.
    varied: Vec<usize>,
    /// Successes of the cells that use an entry, table by table.
    y: Vec<Vec<f64>>,
    points: Vec<f64>,
    log_weights: Vec<f64>,
    scratch: Scratch,
}

#[derive(Debug, Clone)]
struct Block {
    /// The first cell.
    first: usize,
    /// Cells of each level.
    rows: usize,
    levels: [u32; LANES],
    /// Successes of the levels.
    y: Lanes,
    /// The number of trials, where all cells that have some have the same.
    common: Option<i32>,
}

#[derive(Debug, Clone)]
struct Scratch {
    /// exp of the entries of the tables.
    tables: Vec<Vec<f64>>,
    /// exp(eta) of the cells of a block.
    powers: Vec<Lanes>,
    /// Whether a cell has trials.
    some: Vec<Lanes>,
    /// Expected successes of the cells.
    expected: Vec<Lanes>,
    /// Products of 1 + exp(eta) of the cells before a cell.
    products: Vec<Lanes>,
    /// Probabilities of the cells at each node.
    p: Vec<Lanes>,
    /// Of each node: the effect, the log-density, and the residual sum.
    effects: Vec<Lanes>,
    densities: Vec<Lanes>,
    residuals: Vec<Lanes>,
}

impl Nodes {
    /// Arranges cells by their level, `groups`; the tables have `sizes` entries, `nodes` are those of a sum over a standard normal
    /// variable, and `log_weights` the logarithms of its weights, less the log of the standard
    /// normal density at the nodes, less half of log 2 pi.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Empty`], [`Error::NotFinite`] or [`Error::CodeTooLarge`].
    pub fn new(
        cells: &Cells,
        sizes: &[usize],
        groups: &[u32],
        n_levels: usize,
        nodes: &[f64],
        log_weights: &[f64],
    ) -> Result<Self> {
        check_some("the number of nodes", nodes.len())?;
        check_values("nodes", nodes, &[nodes.len()])?;
        check_values("log_weights", log_weights, &[nodes.len()])?;
        super::cells::check_codes(groups, n_levels)?;
        if groups.len().next_multiple_of(LANES) != cells.n.len() {
            return Err(Error::Shape {
                name: "groups",
                expected: cells.n.len(),
                actual: groups.len(),
            });
        }
        let mut members = vec![Vec::new(); n_levels];
        for (cell, &group) in groups.iter().enumerate() {
            members[group as usize].push(cell);
        }
        let mut order: Vec<usize> = (0..n_levels).collect();
        order.sort_by_key(|&level| members[level].len());
        let mut arranged =
            Cells { y: Vec::new(), n: Vec::new(), codes: vec![Vec::new(); cells.codes.len()] };
        let mut blocks = Vec::new();
        for levels in order.chunks(LANES) {
            let rows = levels.iter().map(|&level| members[level].len()).max().unwrap_or(0);
            let mut block = Block {
                first: arranged.n.len(),
                rows,
                levels: [NONE; LANES],
                y: [0.0; LANES],
                common: None,
            };
            for row in 0..rows {
                for lane in 0..LANES {
                    let cell = levels.get(lane).and_then(|&level| members[level].get(row));
                    let (y, n) = cell.map_or((0.0, 0.0), |&cell| (cells.y[cell], cells.n[cell]));
                    arranged.y.push(y);
                    arranged.n.push(n);
                    block.y[lane] += y;
                    for (to, from) in arranged.codes.iter_mut().zip(&cells.codes) {
                        to.push(cell.map_or(0, |&cell| from[cell]));
                    }
                }
            }
            block.common = common(&arranged.n[block.first..]);
            for (place, &level) in block.levels.iter_mut().zip(levels) {
                // `check_codes` has seen that 32 bits hold the number of levels.
                *place = u32::try_from(level).unwrap_or(NONE);
            }
            blocks.push(block);
        }
        let (mut shared, mut varied, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for (table, (codes, &size)) in cells.codes.iter().zip(sizes).enumerate() {
            let mut sum = vec![0.0; size];
            for (&code, y) in codes.iter().zip(&cells.y) {
                sum[code as usize] += y;
            }
            sums.push(sum);
            let same =
                |cells: &Vec<usize>| cells.iter().all(|&cell| codes[cell] == codes[cells[0]]);
            if members.iter().all(same) {
                let code = |&level: &u32| {
                    let first = members.get(level as usize).and_then(|cells| cells.first());
                    first.map_or(0, |&cell| codes[cell])
                };
                let of_levels = blocks.iter().flat_map(|block: &Block| &block.levels).map(code);
                shared.push((table, of_levels.collect()));
            } else {
                varied.push(table);
            }
        }
        let rows = blocks.iter().map(|block| block.rows).max().unwrap_or(0);
        let zeros = |size: usize| vec![[0.0; LANES]; size];
        let scratch = Scratch {
            tables: sizes.iter().map(|&size| vec![0.0; size]).collect(),
            powers: zeros(rows),
            some: zeros(rows),
            expected: zeros(rows),
            products: zeros(rows),
            p: zeros(rows * nodes.len()),
            effects: zeros(nodes.len()),
            densities: zeros(nodes.len()),
            residuals: zeros(nodes.len()),
        };
        Ok(Self {
            cells: arranged,
            blocks,
            n_levels,
            shared,
            varied,
            y: sums,
            points: nodes.to_vec(),
            log_weights: log_weights.to_vec(),
            scratch,
        })
    }

    /// Levels of the part.
    #[must_use]
    pub fn n_levels(&self) -> usize {
        self.n_levels
    }

    /// As [`Cells::log_likelihood`], with the standard deviation `s` of the part, whose derivative
    /// is returned too; `None` where a number is too large.
    pub(super) fn log_likelihood(
        &mut self,
        cpu: Cpu,
        tables: &[Vec<f64>],
        s: f64,
        out: &mut [Vec<f64>],
    ) -> Option<(f64, f64)> {
        if !self.fill_tables(tables) {
            return None;
        }
        let (sum, slope) = on_cpu!(cpu, integrals, integrals_wide, (self, s, out));
        let mut linear = 0.0;
        for (values, y) in tables.iter().zip(&self.y) {
            for (value, y) in values.iter().zip(y) {
                linear += value * y;
            }
        }
        let sum = sum + linear;
        (sum.is_finite() && slope.is_finite()).then_some((sum, slope))
    }

    /// Takes exp of the tables; false where a linear predictor may be too large.
    fn fill_tables(&mut self, tables: &[Vec<f64>]) -> bool {
        let mut largest = 0.0;
        for (powers, values) in self.scratch.tables.iter_mut().zip(tables) {
            let mut top: f64 = 0.0;
            for (power, &value) in powers.iter_mut().zip(values) {
                *power = exp(value);
                top = top.max(value.abs());
            }
            largest += top;
        }
        largest < LARGEST_PREDICTOR
    }

    /// Draws the effects given all else.
    pub(super) fn draw(
        &mut self,
        cpu: Cpu,
        tables: &[Vec<f64>],
        s: f64,
        stream: &mut Stream,
        out: &mut [f64],
    ) {
        if self.fill_tables(tables) {
            draw_all(self, cpu, s, stream, out);
        }
    }
}

/// The number of trials of all cells that have some, if it is the same and small.
fn common(n: &[f64]) -> Option<i32> {
    (1..=LARGEST_POWER)
        .find(|&count| n.iter().all(|&n| n == 0.0 || n.to_bits() == f64::from(count).to_bits()))
}

/// exp(eta) of a block.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn fill_powers(part: &mut Nodes, number: usize) {
    let Nodes { cells, blocks, shared, varied, scratch, .. } = part;
    let block = &blocks[number];
    let mut all = [1.0; LANES];
    for (table, codes) in shared.iter() {
        let powers = &scratch.tables[*table];
        for (all, &code) in all.iter_mut().zip(&codes[number * LANES..(number + 1) * LANES]) {
            *all *= powers[code as usize];
        }
    }
    for row in 0..block.rows {
        let first = block.first + row * LANES;
        let place = &mut scratch.powers[row];
        *place = all;
        for &table in varied.iter() {
            let (powers, codes) = (&scratch.tables[table], &cells.codes[table]);
            for (place, &code) in place.iter_mut().zip(&codes[first..first + LANES]) {
                *place *= powers[code as usize];
            }
        }
        for (some, n) in scratch.some[row].iter_mut().zip(&cells.n[first..first + LANES]) {
            *some = if *n > 0.0 { 1.0 } else { 0.0 };
        }
    }
}

/// Where the nodes of a block stand: about the mode, and the curvature there.
///
/// Newton's steps, and where one crosses half of the bracket that the slopes so far give, its middle:
/// far out in the tails of steep levels Newton's steps alone go from one side to the other for ever.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn centre(block: &Block, n: &[f64], powers: &[Lanes], s: f64) -> (Lanes, Lanes) {
    let mut effect = [0.0; LANES];
    let mut curvature = [1.0; LANES];
    let (mut low, mut high) = ([-FURTHEST; LANES], [FURTHEST; LANES]);
    for _ in 0..MAX_STEPS {
        let (mut mean, mut variance) = ([0.0; LANES], [0.0; LANES]);
        let factor = exp_lanes(&effect.map(|effect| s * effect));
        for (n, powers) in n.chunks_exact(LANES).zip(powers) {
            for lane in 0..LANES {
                let odds = powers[lane] * factor[lane];
                let q = 1.0 / (1.0 + odds);
                let mean_here = n[lane] * (1.0 - q);
                mean[lane] += mean_here;
                variance[lane] += mean_here * q;
            }
        }
        let mut largest = 0.0;
        for lane in 0..LANES {
            let slope = s * (block.y[lane] - mean[lane]) - effect[lane];
            curvature[lane] = 1.0 + s * s * variance[lane];
            if slope > 0.0 {
                low[lane] = effect[lane];
            } else {
                high[lane] = effect[lane];
            }
            let newton = effect[lane] + slope / curvature[lane];
            let short = (newton - effect[lane]).abs() < 0.5 * (high[lane] - low[lane]);
            let next = if short { newton } else { 0.5 * (low[lane] + high[lane]) };
            let step = (next - effect[lane]).abs();
            largest = if step > largest { step } else { largest };
            effect[lane] = next;
        }
        if largest < CLOSE {
            break;
        }
    }
    (effect, curvature)
}

/// The sum of the logarithms of the integrals without the successes' part of the linear predictors,
/// and its derivative by `s`. Adds the derivatives by the entries of the tables to `out`.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn integrals(part: &mut Nodes, s: f64, out: &mut [Vec<f64>]) -> (f64, f64) {
    let (mut sum, mut slope) = ([0.0; LANES], [0.0; LANES]);
    for number in 0..part.blocks.len() {
        fill_powers(part, number);
        let block = &part.blocks[number];
        let n = &part.cells.n[block.first..block.first + block.rows * LANES];
        let (middle, curvature) = centre(block, n, &part.scratch.powers[..block.rows], s);
        let mut scale = [0.0; LANES];
        for lane in 0..LANES {
            scale[lane] = 1.0 / curvature[lane].sqrt();
        }
        let nodes = Around { middle, scale, s };
        let (logs, slopes) = match block.common.filter(|&n| part.bounded(number, &nodes, n)) {
            Some(n) => few_trials(part, number, &nodes, n),
            None => any_trials(part, number, &nodes),
        };
        let log_curvature = log_lanes(&curvature);
        for lane in 0..LANES {
            sum[lane] += logs[lane] - 0.5 * log_curvature[lane];
            slope[lane] += slopes[lane];
        }
        let (block, cells) = (&part.blocks[number], &part.cells);
        let mut whole = [0.0; LANES];
        for row in 0..block.rows {
            let first = block.first + row * LANES;
            let expected = &part.scratch.expected[row];
            let mut residual = [0.0; LANES];
            for lane in 0..LANES {
                residual[lane] = cells.y[first + lane] - expected[lane];
                whole[lane] += residual[lane];
            }
            for &table in &part.varied {
                let codes = &cells.codes[table][first..first + LANES];
                for (residual, &code) in residual.iter().zip(codes) {
                    out[table][code as usize] += residual;
                }
            }
        }
        for (table, codes) in &part.shared {
            let codes = &codes[number * LANES..(number + 1) * LANES];
            for (residual, &code) in whole.iter().zip(codes) {
                out[*table][code as usize] += residual;
            }
        }
    }
    (total(&sum), total(&slope))
}

/// Where the nodes of a block stand.
struct Around {
    middle: Lanes,
    scale: Lanes,
    s: f64,
}

impl Nodes {
    /// Whether the likelihoods of a block at all nodes are floats, to the power of `n`.
    #[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
    #[inline(always)]
    fn bounded(&self, number: usize, around: &Around, n: i32) -> bool {
        let rows = self.blocks[number].rows;
        let largest_node = self.points.iter().fold(0.0, |top: f64, x| top.max(x.abs()));
        let mut power = [0.0; LANES];
        for powers in &self.scratch.powers[..rows] {
            for lane in 0..LANES {
                power[lane] = if powers[lane] > power[lane] { powers[lane] } else { power[lane] };
            }
        }
        let mut largest = 0.0;
        let log_power = log_lanes(&power.map(|power| 1.0 + power));
        for (lane, log_power) in log_power.iter().enumerate() {
            let furthest = around.middle[lane].abs() + around.scale[lane] * largest_node;
            let predictor = around.s.abs() * furthest + log_power;
            largest = if predictor > largest { predictor } else { largest };
        }
        #[expect(clippy::cast_precision_loss, reason = "rows of a block are few")]
        let rows = rows as f64;
        rows * f64::from(n) * (largest + std::f64::consts::LN_2) < LARGEST_PRODUCT
    }
}

/// Integrals of levels whose cells have `n` trials or none. The density at a node is taken relative
/// to that at the middle, as a product and without logarithms; one division gives all its factors.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn few_trials(part: &mut Nodes, number: usize, around: &Around, n: i32) -> (Lanes, Lanes) {
    let Nodes { blocks, points: nodes, log_weights, scratch, .. } = part;
    let block = &blocks[number];
    let rows = block.rows;
    let (powers, some) = (&scratch.powers[..rows], &scratch.some[..rows]);
    let products = &mut scratch.products[..rows];
    let expected = &mut scratch.expected[..rows];
    expected.fill([0.0; LANES]);
    let Around { middle, scale, s } = around;
    let trials = f64::from(n);
    let mut top = [1.0; LANES];
    let factor = exp_lanes(&middle.map(|middle| s * middle));
    for (powers, some) in powers.iter().zip(some) {
        for lane in 0..LANES {
            top[lane] *= 1.0 + some[lane] * (powers[lane] * factor[lane]);
        }
    }
    let (mut all, mut slope) = ([0.0; LANES], [0.0; LANES]);
    for (node, log_weight) in nodes.iter().zip(log_weights.iter()) {
        let (mut effect, mut linear) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            effect[lane] = middle[lane] + scale[lane] * node;
            let away = effect[lane] - middle[lane];
            let rise = block.y[lane] * s - 0.5 * (effect[lane] + middle[lane]);
            linear[lane] = log_weight + away * rise;
        }
        let factor = exp_lanes(&effect.map(|effect| s * effect));
        let mut density = exp_lanes(&linear);
        let mut product = [1.0; LANES];
        for row in 0..rows {
            products[row] = product;
            for lane in 0..LANES {
                product[lane] *= 1.0 + some[row][lane] * (powers[row][lane] * factor[lane]);
            }
        }
        let mut inverse = [0.0; LANES];
        for lane in 0..LANES {
            inverse[lane] = 1.0 / product[lane];
            let ratio = top[lane] * inverse[lane];
            for _ in 0..n {
                density[lane] *= ratio;
            }
            all[lane] += density[lane];
        }
        // Of the cells after the row, over those of all.
        let mut rest = inverse;
        let mut mean = [0.0; LANES];
        for row in (0..rows).rev() {
            for lane in 0..LANES {
                let odds = some[row][lane] * (powers[row][lane] * factor[lane]);
                let p = odds * (rest[lane] * products[row][lane]);
                rest[lane] *= 1.0 + odds;
                mean[lane] += p;
                expected[row][lane] += density[lane] * p;
            }
        }
        for lane in 0..LANES {
            let residual = block.y[lane] - trials * mean[lane];
            slope[lane] += density[lane] * (effect[lane] * residual);
        }
    }
    let (mut logs, log_top) = (log_lanes(&all), log_lanes(&top));
    for lane in 0..LANES {
        let linear = middle[lane] * (block.y[lane] * s - 0.5 * middle[lane]);
        logs[lane] += linear - trials * log_top[lane];
        all[lane] = 1.0 / all[lane];
        slope[lane] *= all[lane];
    }
    for expected in expected {
        for lane in 0..LANES {
            expected[lane] *= trials * all[lane];
        }
    }
    (logs, slope)
}

/// Integrals of levels whose cells have any numbers of trials.
#[expect(clippy::inline_always, reason = "to be compiled for the registers of the caller")]
#[inline(always)]
fn any_trials(part: &mut Nodes, number: usize, around: &Around) -> (Lanes, Lanes) {
    let Nodes { cells, blocks, points: nodes, log_weights, scratch, .. } = part;
    let block = &blocks[number];
    let rows = block.rows;
    let n = &cells.n[block.first..block.first + rows * LANES];
    let powers = &scratch.powers[..rows];
    let Around { middle, scale, s } = around;
    let mut top = [f64::NEG_INFINITY; LANES];
    for (number, (node, log_weight)) in nodes.iter().zip(log_weights.iter()).enumerate() {
        let effect = &mut scratch.effects[number];
        for lane in 0..LANES {
            effect[lane] = middle[lane] + scale[lane] * node;
        }
        let factor = exp_lanes(&effect.map(|effect| s * effect));
        let (mut logs, mut mean) = ([0.0; LANES], [0.0; LANES]);
        let p = &mut scratch.p[number * rows..(number + 1) * rows];
        for ((n, powers), p) in n.chunks_exact(LANES).zip(powers.iter()).zip(p) {
            let mut all = [0.0; LANES];
            for lane in 0..LANES {
                let odds = powers[lane] * factor[lane];
                all[lane] = 1.0 + odds;
                p[lane] = n[lane] * (odds / all[lane]);
                mean[lane] += p[lane];
            }
            let log_all = log_lanes(&all);
            for lane in 0..LANES {
                logs[lane] += n[lane] * log_all[lane];
            }
        }
        let (density, residual) = (&mut scratch.densities[number], &mut scratch.residuals[number]);
        for lane in 0..LANES {
            let linear = block.y[lane] * (s * effect[lane]);
            density[lane] = log_weight + linear - logs[lane] - 0.5 * effect[lane] * effect[lane];
            residual[lane] = block.y[lane] - mean[lane];
            top[lane] = if density[lane] > top[lane] { density[lane] } else { top[lane] };
        }
    }
    let (mut all, mut logs, mut slope) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for density in &mut scratch.densities {
        for lane in 0..LANES {
            density[lane] -= top[lane];
        }
        *density = exp_lanes(density);
        for lane in 0..LANES {
            all[lane] += density[lane];
        }
    }
    let log_all = log_lanes(&all);
    for lane in 0..LANES {
        logs[lane] = top[lane] + log_all[lane];
    }
    let expected = &mut scratch.expected[..rows];
    expected.fill([0.0; LANES]);
    for (number, density) in scratch.densities.iter_mut().enumerate() {
        let (effect, residual) = (&scratch.effects[number], &scratch.residuals[number]);
        for lane in 0..LANES {
            density[lane] /= all[lane];
            slope[lane] += density[lane] * effect[lane] * residual[lane];
        }
        let p = &scratch.p[number * rows..(number + 1) * rows];
        for (expected, p) in expected.iter_mut().zip(p) {
            for lane in 0..LANES {
                expected[lane] += density[lane] * p[lane];
            }
        }
    }
    (logs, slope)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn integrals_wide(part: &mut Nodes, s: f64, out: &mut [Vec<f64>]) -> (f64, f64) {
    integrals(part, s, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steep_levels_are_centred() {
        // From 0, Newton's steps go to -10 and back for ever.
        let block = Block { first: 0, rows: 1, levels: [0; LANES], y: [0.0; LANES], common: None };
        let (n, odds, s) = ([2.0; LANES], 808.638, 5.5216);
        let (mode, curvature) = centre(&block, &n, &[[odds; LANES]], s);
        let all = 1.0 + odds * (s * mode[0]).exp();
        let slope = -s * 2.0 * (1.0 - 1.0 / all) - mode[0];
        assert!((slope / curvature[0]).abs() < CLOSE, "slope {slope} at {}", mode[0]);
    }
}
