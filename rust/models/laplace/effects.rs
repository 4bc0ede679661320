//! Random effects: from cells to effects and back.
//!
//! The effects of a level are `u = L v` with `v` independent and standard normal. All vectors of
//! effects are in the order of elimination.

use std::borrow::Cow;

use super::dense::dot;
use super::pattern::{Part, Pattern};
use crate::error::Result;

/// The random part of a model.
///
/// Where every level has one effect that is added as it is, adjacent cells with the same levels are
/// one *run*: sums over cells are first taken over runs, and all else is done by run.
#[derive(Debug, Clone)]
pub struct Effects {
    /// The groupings, by run where there are runs.
    pub parts: Vec<Part>,
    /// Where their levels meet.
    pub pattern: Pattern,
    /// Where each run starts, and the number of cells; empty where there are none.
    runs: Vec<usize>,
}

/// Lower triangular factors of the covariance matrices, (width, width) each.
pub type Factors = Vec<Vec<f64>>;

impl Effects {
    /// Looks at where the levels of the groupings meet.
    ///
    /// # Errors
    /// Those of [`Pattern::new`].
    pub fn new(mut parts: Vec<Part>, n_cells: usize) -> Result<Self> {
        let mut runs = Vec::new();
        if !parts.is_empty() && parts.iter().all(|part| part.z.is_empty()) {
            let same = |a: usize, b: usize| parts.iter().all(|part| part.codes[a] == part.codes[b]);
            runs.extend((0..n_cells).filter(|&cell| cell == 0 || !same(cell - 1, cell)));
            for part in &mut parts {
                part.codes = runs.iter().map(|&cell| part.codes[cell]).collect();
            }
            runs.push(n_cells);
        }
        let n = if runs.is_empty() { n_cells } else { runs.len() - 1 };
        let pattern = Pattern::new(&parts, n)?;
        Ok(Self { parts, pattern, runs })
    }

    /// Sums over runs; the values themselves where there are none.
    fn by_run<'a>(&self, values: &'a [f64]) -> Cow<'a, [f64]> {
        if self.runs.is_empty() {
            return Cow::Borrowed(values);
        }
        self.runs.windows(2).map(|run| values[run[0]..run[1]].iter().sum()).collect()
    }

    /// Adds values of runs to their cells.
    fn add_runs(&self, values: &[f64], out: &mut [f64]) {
        for (run, &value) in self.runs.windows(2).zip(values) {
            for out in &mut out[run[0]..run[1]] {
                *out += value;
            }
        }
    }

    /// Sums over the cells of each level of the first grouping, whatever their multipliers.
    pub fn totals(&self, values: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (&value, &start) in self.by_run(values).iter().zip(&self.pattern.cell_start[0]) {
            out[start as usize] += value;
        }
    }

    /// For each cell the value of its level of the first grouping.
    pub fn of_levels(&self, values: impl Fn(usize) -> f64, out: &mut [f64]) {
        let starts = self.pattern.cell_start[0].iter().map(|&start| values(start as usize));
        if self.runs.is_empty() {
            for (out, value) in out.iter_mut().zip(starts) {
                *out = value;
            }
        } else {
            for (run, value) in self.runs.windows(2).zip(starts) {
                out[run[0]..run[1]].fill(value);
            }
        }
    }

    /// Adds `Z u` to the linear predictor.
    pub fn add_to(&self, u: &[f64], eta: &mut [f64]) {
        if self.runs.is_empty() {
            self.add_each(u, eta);
        } else {
            let mut sums = vec![0.0; self.runs.len() - 1];
            self.add_each(u, &mut sums);
            self.add_runs(&sums, eta);
        }
    }

    /// Adds `Z u`, cell by cell or run by run.
    fn add_each(&self, u: &[f64], eta: &mut [f64]) {
        for (part, start) in self.parts.iter().zip(&self.pattern.cell_start) {
            if part.z.is_empty() {
                for (eta, &start) in eta.iter_mut().zip(start) {
                    *eta += u[start as usize];
                }
            } else {
                let rows = part.z.chunks(part.width);
                for ((eta, &start), z) in eta.iter_mut().zip(start).zip(rows) {
                    *eta += dot(z, &u[start as usize..start as usize + part.width]);
                }
            }
        }
    }

    /// `Z' r`.
    pub fn collect(&self, r: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let r = &*self.by_run(r);
        for (part, start) in self.parts.iter().zip(&self.pattern.cell_start) {
            if part.z.is_empty() {
                for (&r, &start) in r.iter().zip(start) {
                    out[start as usize] += r;
                }
            } else {
                for ((&r, &start), z) in r.iter().zip(start).zip(part.z.chunks(part.width)) {
                    for (out, z) in out[start as usize..].iter_mut().zip(z) {
                        *out += r * z;
                    }
                }
            }
        }
    }

    /// `u = L v` of each level.
    pub fn scale(&self, factors: &Factors, v: &[f64], u: &mut [f64]) {
        for node in &self.pattern.nodes {
            let (width, factor) = (self.parts[node.part].width, &factors[node.part]);
            if width == 1 {
                u[node.start] = factor[0] * v[node.start];
                continue;
            }
            let v = &v[node.start..node.start + width];
            for (u, row) in u[node.start..].iter_mut().zip(factor.chunks(width)) {
                *u = dot(row, v);
            }
        }
    }

    /// `L' g` of each level.
    pub fn scale_back(&self, factors: &Factors, g: &[f64], out: &mut [f64]) {
        for node in &self.pattern.nodes {
            let (width, factor) = (self.parts[node.part].width, &factors[node.part]);
            for c in 0..width {
                out[node.start + c] =
                    (c..width).map(|r| factor[r * width + c] * g[node.start + r]).sum();
            }
        }
    }

    /// The blocks of `Z' W Z`.
    pub fn blocks(&self, w: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let w = &*self.by_run(w);
        let wide = self.pattern.wide;
        for (part, start) in self.parts.iter().zip(&self.pattern.cell_start) {
            if part.z.is_empty() {
                for (&w, &start) in w.iter().zip(start) {
                    out[start as usize * wide] += w;
                }
            } else {
                for ((&w, &start), z) in w.iter().zip(start).zip(part.z.chunks(part.width)) {
                    for (r, &row) in z.iter().enumerate() {
                        let place = (start as usize + r) * wide;
                        for (out, &column) in out[place..].iter_mut().zip(z) {
                            *out += w * row * column;
                        }
                    }
                }
            }
        }
        for pair in &self.pattern.pairs {
            let (first, second) = (&self.parts[pair.first], &self.parts[pair.second]);
            let out = &mut out[pair.base..];
            if first.z.is_empty() && second.z.is_empty() {
                for (&w, &edge) in w.iter().zip(&pair.edge) {
                    out[edge as usize] += w;
                }
                continue;
            }
            let size = first.width * second.width;
            for (cell, (&w, &edge)) in w.iter().zip(&pair.edge).enumerate() {
                let block = &mut out[edge as usize * size..][..size];
                for (a, out) in block.chunks_mut(second.width).enumerate() {
                    for (b, out) in out.iter_mut().enumerate() {
                        *out += w * first.multiplier(cell, a) * second.multiplier(cell, b);
                    }
                }
            }
        }
    }

    /// `Z'WZ u` from its blocks.
    pub fn multiply(&self, blocks: &[f64], u: &[f64], out: &mut [f64]) {
        let wide = self.pattern.wide;
        for node in &self.pattern.nodes {
            let width = self.parts[node.part].width;
            let u = &u[node.start..node.start + width];
            for r in node.start..node.start + width {
                out[r] = dot(&blocks[r * wide..r * wide + width], u);
            }
        }
        for pair in &self.pattern.pairs {
            let widths = (self.parts[pair.first].width, self.parts[pair.second].width);
            let all = blocks[pair.base..].chunks(widths.0 * widths.1);
            for (edge, block) in pair.edges.iter().zip(all) {
                let (first, second) = (edge.first as usize, edge.second as usize);
                for (a, row) in block.chunks(widths.1).enumerate() {
                    for (b, &value) in row.iter().enumerate() {
                        out[first + a] += value * u[second + b];
                        out[second + b] += value * u[first + a];
                    }
                }
            }
        }
    }

    /// The conditional variance of the linear predictor of each cell.
    pub fn variances(&self, covariance: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        if self.runs.is_empty() {
            self.add_variances(covariance, out);
        } else {
            let mut sums = vec![0.0; self.runs.len() - 1];
            self.add_variances(covariance, &mut sums);
            self.add_runs(&sums, out);
        }
    }

    /// Adds the conditional variances, cell by cell or run by run.
    fn add_variances(&self, covariance: &[f64], out: &mut [f64]) {
        let wide = self.pattern.wide;
        for (part, start) in self.parts.iter().zip(&self.pattern.cell_start) {
            if part.z.is_empty() {
                for (out, &start) in out.iter_mut().zip(start) {
                    *out += covariance[start as usize * wide];
                }
                continue;
            }
            for ((out, &start), z) in out.iter_mut().zip(start).zip(part.z.chunks(part.width)) {
                for (r, &row) in z.iter().enumerate() {
                    let place = (start as usize + r) * wide;
                    *out += row * dot(z, &covariance[place..place + part.width]);
                }
            }
        }
        for pair in &self.pattern.pairs {
            let (first, second) = (&self.parts[pair.first], &self.parts[pair.second]);
            let covariance = &covariance[pair.base..];
            if first.z.is_empty() && second.z.is_empty() {
                for (out, &edge) in out.iter_mut().zip(&pair.edge) {
                    *out += 2.0 * covariance[edge as usize];
                }
                continue;
            }
            let size = first.width * second.width;
            for (cell, (out, &edge)) in out.iter_mut().zip(&pair.edge).enumerate() {
                let block = &covariance[edge as usize * size..][..size];
                for (a, row) in block.chunks(second.width).enumerate() {
                    for (b, &value) in row.iter().enumerate() {
                        *out +=
                            2.0 * first.multiplier(cell, a) * value * second.multiplier(cell, b);
                    }
                }
            }
        }
    }
}

impl Part {
    /// What multiplies an effect in a cell.
    fn multiplier(&self, cell: usize, effect: usize) -> f64 {
        if self.z.is_empty() { 1.0 } else { self.z[cell * self.width + effect] }
    }
}
