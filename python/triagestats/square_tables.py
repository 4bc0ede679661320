"""bowker and stuart_maxwell: symmetry and equal margins of pairs of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method
from triagestats.association import chi_square_tail
from triagestats.crosstab import Crosstab
from triagestats.label_pairs import read_square
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Note, Test
from triagestats.side_flips import CLUSTERED, SideFlips, side_flips
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["bowker", "stuart_maxwell"]

Symmetry = Literal["chi-square", "cluster-sign-flip", "auto"]
Margins = Literal["stuart-maxwell", "bhapkar", "cluster-sign-flip", "auto"]

ALL_ONE_WAY: Final = 1e-12
"""Share of the variance that may be left by rounding where none is."""


def bowker(
    x: object,
    y: object = None,
    *,
    categories: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    method: Symmetry | None = None,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Bowker's test of symmetry of a square table of pairs.

    The hypothesis is that a pair is as likely (i, j) as (j, i):

        X2 = sum over i < j of (n_ij - n_ji)^2 / (n_ij + n_ji),

    with one degree of freedom for each pair of categories with n_ij + n_ji > 0. For two categories it is
    McNemar's test without correction.

    Parameters
    ----------
    x, y
        `x` alone: a square table of counts, or a ResponseTable. Both: labels of one length, or names of
        columns of `data`; or, where `data` is a ResponseTable, condition levels (none needed where there are
        two), whose responses to the same key are paired, also a judged one with one that nobody judged.
    categories
        The scale of the labels. Default: that of the ResponseTable, else the labels that occur.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or a column of `data`.
    missing
        `raise`, or `omit` the pairs that lack a label.
    method
        `chi-square`, which takes pairs as independent; where they share clusters, a note says so.
        `cluster-sign-flip`: the law of X2 when x and y are exchanged for all pairs of a cluster, or not.
        Default (`auto`, or None): `cluster-sign-flip` where pairs share `clusters`, else `chi-square`.
    n_resamples, seed
        For `cluster-sign-flip`: all flips are taken where they are at most R, else R are drawn.

    Returns
    -------
    Test
        `details`: `df`, `n_discordant`, `table`, `categories`; for `cluster-sign-flip` also `way`,
        `n_clusters`, `n_resamples`, `seed`. There is no estimate.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If the table is not square or holds what is no count, or labels do not pair or are not on the scale.
    DataError
        If a label is missing (unless `omit`).
    DesignError
        If a ResponseTable has no responses, or none to pair.

    Notes
    -----
    R and statsmodels keep k (k - 1) / 2 degrees of freedom where a pair of categories is empty, and R then
    gives NaN. Where no pair differs, p is 1, as no other table is possible given the differing pairs, and
    the statistic is undefined. The chi-square law is for many differing pairs.

    An exchange of the sides of a cluster leaves n_ij + n_ji as it is and turns the sign of n_ij - n_ji. The
    flips test that the sides of a cluster are exchangeable, however its pairs depend on each other.

    References
    ----------
    Bowker, A. H. (1948), A test for symmetry in contingency tables, Journal of the American Statistical
    Association 43(244):572-574, doi:10.1080/01621459.1948.10483284.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.bowker([[45, 13, 5], [8, 18, 30], [9, 25, 40]])
    >>> round(result.statistic, 5), result.details["df"], round(result.p_value, 5)
    (2.78788, 3, 0.4255)
    >>> ts.bowker(["A", "B", "B", "C"], ["B", "A", "B", "A"]).details["df"]
    2
    """
    chosen = chosen_method(method, Symmetry)
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    table = read_square(x, y, categories=categories, data=data, clusters=clusters, missing=missing)
    counts = table.counts.astype(np.float64)
    above = np.triu_indices(len(counts), 1)
    sums = (counts + counts.T)[above]
    used = sums > 0
    df = int(used.sum())

    def evaluate(totals: Array) -> Array:
        tables = totals.reshape(*totals.shape[:-1], *counts.shape)
        differences = (tables - np.swapaxes(tables, -1, -2))[..., above[0], above[1]]
        found: Array = (differences[..., used] ** 2 / sums[used]).sum(axis=-1)
        return found

    statistic = float(evaluate(counts.ravel())) if df else None
    flips = None
    if chosen == "cluster-sign-flip" or (chosen is None and table.clustered):
        flips = side_flips(table, evaluate, resamples, seed)
    return _test(table, "Bowker's test of symmetry", statistic, df, {}, flips=flips)


def stuart_maxwell(
    x: object,
    y: object = None,
    *,
    method: Margins | None = None,
    categories: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Stuart and Maxwell's test of equal margins of a square table of pairs.

    With d_i = n_i. - n_.i, the hypothesis is that each label is as frequent on both sides:

        X2 = d' S^- d,    S_ii = n_i. + n_.i - 2 n_ii,    S_ij = -(n_ij + n_ji),

    with k - 1 degrees of freedom. `bhapkar` takes the covariance without assuming the hypothesis,
    S - d d' / n, so that its statistic is X2 / (1 - X2 / n).

    Parameters
    ----------
    x, y, categories, data, clusters, missing, n_resamples, seed
        As in `bowker`.
    method
        `stuart-maxwell`, or `bhapkar`, a little more powerful: the other one is in `details`. Both take pairs
        as independent. `cluster-sign-flip`: the law of X2 when x and y are exchanged for all pairs of a
        cluster, or not, which is that of Bhapkar's statistic too. Default (`auto`, or None):
        `cluster-sign-flip` where pairs share `clusters`, else `stuart-maxwell`.

    Returns
    -------
    Test
        `details`: `df`, `stuart_maxwell`, `stuart_maxwell_p_value`, `bhapkar`, `bhapkar_p_value`,
        `differences` (d), `n_discordant`, `table`, `categories`; for `cluster-sign-flip` those of `bowker`,
        and no p-values of the chi-square law. There is no estimate.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        As in `bowker`.

    Notes
    -----
    Categories that no differing pair uses are left out, with a note. Where the differing pairs fall into
    separate sets of categories, S has one degree of freedom less for each further set; the statistic is
    the sum over the sets, and a note says so. n counts all pairs, also those of categories that are left out.
    Where no pair differs, p is 1 and the statistic is undefined; where all pairs differ in one direction,
    Bhapkar's covariance is singular, and its test is undefined.

    References
    ----------
    Stuart, A. (1955), A test for homogeneity of the marginal distributions in a two-way classification,
    Biometrika 42(3-4):412-416, doi:10.1093/biomet/42.3-4.412.

    Maxwell, A. E. (1970), Comparing the classification of subjects by two independent judges, British Journal
    of Psychiatry 116(535):651-655, doi:10.1192/bjp.116.535.651.

    Bhapkar, V. P. (1966), A note on the equivalence of two test criteria for hypotheses in categorical data,
    Journal of the American Statistical Association 61(313):228-235, doi:10.1080/01621459.1966.10502021.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.stuart_maxwell([[20, 10, 5], [3, 30, 15], [0, 5, 40]])
    >>> round(result.statistic, 4), result.details["df"], round(result.p_value, 5)
    (13.7647, 2, 0.00103)
    >>> round(result.details["bhapkar"], 4)
    15.4233
    """
    chosen = chosen_method(method, Margins)
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    table = read_square(x, y, categories=categories, data=data, clusters=clusters, missing=missing)
    counts = table.counts.astype(np.float64)
    d = counts.sum(axis=1) - counts.sum(axis=0)
    sets = _linked(counts)
    df = sum(len(members) - 1 for members in sets)
    notes: list[Note] = []
    unused = [table.rows[place] for members in sets if len(members) == 1 for place in members]
    if unused and df:
        message = f"Categories that no differing pair uses are left out: {', '.join(unused)}."
        notes.append(Note("unused_categories", message))
    apart = sum(len(members) > 1 for members in sets)
    if apart > 1:
        message = (
            f"The differing pairs fall into {apart} separate sets of categories: {df} degrees of freedom, "
            "the rank of the covariance."
        )
        notes.append(Note("singular", message))
    inverse = _inverse(counts, sets)
    statistic = float(d @ inverse @ d) if df else None
    bhapkar = None
    if statistic is not None and (left := 1 - statistic / table.n) > ALL_ONE_WAY:
        bhapkar = statistic / left
    details = {
        "stuart_maxwell": statistic,
        "stuart_maxwell_p_value": None if statistic is None else chi_square_tail(statistic, df),
        "bhapkar": bhapkar,
        "bhapkar_p_value": None if bhapkar is None else chi_square_tail(bhapkar, df),
        "differences": [int(value) for value in d],
    }
    if chosen == "cluster-sign-flip" or (chosen is None and table.clustered):

        def evaluate(totals: Array) -> Array:
            tables = totals.reshape(*totals.shape[:-1], *counts.shape)
            margins = tables.sum(axis=-1) - tables.sum(axis=-2)
            found: Array = ((margins @ inverse) * margins).sum(axis=-1)
            return found

        for key in ("stuart_maxwell_p_value", "bhapkar_p_value"):
            del details[key]
        flips = side_flips(table, evaluate, resamples, seed)
        return _test(
            table, "Stuart-Maxwell test of equal margins", statistic, df, details, notes, flips=flips
        )
    if chosen != "bhapkar":
        return _test(table, "Stuart-Maxwell test of equal margins", statistic, df, details, notes)
    if statistic is not None and bhapkar is None:
        message = (
            f"The margins differ by as much as {table.n:,} pairs allow, so that the estimated covariance is "
            "singular and Bhapkar's statistic infinite; method='stuart-maxwell' is defined."
        )
        notes.append(Note("undefined", message, "caution"))
    return _test(table, "Bhapkar test of equal margins", bhapkar, df, details, notes)


def _linked(counts: Array) -> list[Codes]:
    """Sets of categories that differing pairs link."""
    from scipy.sparse.csgraph import connected_components

    number, of = connected_components(counts + counts.T - 2 * np.diag(np.diag(counts)), directed=False)
    return [np.flatnonzero(of == place) for place in range(number)]


def _inverse(counts: Array, sets: list[Codes]) -> Array:
    """A generalised inverse of S: in each set S has full rank but for one category, which is left out."""
    inverse = np.zeros(counts.shape)
    for members in sets:
        if len(members) > 1:
            part = (counts + counts.T)[np.ix_(members, members)]
            np.fill_diagonal(part, 0.0)
            covariance = (np.diag(part.sum(axis=1)) - part)[:-1, :-1]
            inverse[np.ix_(members[:-1], members[:-1])] = np.linalg.inv(covariance)
    return inverse


def _test(
    table: Crosstab,
    name: str,
    statistic: float | None,
    df: int,
    details: dict[str, Any],
    notes: list[Note] | None = None,
    *,
    flips: SideFlips | None = None,
) -> Test:
    """The result; without a differing pair p is 1."""
    n_discordant = table.n - int(np.trace(table.counts))
    found = [*table.notes, *(notes or [])]
    p_value = None if statistic is None else chi_square_tail(statistic, df)
    if flips is not None:
        p_value, name = flips.p_value, f"{name}, sign flips by cluster, {flips.how}"
        found += flips.notes if n_discordant else ()
    if not n_discordant:
        message = "No pair differs, so that the statistic is 0/0; p is 1, as no other table is possible."
        found.append(Note("undefined", message, "caution"))
        p_value = 1.0
    return Test(
        estimand=None,
        statistic=statistic,
        p_value=p_value,
        method=name,
        n=table.n,
        details={
            "df": df,
            "n_discordant": n_discordant,
            **details,
            "table": table.counts.tolist(),
            "categories": list(table.rows),
            "n_missing": table.n_missing,
            **({} if flips is None else flips.details),
        },
        notes=(*found, *(table.independence(CLUSTERED) if flips is None else ())),
    )
