//! Estimates on the scale of the data.

use super::effects::{Effects, Factors};
use super::pattern::Part;

/// Random effects on the scale of their multipliers.
#[derive(Debug, Clone)]
pub struct Scale {
    /// For each grouping, what its multipliers were divided by.
    pub multipliers: Vec<Vec<f64>>,
}

/// For each grouping and column of its factor, the sign that makes the diagonal positive.
#[must_use]
pub fn signs(factors: &Factors, parts: &[Part]) -> Vec<Vec<f64>> {
    (factors.iter().zip(parts))
        .map(|(factor, part)| {
            (0..part.width)
                .map(|c| if factor[c * part.width + c] < 0.0 { -1.0 } else { 1.0 })
                .collect()
        })
        .collect()
}

impl Scale {
    /// What each entry of the lower triangles is multiplied by.
    #[must_use]
    pub fn of_entries(&self, signs: &[Vec<f64>]) -> Vec<f64> {
        let mut out = Vec::new();
        for (scales, signs) in self.multipliers.iter().zip(signs) {
            for (r, scale) in scales.iter().enumerate() {
                out.extend(signs[..=r].iter().map(|sign| sign / scale));
            }
        }
        out
    }

    /// For each grouping, effects of its levels.
    #[must_use]
    pub fn modes(&self, effects: &Effects, u: &[f64]) -> Vec<Vec<f64>> {
        (effects.pattern.level_start.iter().zip(&self.multipliers))
            .map(|(starts, scales)| {
                let level = |&start: &u32| {
                    let u = &u[start as usize..start as usize + scales.len()];
                    u.iter().zip(scales).map(|(u, scale)| u / scale).collect::<Vec<f64>>()
                };
                starts.iter().flat_map(level).collect()
            })
            .collect()
    }

    /// For each grouping, `factor L H^-1 L'` of each level.
    #[must_use]
    pub fn variances(
        &self,
        effects: &Effects,
        factors: &Factors,
        (inverse, times): (&[f64], f64),
    ) -> Vec<Vec<f64>> {
        (effects.pattern.level_start.iter().zip(&self.multipliers).zip(factors))
            .map(|((starts, scales), factor)| {
                let width = scales.len();
                let level = |&start: &u32| {
                    let inverse = effects.inverse_block(inverse, start as usize, width);
                    let mut all = super::dense::sandwich(factor, &inverse, width);
                    for (r, row) in all.chunks_mut(width).enumerate() {
                        for (value, scale) in row.iter_mut().zip(scales) {
                            *value *= times / (scale * scales[r]);
                        }
                    }
                    all
                };
                starts.iter().flat_map(level).collect()
            })
            .collect()
    }
}

/// Puts the covariance of some parameters among zeros for the others.
#[must_use]
pub fn embed(covariance: &[f64], free: &[usize], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * size];
    for (row, &i) in covariance.chunks(free.len().max(1)).zip(free) {
        for (&value, &j) in row.iter().zip(free) {
            out[i * size + j] = value;
        }
    }
    out
}

/// Overwrites rows and columns.
pub fn blank(covariance: &mut [f64], size: usize, which: &[usize]) {
    for &i in which {
        for j in 0..size {
            covariance[i * size + j] = f64::NAN;
            covariance[j * size + i] = f64::NAN;
        }
    }
}

/// Numbers of the entries of each grouping among all lower triangles, and of those on the diagonal.
#[must_use]
pub fn entries(parts: &[Part], first: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut next = first;
    (parts.iter())
        .map(|part| {
            let start = next;
            next += part.width * (part.width + 1) / 2;
            let diagonal = (0..part.width).map(|c| start + c * (c + 3) / 2).collect();
            ((start..next).collect(), diagonal)
        })
        .collect()
}
