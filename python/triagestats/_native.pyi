"""Resampling kernels: per-cluster totals in, replicate totals out.

G clusters, K columns, L labels, R replicates. Arrays must be C-contiguous and of the stated type;
they are never copied or converted. Replicate r draws from a random stream that depends on `seed`
and `first + r` alone, and sums run over the clusters in ascending order, so a result is the same
for any number of threads, in one call or in several, on every processor.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MixedPosterior",
    "__version__",
    "bayesian_totals",
    "bayesian_weights",
    "bootstrap_collapsed",
    "bootstrap_counts",
    "bootstrap_totals",
    "bootstrap_totals_int",
    "collapsed_counts",
    "crossed_counts",
    "crossed_totals",
    "enumerate_blocks",
    "enumerate_wild_regression",
    "fit_laplace",
    "nested_totals",
    "permutation_codes",
    "permute_blocks",
    "quantile_pairs",
    "sign_flip_totals",
    "sign_flips",
    "subset_masks",
    "subset_totals",
    "weighted_wild_regression",
    "wild_regression",
    "wild_weights",
]

__version__: str

def bootstrap_totals(
    totals: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    strata: NDArray[np.uint32] | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Replicate totals of the multinomial cluster bootstrap.

    `totals` is (G, K), finite, in any units. `strata` is (G,) with codes 0 to S - 1 without gaps;
    each stratum then gets as many draws as it has clusters. Returns (R, K) in the units of
    `totals`: `bootstrap_counts(...) @ totals`, summed over the clusters in ascending order.
    """

def bootstrap_counts(
    n_clusters: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    strata: NDArray[np.uint32] | None = None,
) -> NDArray[np.uint32]:
    """Multiplicities of the clusters in the multinomial cluster bootstrap.

    Returns (R, G): how often each cluster was drawn. A row sums to G, and within a stratum to its
    number of clusters.
    """

def bootstrap_totals_int(
    totals: NDArray[np.int8] | NDArray[np.uint8] | NDArray[np.int16] | NDArray[np.int32] | NDArray[np.int64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    strata: NDArray[np.uint32] | None = None,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    """Replicate totals of the multinomial cluster bootstrap, for integers.

    As `bootstrap_totals`, with the same draws: returns (R, K), exactly
    `bootstrap_counts(...) @ totals`. It is fastest when the values of each column lie within 255 of
    each other, and the faster the smaller their range.
    """

def bootstrap_collapsed(
    totals: NDArray[np.float64],
    multiplicities: NDArray[np.uint32] | NDArray[np.uint64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Replicate totals of the cluster bootstrap from the distinct rows of the totals.

    `totals` is (D, K), finite: a cluster of each class. `multiplicities` is (D,): the clusters of
    each class, which sum to G, from 1 to 2**32 - 1. Returns (R, K):
    `collapsed_counts(...) @ totals`, summed over the classes in ascending order. The distribution
    is that of `bootstrap_totals` on the G rows, the draws are others.
    """

def collapsed_counts(
    multiplicities: NDArray[np.uint32] | NDArray[np.uint64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> NDArray[np.uint32]:
    """Times that each class is drawn by `bootstrap_collapsed`: (R, D), a row sums to G."""

def nested_totals(
    values: NDArray[np.float64],
    offsets: NDArray[np.int64],
    n_columns: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    strata: NDArray[np.uint32] | None = None,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
    """Sums of cell means in the bootstrap of clusters and, within each, repetitions.

    Cell (g, k) has the finite `values[offsets[g * K + k]:offsets[g * K + k + 1]]`, at most 65,535;
    it may have none. Clusters are drawn as by `bootstrap_counts`; then each cell of each drawn
    cluster draws as many of its repetitions as it has, with replacement, anew for every time the
    cluster was drawn. Returns (R, K) twice: the sum, over the drawn clusters that have the cell, of
    the mean of its drawn repetitions, and the number of those clusters.

    Values of 0 and 1 alone are drawn in groups, by binomial numbers, when that is faster.
    """

def crossed_totals(
    totals: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Replicate totals of the bootstrap of two crossed classifications.

    `totals` is (G1, G2, K), finite. Both classifications are drawn with replacement, each
    independently of the other. Returns (R, K): the sum over i and j, i the slower, of
    `first_counts[r, i] * second_counts[r, j] * totals[i, j]`.
    """

def crossed_counts(
    n_first: int,
    n_second: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Multiplicities that `crossed_totals` multiplies: (R, G1) and (R, G2).

    Those of the first classification are `bootstrap_counts(n_first, ...)`.
    """

def bayesian_totals(
    totals: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Weighted totals of the Bayesian bootstrap.

    `totals` is (G, K), finite. Returns (R, K): up to rounding, `bayesian_weights(...) @ totals`.
    """

def bayesian_weights(
    n_clusters: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> NDArray[np.float64]:
    """Dirichlet(1, ..., 1) weights of the clusters, scaled to sum to G: (R, G), positive."""

def wild_weights(
    n_clusters: int,
    n_resamples: int,
    seed: int,
    *,
    kind: Literal["rademacher", "webb", "mammen"],
    first: int = 0,
) -> NDArray[np.float64]:
    """Weights of the wild cluster bootstrap: (R, G), of mean 0 and variance 1.

    "rademacher": `sign_flips`. "webb": plus or minus the square root of 1/2, 1 or 3/2, each as
    likely. "mammen": (1 - sqrt 5) / 2 with chance (sqrt 5 + 1) / (2 sqrt 5), else
    (1 + sqrt 5) / 2.
    """

def wild_regression(
    scores: NDArray[np.float64],
    left: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    kind: Literal["rademacher", "webb", "mammen"],
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Replicates of a coefficient and its variance in the wild cluster bootstrap.

    `scores` is (G, P, 1 + K), finite, with P one or two vectors of residuals; `left` is (G, K). With
    w the weights of a replicate, those of `wild_weights`, part p has the sum
    `w @ scores[:, p, 0]` and, for the clusters, the scores
    `w * scores[:, p, 0] - left @ (w @ scores[:, p, 1:])`. Returns (R, 2), of two parts (R, 5): the
    sum of each part; then the sum of the squares of the scores of the first and, of two, the sum of
    their products and that of the squares of the second.
    """

def enumerate_wild_regression(
    scores: NDArray[np.float64],
    left: NDArray[np.float64],
    n_resamples: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """As `wild_regression`, for sign vectors number `first` to `first + n_resamples - 1` of all 2**G.

    Cluster g is negated where bit g of the number is set, so number 0 changes nothing. G is at most 63.
    """

def weighted_wild_regression(
    scores: NDArray[np.float64],
    left: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """As `wild_regression`, for the given `weights`, (R, G)."""

def sign_flip_totals(
    values: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Totals under a random sign for each cluster.

    `values` is (G, K), finite, in any units. Returns (R, K): `sign_flips(...) @ values`, summed over
    the clusters in ascending order. Integers from -255 to 255 are summed fastest, and exactly.
    """

def sign_flips(
    n_clusters: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> NDArray[np.int8]:
    """Signs that `sign_flip_totals` multiplies with: (R, G), 1 or -1.

    -1 is where `permutation_codes` of two labels is 1.
    """

def subset_totals(
    totals: NDArray[np.float64],
    size: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Totals of random subsets of the clusters.

    `totals` is (G, K), finite, in any units; `size` of the G clusters are drawn without replacement.
    Returns (R, K) in the units of `totals`: `subset_masks(...) @ totals`, summed over the clusters in
    ascending order.
    """

def subset_masks(
    n_clusters: int,
    size: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> NDArray[np.uint8]:
    """Subsets that `subset_totals` sums, for the same `seed` and `first`.

    Returns (R, G): 1 for the clusters that were drawn, 0 for the others; a row sums to `size`.
    """

def permute_blocks(
    blocks: NDArray[np.float64],
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Totals after a random permutation of the labels within each cluster.

    `blocks` is (G, L, K), finite, in any units, with L from 2 to 8. Returns (R, L, K) in the units
    of `blocks`: `out[r, l]` is the sum over the clusters g of `blocks[g, permutation[l]]`, with one
    permutation for each r and g.
    """

def permutation_codes(
    n_clusters: int,
    n_labels: int,
    n_resamples: int,
    seed: int,
    *,
    first: int = 0,
) -> NDArray[np.uint16]:
    """Codes of the permutations that `permute_blocks` draws.

    Returns (R, G): the place of each permutation in
    `list(itertools.permutations(range(n_labels)))`; 0 moves nothing.
    """

def enumerate_blocks(
    blocks: NDArray[np.float64],
    n_resamples: int,
    *,
    first: int = 0,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Totals under the arrangements number `first` to `first + n_resamples - 1` of all (L!)**G.

    `blocks` is (G, L, K) as in `permute_blocks`. The digits of an arrangement's number in base L!
    are the permutation codes, cluster 0 the least significant, so arrangement 0 moves nothing.
    Returns (R, L, K) in the units of `blocks`.
    """

def quantile_pairs(
    replicates: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Two quantiles of the finite values of each column of `replicates`, (R, E).

    `low` and `high` are (E,), probabilities. With n finite values, the quantile of p lies at rank
    p (n + 1), counted from 1, rounded to nine decimals and kept within 1 and n; between ranks it is
    interpolated. Returns (2, E); NaN for both where either probability is not finite, or no value
    is.
    """

def fit_laplace(
    family: str,
    y: NDArray[np.float64] | NDArray[np.uint32],
    counts: NDArray[np.float64],
    x: NDArray[np.float64],
    parts: Sequence[tuple[NDArray[np.uint32], NDArray[np.float64] | None, int]],
    *,
    n_levels: int,
    nodes: NDArray[np.float64] | None,
    log_weights: NDArray[np.float64] | None,
    reml: bool,
) -> dict[str, Any]:
    """A mixed model by the Laplace approximation, or by adaptive quadrature.

    `family` is `binomial`, `ordinal` or `gaussian`. Of n cells, `y` is (n,), the successes or the
    outcomes, of `ordinal` the levels from 0 as uint32; `counts` is (n,), trials or rows; `x` is
    (n, p), of full column rank. Each of `parts` has the level of each cell, (n,), what multiplies
    its effects, (n, q) or None for an intercept alone, and the number of levels. `n_levels` is that
    of an ordinal outcome. `nodes` and `log_weights` are a quadrature for a standard normal variable,
    None for the Laplace approximation. `reml` is read for `gaussian`.

    Returns `thresholds`, `coefficients`, `factors` (q, q) of each part, `sigma`, `modes` (levels, q)
    and `mode_variances` (levels, q, q) of each part, `vcov` of all parameters, `loglik`, `ending`
    (`converged`, `stuck`, `tired`, `flat` or `separated`), `gradient`, `singular` and `evaluations`.
    """

@final
class MixedPosterior:
    """The posterior of a logistic mixed model with random intercepts.

    `rows` (K, p) are the distinct rows of fixed columns; their coefficients are `centre` (p,)
    `+ basis` (p, p) `@ z`, with prior `variances` (p,) that those of mean effects are added to.
    `parts` are objects with the attributes `n_levels`, `free`, `bounds`, `at`, `normals`,
    `information`, `pull`, `shares` and `directions`; `scales` (T,) those of the half-normal priors
    of the standard deviations. `y` and `counts` (n,) are successes and trials, `codes`
    (1 + parts, n) the row of fixed columns and the level of each part.

    With `crossed`, the number of a table of `codes` with I entries, `y` and `counts` are (I, C) and
    `codes` (1 + parts, C). With `groups` (n,), below `n_groups`, one more part is integrated out by
    a quadrature.
    """

    def __new__(
        cls,
        rows: NDArray[np.float64],
        centre: NDArray[np.float64],
        basis: NDArray[np.float64],
        variances: NDArray[np.float64],
        parts: Sequence[object],
        scales: NDArray[np.float64],
        y: NDArray[np.float64],
        counts: NDArray[np.float64],
        codes: NDArray[np.uint32],
        *,
        crossed: int | None = None,
        groups: NDArray[np.uint32] | None = None,
        n_groups: int = 0,
        nodes: NDArray[np.float64] | None = None,
        log_weights: NDArray[np.float64] | None = None,
    ) -> MixedPosterior: ...
    @property
    def n_coordinates(self) -> int:
        """Coordinates of a position."""

    def log_density(self, position: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The log-density at a position, up to a constant, and its gradient."""

    def sample(
        self,
        starts: NDArray[np.float64],
        *,
        n_tune: int,
        n_draws: int,
        seed: int,
        target_accept: float,
        max_depth: int,
        every: int = 1,
        every_integrated: int = 1,
        n_threads: int = 1,
        watch: Callable[[int], object] | None = None,
        keep: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """Draws from the posterior, a chain from each row of `starts`.

        `watch` is called with the number of steps done; an exception of it, or Ctrl-C, stops the
        chains. With `keep`, what they have drawn until a KeyboardInterrupt is returned, as many
        draws of each; otherwise the exception is raised. Chain c draws from streams that depend on
        `seed` and c alone, so the draws are the same for any number of threads.
        """
