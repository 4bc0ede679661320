"""Resampling kernels: per-cluster totals in, replicate totals out.

G clusters, K columns, L labels, R replicates. Arrays must be C-contiguous and of the stated type;
they are never copied or converted. Replicate r draws from a random stream that depends on `seed`
and `first + r` alone, and sums run over the clusters in ascending order, so a result is the same
for any number of threads, in one call or in several, everywhere.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "__version__",
    "bootstrap_counts",
    "bootstrap_totals",
    "enumerate_blocks",
    "permutation_codes",
    "permute_blocks",
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
