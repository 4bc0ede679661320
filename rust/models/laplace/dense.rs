//! Small dense symmetric matrices, row by row, and sums in a fixed order.

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "counts of rows are below 2^53")]
#[must_use]
pub fn real(count: usize) -> f64 {
    count as f64
}

/// The sum, by eight partial sums: as exact as pairs, and the same everywhere.
#[must_use]
pub fn sum(values: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    let (whole, rest) = values.as_chunks::<8>();
    for eight in whole {
        for (sum, &value) in partial.iter_mut().zip(eight) {
            *sum += value;
        }
    }
    let first = (partial[0] + partial[4]) + (partial[1] + partial[5]);
    let second = (partial[2] + partial[6]) + (partial[3] + partial[7]);
    first + second + rest.iter().sum::<f64>()
}

/// The sum of products.
#[must_use]
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// Overwrites the lower triangle by its Cholesky factor, the rest by zeros; false where the matrix
/// is not positive definite.
#[must_use]
pub fn cholesky(matrix: &mut [f64], size: usize) -> bool {
    for row in 0..size {
        for column in 0..=row {
            let (at, other) = (row * size, column * size);
            let known = dot(&matrix[at..at + column], &matrix[other..other + column]);
            let left = matrix[at + column] - known;
            if row > column {
                matrix[at + column] = left / matrix[other + column];
            } else if left > 0.0 && left.is_finite() {
                matrix[at + column] = left.sqrt();
            } else {
                return false;
            }
        }
        matrix[row * size + row + 1..(row + 1) * size].fill(0.0);
    }
    true
}

/// Solves `F x = b` in place, for a lower factor.
pub fn forward(factor: &[f64], size: usize, b: &mut [f64]) {
    for row in 0..size {
        let at = row * size;
        b[row] = (b[row] - dot(&factor[at..at + row], &b[..row])) / factor[at + row];
    }
}

/// Solves `F' x = b` in place, for a lower factor.
pub fn backward(factor: &[f64], size: usize, b: &mut [f64]) {
    for row in (0..size).rev() {
        let value = b[row] / factor[row * size + row];
        b[row] = value;
        for column in 0..row {
            b[column] -= factor[row * size + column] * value;
        }
    }
}

/// Solves `F F' x = b` in place.
pub fn solve(factor: &[f64], size: usize, b: &mut [f64]) {
    forward(factor, size, b);
    backward(factor, size, b);
}

/// The inverse of `F F'`.
#[must_use]
pub fn inverse(factor: &[f64], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * size];
    for (row, values) in out.chunks_mut(size.max(1)).enumerate() {
        values[row] = 1.0;
        solve(factor, size, values);
    }
    out
}

/// Twice the sum of the logarithms of the diagonal: the log determinant of `F F'`.
#[must_use]
pub fn log_determinant(factor: &[f64], size: usize) -> f64 {
    (0..size).map(|i| 2.0 * libm::log(factor[i * size + i])).sum()
}

/// `J V J'` for a square `J` of the same size.
#[must_use]
pub fn sandwich(outer: &[f64], inner: &[f64], size: usize) -> Vec<f64> {
    let mut half = vec![0.0; size * size];
    let mut out = vec![0.0; size * size];
    for i in 0..size {
        for k in 0..size {
            let weight = outer[i * size + k];
            if weight != 0.0 {
                for j in 0..size {
                    half[i * size + j] += weight * inner[k * size + j];
                }
            }
        }
    }
    for i in 0..size {
        for j in 0..size {
            out[i * size + j] =
                dot(&half[i * size..(i + 1) * size], &outer[j * size..(j + 1) * size]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_solves_and_inverts() {
        let matrix = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.0];
        let mut factor = matrix.to_vec();
        assert!(cholesky(&mut factor, 3));
        let inverse = inverse(&factor, 3);
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| matrix[3 * i + k] * inverse[3 * k + j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
        let determinant = 4.0 * (15.0 - 2.25) - 2.0 * (6.0 - 0.9) + 0.6 * (3.0 - 3.0);
        assert!((log_determinant(&factor, 3) - f64::ln(determinant)).abs() < 1e-14);
        assert!(!cholesky(&mut [1.0, 2.0, 2.0, 1.0], 2));
    }

    #[test]
    fn sums_take_all_values() {
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        assert!((sum(&values) - 231.0).abs() < 1e-12);
    }
}
