//! The Cholesky factor of a sparse matrix, and the inverse on its pattern.

use super::pattern::Pattern;

/// The values of a factor, in the layout of a pattern.
#[derive(Debug, Clone)]
pub struct Factor {
    /// On entry to [`Factor::factorise`] the lower triangle of the matrix; then the factor.
    pub values: Vec<f64>,
    work: Vec<f64>,
}

impl Factor {
    /// Zeros.
    #[must_use]
    pub fn new(pattern: &Pattern) -> Self {
        Self { values: vec![0.0; pattern.rows.len()], work: vec![0.0; pattern.size] }
    }

    /// Overwrites the matrix by its factor, column by column; false where it is not positive
    /// definite.
    #[must_use]
    pub fn factorise(&mut self, pattern: &Pattern) -> bool {
        let (values, work) = (&mut self.values, &mut self.work);
        for column in 0..pattern.size {
            let (start, end) = (pattern.column[column], pattern.column[column + 1]);
            for (&row, &value) in pattern.rows[start..end].iter().zip(&values[start..end]) {
                work[row as usize] = value;
            }
            for &(earlier, place) in &pattern.across[pattern.row[column]..pattern.row[column + 1]] {
                let range = place as usize..pattern.column[earlier as usize + 1];
                let weight = values[range.start];
                let rows = &pattern.rows[range.clone()];
                let first = rows[0] as usize;
                if rows[rows.len() - 1] as usize - first + 1 == rows.len() {
                    let work = &mut work[first..first + rows.len()];
                    for (work, &value) in work.iter_mut().zip(&values[range]) {
                        *work -= weight * value;
                    }
                } else {
                    for (&row, &value) in rows.iter().zip(&values[range]) {
                        work[row as usize] -= weight * value;
                    }
                }
            }
            let square = work[column];
            if square.is_nan() || square <= 0.0 || square.is_infinite() {
                return false;
            }
            let root = square.sqrt();
            values[start] = root;
            for place in start + 1..end {
                values[place] = work[pattern.rows[place] as usize] / root;
            }
        }
        true
    }

    /// The log determinant of the matrix.
    #[must_use]
    pub fn log_determinant(&self, pattern: &Pattern) -> f64 {
        let starts = &pattern.column[..pattern.size];
        2.0 * starts.iter().map(|&start| libm::log(self.values[start])).sum::<f64>()
    }

    /// Solves for one right side, in place.
    pub fn solve(&self, pattern: &Pattern, b: &mut [f64]) {
        for column in 0..pattern.size {
            let (start, end) = (pattern.column[column], pattern.column[column + 1]);
            let value = b[column] / self.values[start];
            b[column] = value;
            if value != 0.0 {
                for place in start + 1..end {
                    b[pattern.rows[place] as usize] -= self.values[place] * value;
                }
            }
        }
        for column in (0..pattern.size).rev() {
            let (start, end) = (pattern.column[column], pattern.column[column + 1]);
            let mut left = b[column];
            for place in start + 1..end {
                left -= self.values[place] * b[pattern.rows[place] as usize];
            }
            b[column] = left / self.values[start];
        }
    }

    /// The inverse where the factor may be other than zero (Takahashi's recursion, from the last
    /// column to the first).
    pub fn inverse(&self, pattern: &Pattern, out: &mut [f64]) {
        let mut sums: Vec<f64> = Vec::new();
        for column in (0..pattern.size).rev() {
            let (start, end) = (pattern.column[column], pattern.column[column + 1]);
            let diagonal = self.values[start];
            let below = &pattern.rows[start + 1..end];
            let factor = &self.values[start + 1..end];
            sums.clear();
            sums.resize(below.len(), 0.0);
            for (a, &row) in below.iter().enumerate() {
                let (from, to) = (pattern.column[row as usize], pattern.column[row as usize + 1]);
                sums[a] += out[from] * factor[a];
                let rest = below.len() - a - 1;
                if to - from - 1 == rest {
                    let mut own = 0.0;
                    for (b, &value) in (a + 1..).zip(&out[from + 1..to]) {
                        sums[b] += value * factor[a];
                        own += value * factor[b];
                    }
                    sums[a] += own;
                } else {
                    let mut place = from + 1;
                    for b in a + 1..below.len() {
                        while pattern.rows[place] != below[b] {
                            place += 1;
                        }
                        sums[b] += out[place] * factor[a];
                        sums[a] += out[place] * factor[b];
                    }
                }
            }
            let mut own = 1.0 / diagonal;
            for ((out, &sum), &factor) in out[start + 1..end].iter_mut().zip(&sums).zip(factor) {
                let value = -sum / diagonal;
                *out = value;
                own -= factor * value;
            }
            out[start] = own / diagonal;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dense;
    use super::super::pattern::Part;
    use super::*;

    /// Three crossed groupings, of which no two have all combinations.
    fn pattern() -> Pattern {
        let part = |times: u32, n_levels: u32, width: usize| Part {
            codes: (0..40).map(|i| i * times % n_levels).collect(),
            z: if width == 1 { Vec::new() } else { vec![1.0; 40 * width] },
            width,
            n_levels: n_levels as usize,
        };
        Pattern::new(&[part(1, 9, 2), part(3, 5, 1), part(7, 11, 1)], 40).expect("small")
    }

    #[test]
    fn a_sparse_factor_is_the_dense_one() {
        let pattern = pattern();
        let n = pattern.size;
        let mut sparse = Factor::new(&pattern);
        let mut dense = vec![0.0; n * n];
        for column in 0..n {
            for place in pattern.column[column]..pattern.column[column + 1] {
                let row = pattern.rows[place] as usize;
                let value =
                    if row == column { 30.0 } else { dense::real(place * 7 % 13) / 13.0 - 0.4 };
                sparse.values[place] = value;
                dense[row * n + column] = value;
                dense[column * n + row] = value;
            }
        }
        assert!(sparse.factorise(&pattern));
        assert!(dense::cholesky(&mut dense, n));
        let logs = dense::log_determinant(&dense, n);
        assert!((sparse.log_determinant(&pattern) - logs).abs() < 1e-11);
        let mut ours: Vec<f64> = (0..n).map(dense::real).collect();
        let mut theirs = ours.clone();
        sparse.solve(&pattern, &mut ours);
        dense::solve(&dense, n, &mut theirs);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() < 1e-12);
        }
        let whole = dense::inverse(&dense, n);
        let mut found = vec![0.0; pattern.rows.len()];
        sparse.inverse(&pattern, &mut found);
        for column in 0..n {
            let places = pattern.column[column]..pattern.column[column + 1];
            for (&row, found) in pattern.rows[places.clone()].iter().zip(&found[places]) {
                assert!((found - whole[row as usize * n + column]).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_none() {
        let pattern = pattern();
        let mut factor = Factor::new(&pattern);
        factor.values[pattern.column[0]] = -1.0;
        assert!(!factor.factorise(&pattern));
        factor.values.fill(f64::NAN);
        assert!(!factor.factorise(&pattern));
    }
}
