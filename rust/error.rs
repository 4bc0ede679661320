//! The one error of the kernels.

/// What the kernels return.
pub type Result<T> = std::result::Result<T, Error>;

/// An input that no kernel can work on. Each message names the argument, what was expected and what
/// came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A slice whose length does not follow from the other arguments.
    #[error("`{name}` must hold {expected} values, got {actual}")]
    Shape {
        /// The argument.
        name: &'static str,
        /// Length that the other arguments imply.
        expected: usize,
        /// Length that came.
        actual: usize,
    },
    /// Output whose length is not a whole number of replicates.
    #[error("`out` must hold whole replicates of {row_len} values, got {actual} values")]
    PartialReplicate {
        /// Values in one replicate.
        row_len: usize,
        /// Length that came.
        actual: usize,
    },
    /// A size of zero.
    #[error("{what} must be at least 1, got 0")]
    Empty {
        /// What there is none of.
        what: &'static str,
    },
    /// NaN or an infinity among the values.
    #[error(
        "`{name}` must be finite, got {value} at {at:?}; \
         remove or fill missing values before summing by cluster"
    )]
    NotFinite {
        /// The argument.
        name: &'static str,
        /// The value, as text, so that errors can be compared.
        value: String,
        /// Index of the value on each axis.
        at: Vec<usize>,
    },
    /// A stratum code that no cluster has, below one that some cluster has.
    #[error(
        "`strata` must use every code from 0 to {largest}, but no cluster has code {code}; \
         number the strata without gaps"
    )]
    StrataGap {
        /// The smallest code without a cluster.
        code: u32,
        /// The largest code in use.
        largest: u32,
    },
    /// A number of labels for which there is no permutation kernel.
    #[error("there must be 2 to 8 labels, got {n_labels}")]
    Labels {
        /// Labels that came.
        n_labels: usize,
    },
    /// More rows than a 32-bit index can name.
    #[error("there may be at most {limit} rows (clusters x labels), got {actual}")]
    TooManyRows {
        /// Largest number of rows.
        limit: u32,
        /// Rows that came.
        actual: usize,
    },
    /// Offsets that do not divide the values.
    #[error("`offsets` must start at 0, never fall, and end at the {n_values} values")]
    Offsets {
        /// Values to divide.
        n_values: usize,
    },
    /// More repetitions in a cell than there are 16-bit numbers.
    #[error("a cell may have at most {limit} repetitions; cell number {cell} has more")]
    TooManyRepetitions {
        /// Place of the cell in the order of the offsets.
        cell: usize,
        /// Largest number.
        limit: u16,
    },
    /// A code that names no entry of its table.
    #[error("`codes` must be below {size}, the number of entries of their table, got {code}")]
    CodeTooLarge {
        /// The code.
        code: u32,
        /// Entries of the table.
        size: usize,
    },
    /// A size that another argument bounds.
    #[error("{what} must be below {limit}, got {actual}")]
    OutOfRange {
        /// What is too large.
        what: &'static str,
        /// The smallest number that is too large.
        limit: usize,
        /// What came.
        actual: usize,
    },
    /// A sampler that could not start, or not go on.
    #[error("chain {chain} of the sampler stopped: {reason}")]
    Sampler {
        /// Number of the chain.
        chain: usize,
        /// What the sampler says.
        reason: String,
    },
    /// Integers whose sum might not fit.
    #[error(
        "`totals` times the number of clusters must fit in 64 bits, got {value} x {n_clusters}; \
         pass the totals as floats"
    )]
    SumTooLarge {
        /// A total.
        value: i64,
        /// Clusters, and draws.
        n_clusters: usize,
    },
    /// A subset of more clusters than there are.
    #[error("`size` must be at most the {n_clusters} clusters, got {size}")]
    SubsetSize {
        /// Clusters in the subset.
        size: usize,
        /// Clusters that there are.
        n_clusters: usize,
    },
    /// Replicate numbers that go past 64 bits.
    #[error("`first` + `n_resamples` must stay within 64 bits, got {first} + {n_resamples}")]
    ReplicateRange {
        /// Number of the first replicate.
        first: u64,
        /// Replicates asked for.
        n_resamples: usize,
    },
    /// Arrangements past the last one.
    #[error(
        "`first` + `n_resamples` must not exceed the {available} arrangements, \
         got {first} + {n_resamples}"
    )]
    TooManyArrangements {
        /// Number of the first arrangement.
        first: u64,
        /// Arrangements asked for.
        n_resamples: usize,
        /// Arrangements that exist.
        available: u64,
    },
    /// A number of arrangements that 64 bits cannot hold.
    #[error(
        "{n_clusters} clusters of {n_labels} labels have more arrangements than 64 bits can \
         number; draw permutations at random instead"
    )]
    UncountableArrangements {
        /// Clusters.
        n_clusters: usize,
        /// Labels in each.
        n_labels: usize,
    },
    /// Output that memory cannot hold.
    #[error(
        "{n_resamples} replicates of {row_len} values do not fit in memory; \
         ask for fewer at a time and move `first` on"
    )]
    TooLarge {
        /// Replicates asked for.
        n_resamples: usize,
        /// Values in one replicate.
        row_len: usize,
    },
    /// A value out of its range.
    #[error("`{name}` must be {expected}, got {value} at {at}")]
    Range {
        /// The argument.
        name: &'static str,
        /// What it must be.
        expected: String,
        /// The value, as text, so that errors can be compared.
        value: String,
        /// Its index.
        at: usize,
    },
    /// Levels of an ordered outcome that no cell has, or too few.
    #[error(
        "`y` must have 2 levels or more, each of some cell, got {n_levels}; leave out levels that never occur"
    )]
    Levels {
        /// Levels.
        n_levels: usize,
    },
    /// A column that depends on those before it.
    #[error("column {column} is 0 or depends on the columns before it; leave it out")]
    Dependent {
        /// Its number.
        column: usize,
    },
    /// A quadrature over more than one effect.
    #[error(
        "quadrature takes one grouping with one effect of a level, and a binomial or ordinal outcome; use 1 node"
    )]
    Quadrature,
    /// No more rows than coefficients.
    #[error(
        "there must be more rows than coefficients, got {n_rows} rows and {n_coefficients} coefficients"
    )]
    TooFewRows {
        /// Rows.
        n_rows: usize,
        /// Coefficients.
        n_coefficients: usize,
    },
    /// An outcome that the regressors fit exactly.
    #[error("the regressors fit `y` exactly, which leaves no variance to divide")]
    NoResidual,
    /// A likelihood without a value at the start.
    #[error(
        "the likelihood has no finite value at the start; look for extreme values in `x` or `z`"
    )]
    NoLikelihood,
    /// A caller that wants no more.
    #[error("interrupted")]
    Interrupted,
}

/// Checks that a matrix with the given axes has cells, and that `values` fills it with finite
/// numbers.
///
/// # Errors
/// [`Error::Shape`] for another length, [`Error::NotFinite`] for the first NaN or infinity.
pub(crate) fn check_values(name: &'static str, values: &[f64], axes: &[usize]) -> Result<()> {
    let expected = axes.iter().try_fold(1_usize, |size, &axis| size.checked_mul(axis));
    if expected != Some(values.len()) {
        return Err(Error::Shape {
            name,
            expected: expected.unwrap_or(usize::MAX),
            actual: values.len(),
        });
    }
    check_finite(name, values, axes)
}

/// Checks that all values are finite numbers.
///
/// # Errors
/// [`Error::NotFinite`] for the first NaN or infinity, by its place on the axes.
pub(crate) fn check_finite(name: &'static str, values: &[f64], axes: &[usize]) -> Result<()> {
    let Some(flat) = values.iter().position(|value| !value.is_finite()) else {
        return Ok(());
    };
    let mut rest = flat;
    let mut at: Vec<usize> = axes
        .iter()
        .rev()
        .map(|&axis| {
            let index = rest % axis;
            rest /= axis;
            index
        })
        .collect();
    at.reverse();
    Err(Error::NotFinite { name, value: values[flat].to_string(), at })
}

/// Checks that there is at least one of `what`.
///
/// # Errors
/// [`Error::Empty`] otherwise.
pub(crate) fn check_some(what: &'static str, size: usize) -> Result<()> {
    if size == 0 { Err(Error::Empty { what }) } else { Ok(()) }
}

/// The number of rows as a 32-bit index, which keeps the lists of rows small.
///
/// # Errors
/// [`Error::TooManyRows`] past 32 bits.
pub(crate) fn check_rows(n_rows: usize) -> Result<u32> {
    u32::try_from(n_rows).map_err(|_| Error::TooManyRows { limit: u32::MAX, actual: n_rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_located_on_their_axes() {
        let mut values = vec![0.0; 24];
        assert_eq!(check_values("x", &values, &[2, 3, 4]), Ok(()));
        values[17] = f64::NEG_INFINITY;
        assert_eq!(
            check_values("x", &values, &[2, 3, 4]),
            Err(Error::NotFinite { name: "x", value: "-inf".into(), at: vec![1, 1, 1] })
        );
    }

    #[test]
    fn lengths_must_agree_with_axes() {
        assert_eq!(
            check_values("x", &[0.0; 5], &[2, 3]),
            Err(Error::Shape { name: "x", expected: 6, actual: 5 })
        );
        assert_eq!(
            check_values("x", &[], &[usize::MAX, 2]),
            Err(Error::Shape { name: "x", expected: usize::MAX, actual: 0 })
        );
    }

    #[test]
    fn rows_past_32_bits_are_refused() {
        assert_eq!(check_rows(7), Ok(7));
        #[cfg(target_pointer_width = "64")]
        assert_eq!(
            check_rows(1 << 32),
            Err(Error::TooManyRows { limit: u32::MAX, actual: 1 << 32 })
        );
    }

    #[test]
    fn messages_name_the_argument() {
        let error = Error::NotFinite { name: "totals", value: "NaN".into(), at: vec![3, 1] };
        assert_eq!(
            error.to_string(),
            "`totals` must be finite, got NaN at [3, 1]; \
             remove or fill missing values before summing by cluster"
        );
    }
}
