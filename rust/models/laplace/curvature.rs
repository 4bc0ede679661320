//! The curvature of the penalised likelihood in the effects, and what its inverse gives.

use super::dense::{cholesky, dot, real};
use super::effects::{Effects, Factors};
use super::factor::Factor;

/// `left * right` of a (rows, inner) and an (inner, columns) matrix.
fn product(left: &[f64], right: &[f64], inner: usize, columns: usize, out: &mut [f64]) {
    for (row, out) in left.chunks(inner).zip(out.chunks_mut(columns)) {
        out.fill(0.0);
        for (&weight, right) in row.iter().zip(right.chunks(columns)) {
            for (out, &right) in out.iter_mut().zip(right) {
                *out += weight * right;
            }
        }
    }
}

/// The transpose of a (rows, columns) matrix.
fn transposed(matrix: &[f64], columns: usize, out: &mut [f64]) {
    let rows = matrix.len() / columns;
    for (i, row) in matrix.chunks(columns).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            out[j * rows + i] = value;
        }
    }
}

/// Adds the lower triangle of `left * right'`, both (width, inner), to a gradient.
fn add_lower(left: &[f64], right: &[f64], inner: usize, factor: f64, gradient: &mut [f64]) {
    let width = left.len() / inner;
    for r in 0..width {
        for c in 0..=r {
            let row = &left[r * inner..(r + 1) * inner];
            let other = &right[c * inner..(c + 1) * inner];
            gradient[r * width + c] += factor * dot(row, other);
        }
    }
}

impl Effects {
    /// The lower triangle of `H = I + L' Z'WZ L`.
    pub fn curvature(&self, factors: &Factors, blocks: &[f64], h: &mut Factor) {
        h.values.fill(0.0);
        let wide = self.pattern.wide;
        let (mut half, mut whole) = (vec![0.0; wide * wide], vec![0.0; wide * wide]);
        let mut turned: Factors = factors.clone();
        for ((turned, factor), part) in turned.iter_mut().zip(factors).zip(&self.parts) {
            transposed(factor, part.width, turned);
        }
        for node in &self.pattern.nodes {
            let width = self.parts[node.part].width;
            let (factor, turned) = (&factors[node.part], &turned[node.part]);
            if width == 1 {
                let place = self.pattern.column[node.start];
                h.values[place] = 1.0 + factor[0] * blocks[node.start * wide] * factor[0];
                continue;
            }
            let block = self.block(blocks, node.start, width);
            product(&block, factor, width, width, &mut half[..width * width]);
            product(turned, &half[..width * width], width, width, &mut whole[..width * width]);
            for c in 0..width {
                let place = self.pattern.column[node.start + c];
                for r in c..width {
                    h.values[place + r - c] = whole[r * width + c] + f64::from(u8::from(r == c));
                }
            }
        }
        for pair in &self.pattern.pairs {
            let widths = (self.parts[pair.first].width, self.parts[pair.second].width);
            let size = widths.0 * widths.1;
            let all = blocks[pair.base..].chunks(size);
            if size == 1 {
                let scale = factors[pair.first][0] * factors[pair.second][0];
                for (edge, block) in pair.edges.iter().zip(all) {
                    h.values[self.pattern.place(edge, (0, 0), widths)] = scale * block[0];
                }
                continue;
            }
            for (edge, block) in pair.edges.iter().zip(all) {
                product(block, &factors[pair.second], widths.1, widths.1, &mut half[..size]);
                let left = &turned[pair.first];
                product(left, &half[..size], widths.0, widths.1, &mut whole[..size]);
                for a in 0..widths.0 {
                    for b in 0..widths.1 {
                        h.values[self.pattern.place(edge, (a, b), widths)] =
                            whole[a * widths.1 + b];
                    }
                }
            }
        }
    }

    /// The block of a node, without gaps.
    fn block(&self, blocks: &[f64], start: usize, width: usize) -> Vec<f64> {
        let wide = self.pattern.wide;
        (0..width).flat_map(|r| blocks[(start + r) * wide..][..width].iter().copied()).collect()
    }

    /// The block of a node in an inverse on the pattern of the factor.
    #[must_use]
    pub fn inverse_block(&self, inverse: &[f64], start: usize, width: usize) -> Vec<f64> {
        let mut out = vec![0.0; width * width];
        for c in 0..width {
            for r in c..width {
                let value = inverse[self.pattern.column[start + c] + r - c];
                out[r * width + c] = value;
                out[c * width + r] = value;
            }
        }
        out
    }

    /// The covariances `L H^-1 L'` of the effects, in the layout of the blocks, and for each part
    /// the derivative of half the log determinant of `H` in its factor with the weights fixed.
    pub fn covariances(
        &self,
        factors: &Factors,
        (blocks, inverse): (&[f64], &[f64]),
        covariance: &mut [f64],
        gradient: &mut Factors,
    ) {
        let wide = self.pattern.wide;
        let scratch = || vec![0.0; wide * wide];
        let (mut half, mut other, mut turned) = (scratch(), scratch(), scratch());
        for node in &self.pattern.nodes {
            let width = self.parts[node.part].width;
            let factor = &factors[node.part];
            if width == 1 {
                let inverse = inverse[self.pattern.column[node.start]];
                gradient[node.part][0] += blocks[node.start * wide] * factor[0] * inverse;
                covariance[node.start * wide] = factor[0] * inverse * factor[0];
                continue;
            }
            let size = width * width;
            let inverse = self.inverse_block(inverse, node.start, width);
            product(factor, &inverse, width, width, &mut half[..size]);
            let block = self.block(blocks, node.start, width);
            transposed(&half[..size], width, &mut turned[..size]);
            add_lower(&block, &turned[..size], width, 1.0, &mut gradient[node.part]);
            for r in 0..width {
                for c in 0..width {
                    covariance[(node.start + r) * wide + c] =
                        dot(&half[r * width..(r + 1) * width], &factor[c * width..(c + 1) * width]);
                }
            }
        }
        for pair in &self.pattern.pairs {
            let widths = (self.parts[pair.first].width, self.parts[pair.second].width);
            let (left, right) = (&factors[pair.first], &factors[pair.second]);
            let size = widths.0 * widths.1;
            if size == 1 {
                let scale = left[0] * right[0];
                let all = blocks[pair.base..].iter().zip(&mut covariance[pair.base..]);
                let mut sum = 0.0;
                for (edge, (&block, covariance)) in pair.edges.iter().zip(all) {
                    let inverse = inverse[self.pattern.place(edge, (0, 0), widths)];
                    sum += block * inverse;
                    *covariance = scale * inverse;
                }
                gradient[pair.first][0] += sum * right[0];
                gradient[pair.second][0] += sum * left[0];
                continue;
            }
            let mut own = vec![0.0; size];
            let mut back = vec![0.0; size];
            for (number, edge) in pair.edges.iter().enumerate() {
                let base = pair.base + number * size;
                let block = &blocks[base..base + size];
                for a in 0..widths.0 {
                    for b in 0..widths.1 {
                        own[a * widths.1 + b] = inverse[self.pattern.place(edge, (a, b), widths)];
                    }
                }
                // L1 H^-1, then all of L1 H^-1 L2'.
                product(left, &own, widths.0, widths.1, &mut half[..size]);
                for a in 0..widths.0 {
                    for b in 0..widths.1 {
                        covariance[base + a * widths.1 + b] = dot(
                            &half[a * widths.1..(a + 1) * widths.1],
                            &right[b * widths.1..(b + 1) * widths.1],
                        );
                    }
                }
                // S21 (L1 H^-1) for the second part, S12 (L2 H^-1') for the first.
                transposed(block, widths.1, &mut back);
                transposed(&half[..size], widths.1, &mut turned[..size]);
                add_lower(&back, &turned[..size], widths.0, 1.0, &mut gradient[pair.second]);
                for a in 0..widths.0 {
                    for b in 0..widths.1 {
                        other[a * widths.1 + b] = dot(
                            &own[a * widths.1..(a + 1) * widths.1],
                            &right[b * widths.1..(b + 1) * widths.1],
                        );
                    }
                }
                add_lower(block, &other[..size], widths.1, 1.0, &mut gradient[pair.first]);
            }
        }
    }

    /// The factors of the mean over the levels of `u u'` and the covariance of `u`: one step of the
    /// EM algorithm, a long one where the levels have many rows. A factor that has none stays.
    #[must_use]
    pub fn averaged(&self, factors: &Factors, u: &[f64], covariance: &[f64]) -> Factors {
        let wide = self.pattern.wide;
        let mut sums: Factors = factors.iter().map(|factor| vec![0.0; factor.len()]).collect();
        for node in &self.pattern.nodes {
            let width = self.parts[node.part].width;
            let u = &u[node.start..node.start + width];
            for (r, row) in sums[node.part].chunks_mut(width).enumerate() {
                let covariance = &covariance[(node.start + r) * wide..];
                for ((sum, other), covariance) in row.iter_mut().zip(u).zip(covariance) {
                    *sum += u[r] * other + covariance;
                }
            }
        }
        for ((sum, factor), part) in sums.iter_mut().zip(factors).zip(&self.parts) {
            for sum in sum.iter_mut() {
                *sum /= real(part.n_levels);
            }
            if !cholesky(sum, part.width) {
                sum.clone_from(factor);
            }
        }
        sums
    }

    /// Adds `sum over levels of g v'`, its lower triangle, to the gradient in the factors.
    pub fn add_outer(&self, g: &[f64], v: &[f64], gradient: &mut Factors) {
        for node in &self.pattern.nodes {
            let width = self.parts[node.part].width;
            if width == 1 {
                gradient[node.part][0] += g[node.start] * v[node.start];
                continue;
            }
            let range = node.start..node.start + width;
            add_lower(&g[range.clone()], &v[range], 1, 1.0, &mut gradient[node.part]);
        }
    }
}
