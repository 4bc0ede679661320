"""chi_square and trend_test: large-sample tests of counts in rows, columns and ordered groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice
from triagestats.association import Association, chi_square_tail, few_expected, pearson_of, statistics
from triagestats.columns import column_of, frame_of
from triagestats.counts import whole_counts
from triagestats.crosstab import Crosstab, read_crosstab
from triagestats.errors import ArgumentError
from triagestats.goodness import fit_test
from triagestats.partitions import partition_test
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.vectors import Missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["chi_square", "trend_test"]

Method = Literal["pearson", "g", "cluster-permutation", "auto"]
Trend = Literal["cochran-armitage", "mantel"]


def chi_square(
    x: object,
    y: object = None,
    *,
    expected: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    method: Method | None = None,
    correction: bool = False,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Chi-square test of independence in a table of counts, or of fit to given shares.

    With E_ij = (row total i) (column total j) / n, Pearson's statistic is

        X2 = sum (n_ij - E_ij)^2 / E_ij,    and    G = 2 sum n_ij log(n_ij / E_ij);

    both have about the chi-square law with (r - 1)(c - 1) degrees of freedom under independence.

    Parameters
    ----------
    x, y
        `x` alone: a table of counts, (r, c), or a vector of counts, (k,), whose fit is tested. Both: two
        labels a row, or names of columns of `data`, which are counted.
    expected
        For a vector of counts: shares that sum to 1, or counts that sum to n. Default: equal shares.
    data
        A table of any make; of a ResponseTable the columns of its `frame`.
    clusters
        One label a row, or a column of `data`.
    missing
        `raise`, or `omit` the rows without a label.
    method
        `pearson`; `g`: the likelihood ratio, and the other one is in `details`; `cluster-permutation`: the
        law of Pearson's statistic when clusters are permuted between the groups that one of the labels forms,
        each cluster wholly in one. Default (`auto`, or None): `cluster-permutation` where rows share
        `clusters`, which is refused where both labels vary within clusters; else `pearson`. `pearson` and `g`
        take rows as independent; where they share clusters, a note says so.
    correction
        Whether Pearson's statistic of a 2 x 2 table gets the correction of Yates.
    n_resamples, seed
        For `cluster-permutation`: all arrangements are taken where they are at most R, else R are drawn.

    Returns
    -------
    Test
        `estimate` is Cramer's V, sqrt(X2 / (n (min(r, c) - 1))); a test of fit has none. `details`: `df`,
        `chi2`, `chi2_p_value`, `g`, `g_p_value`, `expected`, `smallest_expected`, `table`; for tables
        also `cramers_v`, `cramers_v_bias_corrected`, `rows`, `columns`, and for 2 x 2 `chi2_yates` and
        `chi2_yates_p_value`; for `cluster-permutation` in place of p-values of the chi-square law `way`,
        `n_clusters`, `smallest_p_value`, `n_resamples`, `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        As `fisher_exact`; and for clusters that cannot be permuted.

    Notes
    -----
    Empty rows and columns are left out, with a note; where less than two are left, the statistic is 0/0 and
    all is undefined. Expected counts below 5 are noted. R corrects 2 x 2 tables by default, as does scipy;
    here nothing is corrected unless asked, as the corrected test is more conservative than Fisher's.

    References
    ----------
    Cochran, W. G. (1954), Some methods for strengthening the common chi-square tests, Biometrics
    10(4):417-451, doi:10.2307/3001616.

    Bergsma, W. (2013), A bias-correction for Cramer's V and Tschuprow's T, Journal of the Korean Statistical
    Society 42(3):323-328, doi:10.1016/j.jkss.2012.10.002.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.chi_square([[289, 136], [260, 165], [281, 144]])
    >>> round(result.statistic, 4), result.details["df"], round(result.p_value, 4)
    (4.6464, 2, 0.098)
    >>> round(ts.chi_square([18, 22, 20], expected=[0.25, 0.5, 0.25]).p_value, 4)
    0.1108
    """
    chosen = chosen_method(method, Method)
    if correction and chosen == "g":
        raise ArgumentError("`correction` is for method='pearson'; the likelihood ratio has none")
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    if y is None and data is None and not isinstance(x, str):
        counts = numbers_of(x, "x", dimensions=(1, 2))
        if counts.ndim == 1:
            if correction or clusters is not None or chosen == "cluster-permutation":
                raise ArgumentError("a vector of counts goes without `correction` and `clusters`")
            return fit_test(whole_counts(counts, "x"), expected, chosen or "pearson")
    if expected is not None:
        raise ArgumentError(
            "`expected` goes with a vector of counts; those of a table follow from its margins"
        )
    table = read_crosstab(x, y, data=data, clusters=clusters, missing=missing)
    full = table.without_empty()
    if correction and max(full.counts.shape) > 2:
        shape = " x ".join(map(str, full.counts.shape))
        raise ArgumentError(f"`correction` needs a 2 x 2 table; `x` is {shape}")
    method = chosen or ("cluster-permutation" if full.clustered else "pearson")
    if correction and method == "cluster-permutation":
        raise ArgumentError("`correction` is for the chi-square law; the law of permuted clusters needs none")
    name = "G test of independence" if method == "g" else "Chi-square test of independence"
    name += ", with the correction of Yates" if correction else ""
    if min(full.counts.shape) < 2:
        return _undefined(full, name)
    found = Association.of(full.counts)
    details = full.described() | statistics(found.chi2, found.g, found.df, found.expected, full.counts)
    details |= {
        "cramers_v": found.cramers_v,
        "cramers_v_bias_corrected": found.cramers_v_bias_corrected,
    }
    if method == "cluster-permutation":
        return _by_cluster(full, found, name, details, resamples, seed)
    if found.yates is not None:
        details |= {
            "chi2_yates": found.yates,
            "chi2_yates_p_value": chi_square_tail(found.yates, found.df),
        }
    key = "g" if method == "g" else "chi2_yates" if correction else "chi2"
    return Test(
        estimand="Cramer's V",
        estimate=found.cramers_v,
        statistic=details[key],
        p_value=details[f"{key}_p_value"],
        method=name,
        n=full.n,
        details=details,
        notes=(
            *full.notes,
            *few_expected(found.expected, "fisher_exact counts the tables instead"),
            *full.independence(),
        ),
    )


def _by_cluster(
    table: Crosstab, found: Association, name: str, details: dict[str, Any], n_resamples: int, seed: int
) -> Test:
    """Clusters permuted between groups; the law of chi-square is that of the arrangements."""
    totals, groups = table.by_cluster()
    tested = partition_test(totals.astype(np.float64), groups, pearson_of, n_resamples=n_resamples, seed=seed)
    for key in ("chi2_p_value", "g_p_value"):
        del details[key]
    return Test(
        estimand="Cramer's V",
        estimate=found.cramers_v,
        statistic=found.chi2,
        p_value=tested.p_value,
        method=f"{name}, {tested.how}",
        n=table.n,
        details=details | tested.details,
        notes=(*table.notes, *tested.notes),
    )


def trend_test(
    successes: object,
    totals: object,
    *,
    scores: object = None,
    data: object = None,
    method: Trend = "cochran-armitage",
    alternative: Alternative = "two-sided",
) -> Test:
    """Test of a trend of shares over ordered groups.

    With s_i successes among n_i at score w_i, p = sum s_i / N and N = sum n_i,

        z = T / sqrt(V),    T = sum w_i (s_i - n_i p),    V = p (1 - p) sum n_i (w_i - mean w)^2,

    the mean weighted by n_i. `mantel` has V N / (N - 1), the variance over permutations.

    Parameters
    ----------
    successes, totals
        Counts by group, shape (k,), or names of columns of `data`.
    scores
        The scores of the groups, shape (k,). Default: 1, 2, ..., k.
    data
        A table of any make with one row a group.
    method
        `cochran-armitage`: variance with N, for the large-sample test. `mantel`: with N - 1, which belongs to
        the permutation test. The z-values differ by sqrt((N - 1) / N).
    alternative
        `greater`: the share rises with the score.

    Returns
    -------
    Test
        `estimate` is the slope of the share on the score, weighted by n_i; `statistic` is z. `details`:
        `z_cochran_armitage`, `p_value_cochran_armitage`, `z_mantel`, `p_value_mantel`; `chi2` (z^2 of the
        chosen one), `std_error` of the slope under the hypothesis, `smallest_expected` (successes or
        failures), `scores`, `shares`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If counts are negative, fractional or missing, successes exceed totals, lengths differ, or all scores
        are the same.

    Notes
    -----
    Groups are independent binomial samples. Empty groups are left out, with a note. Where all observations
    are successes or none is, or one group alone has observations, z is 0/0 and undefined. R's
    `prop.trend.test` is `cochran-armitage`, `coin` is `mantel`.

    References
    ----------
    Cochran, W. G. (1954), Some methods for strengthening the common chi-square tests, Biometrics
    10(4):417-451, doi:10.2307/3001616.

    Armitage, P. (1955), Tests for linear trends in proportions and frequencies, Biometrics 11(3):375-386,
    doi:10.2307/3001775.

    Mantel, N. (1963), Chi-square tests with one degree of freedom: extensions of the Mantel-Haenszel
    procedure, Journal of the American Statistical Association 58(303):690-700,
    doi:10.1080/01621459.1963.10500879.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.trend_test([83, 90, 129, 70], [86, 93, 136, 82])
    >>> round(result.statistic, 4), round(result.details["z_mantel"], 4), round(result.p_value, 5)
    (-2.8679, -2.8643, 0.00413)
    """
    valid_choice("method", method, Trend)
    valid_choice("alternative", alternative, Alternative)
    s, n, w, notes = _groups(successes, totals, scores, data)
    name = "Cochran-Armitage trend test" if method == "cochran-armitage" else "Mantel trend test"
    details: dict[str, Any] = {"scores": w.tolist(), "shares": (s / n).tolist()}
    size, share = float(n.sum()), float(s.sum() / n.sum())
    centred = w - float(w @ (n / size))
    unit = float(np.abs(centred).max()) or 1.0  # squares of scores could overflow
    centred = centred / unit
    spread = float(n @ centred**2)
    if share in (0.0, 1.0) or spread == 0:
        why = (
            "One group alone has observations" if spread == 0 else f"All shares are {share:g}"
        ) + ", so that a trend cannot be seen and z is 0/0."
        return Test(
            estimand="slope",
            estimate=None,
            statistic=None,
            p_value=None,
            alternative=alternative,
            method=name,
            n=int(size),
            details=details,
            notes=(*notes, Note("undefined", why, "caution")),
        )
    total = float(centred @ s)
    variance = {"cochran-armitage": share * (1 - share) * spread}
    variance["mantel"] = variance["cochran-armitage"] * size / (size - 1)
    for each, v in variance.items():
        label = each.replace("-", "_")
        details[f"z_{label}"] = total / v**0.5
        details[f"p_value_{label}"] = _normal(total / v**0.5, alternative)
    z = details[f"z_{method.replace('-', '_')}"]
    smallest = float(np.minimum(n * share, n * (1 - share)).min())
    return Test(
        estimand="slope",
        contrast="share per unit of score",
        estimate=total / spread / unit,
        statistic=z,
        p_value=_normal(z, alternative),
        alternative=alternative,
        method=name,
        n=int(size),
        details=details
        | {"chi2": z**2, "std_error": variance[method] ** 0.5 / spread / unit, "smallest_expected": smallest},
        notes=notes,
    )


def _undefined(table: Crosstab, name: str) -> Test:
    message = (
        f"Only one {table.alone} holds observations, so that independence cannot be tested: chi-square is "
        "0/0."
    )
    return Test(
        estimand="Cramer's V",
        estimate=None,
        statistic=None,
        p_value=None,
        method=name,
        n=table.n,
        details=table.described(),
        notes=(*table.notes, Note("undefined", message, "caution"), *table.independence()),
    )


def _groups(
    successes: object, totals: object, scores: object, data: object
) -> tuple[Array, Array, Array, tuple[Note, ...]]:
    """Successes, totals and scores of the groups that have observations."""
    frame = frame_of(data)
    arguments = {"successes": successes, "totals": totals} | ({} if scores is None else {"scores": scores})
    columns = {
        name: numbers_of(column_of(frame, value, name), name, dimensions=(1,))
        for name, value in arguments.items()
    }
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{name}` {length}" for name, length in lengths.items())
        raise ArgumentError(f"there must be one value a group; the lengths are {said}")
    s, n = (whole_counts(columns[name], name) for name in ("successes", "totals"))
    if (s > n).any():
        first = int(np.flatnonzero(s > n)[0])
        raise ArgumentError(
            f"`successes` must not exceed `totals`; group {first + 1} has {s[first]:,} of {n[first]:,}"
        )
    w = columns.get("scores", np.arange(1.0, len(s) + 1))
    if np.isnan(w).any():
        raise ArgumentError("`scores` holds a missing value; expected one number a group")
    if len(np.unique(w)) < 2:
        raise ArgumentError("`scores` must hold two or more different numbers to order the groups by")
    kept = n > 0
    if not kept.any():
        raise ArgumentError("`totals` holds no observation: all counts are 0")
    notes: tuple[Note, ...] = ()
    if not kept.all():
        notes = (Note("empty", f"{int((~kept).sum())} groups without observations are left out."),)
    return s[kept].astype(np.float64), n[kept].astype(np.float64), w[kept].astype(np.float64), notes


def _normal(z: float, alternative: Alternative) -> float:
    from scipy.stats import norm

    if alternative == "two-sided":
        return float(min(1.0, 2 * norm.sf(abs(z))))
    return float(norm.sf(z if alternative == "greater" else -z))
