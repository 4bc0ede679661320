"""adjust: p-values adjusted for the number of tests, within families and over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.adjusted import Adjusted, Adjustment
from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, DesignError
from triagestats.labels import as_text, listed
from triagestats.max_statistics import Null, sign_flip_null
from triagestats.p_values import PValues, read_p_values
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Alternative, Note
from triagestats.step_procedures import BY_ORDER, adjusted
from triagestats.vectors import complete_codes, labels_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Adjusted", "adjust"]


def adjust(
    p_values: object = None,
    *,
    method: Adjustment = "holm",
    family: object = None,
    statistics: object = None,
    replicates: object = None,
    differences: object = None,
    clusters: object = None,
    exact: bool = False,
    alternative: Alternative = "two-sided",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Adjusted:
    """Adjust p-values for multiplicity, within named families and over all.

    With p_(1) <= ... <= p_(m) of a family, cut at 1:

    | method | adjusted p_(i) | controls | holds for |
    |---|---|---|---|
    | `holm` | max over j <= i of (m - j + 1) p_(j) | family-wise error | any dependence |
    | `bonferroni` | m p_(i) | family-wise error | any dependence |
    | `hochberg` | min over j >= i of (m - j + 1) p_(j) | family-wise error | positive dependence |
    | `hommel` | closed test with Simes' | family-wise error | positive dependence |
    | `sidak` | 1 - (1 - p_(i))^m | family-wise error | independence, some positive dependence |
    | `holm-sidak` | max over j <= i of 1 - (1 - p_(j))^(m - j + 1) | family-wise error | as `sidak` |
    | `bh` | min over j >= i of m p_(j) / j | false discovery rate | positive dependence |
    | `by` | the same times 1 + 1/2 + ... + 1/m | false discovery rate | any dependence |
    | `max-t` | step by step, of the largest of the statistics left | family-wise error | their joint null |
    | `max-t-single-step` | of the largest of all statistics | family-wise error | their joint null |

    Parameters
    ----------
    p_values
        A vector, a sequence of `Test` results, or a table with the column `p_value`. Missing ones (None, NaN,
        null) keep their place and are not counted. Not for max-T, which makes its own.
    method
        As above. Holm for confirmation, `bh` for screening, max-T where the statistics can be resampled
        together.
    family
        One label a p-value, or names of columns of the table given as `p_values` (null is a label of its
        own). Default: all are one family.
    statistics, replicates
        For max-T: the observed statistics, shape (E,), and statistics of the same form under the joint null,
        shape (R, E), centred at 0 there and studentised, so that no column rules by its scale alone. A
        missing statistic keeps its place.
    differences
        For max-T in place of these: paired differences, shape (n, E), one column a comparison. The rows of a
        cluster change sign together; the statistic is the one-sample t of the cluster totals.
    clusters
        Label of each row of `differences`, shape (n,). Default: every row is a cluster.
    exact
        Whether `replicates` are all arrangements of the data, the observed one included. Then p = b / R, else
        (b + 1) / (R + 1).
    alternative
        For max-T. `two-sided` takes absolute values.
    n_resamples, seed
        For `differences`: all sign flips are taken where they are at most R, else R are drawn.

    Returns
    -------
    Adjusted
        `p_adjusted` within families, `p_adjusted_overall` over all. For max-T `details` hold `statistics` and
        `alternative`, for `differences` also `n_clusters`, `way`, `n_resamples`, `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a p-value does not lie between 0 and 1, or arguments do not go together.
    DataError
        If `differences` or `replicates` hold missing values, or `exact` replicates lack the observed ones.
    DesignError
        If `differences` have fewer than two clusters.

    Notes
    -----
    m counts the p-values that are there, as in R; statsmodels counts missing ones in Holm's m, or makes
    all missing. Replicates tie with a statistic within a relative 1e-10. Adjusted p-values never
    fall below the raw ones, and never change their order within a family.

    References
    ----------
    Holm, S. (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6(2):65-70.

    Hochberg, Y. (1988), A sharper Bonferroni procedure for multiple tests of significance, Biometrika
    75(4):800-802, doi:10.1093/biomet/75.4.800.

    Hommel, G. (1988), A stagewise rejective multiple test procedure based on a modified Bonferroni test,
    Biometrika 75(2):383-386, doi:10.1093/biomet/75.2.383.

    Sidak, Z. (1967), Rectangular confidence regions for the means of multivariate normal distributions,
    Journal of the American Statistical Association 62(318):626-633, doi:10.1080/01621459.1967.10482935.

    Benjamini, Y. and Hochberg, Y. (1995), Controlling the false discovery rate: a practical and powerful
    approach to multiple testing, Journal of the Royal Statistical Society B 57(1):289-300,
    doi:10.1111/j.2517-6161.1995.tb02031.x.

    Benjamini, Y. and Yekutieli, D. (2001), The control of the false discovery rate in multiple testing under
    dependency, Annals of Statistics 29(4):1165-1188, doi:10.1214/aos/1013699998.

    Westfall, P. H. and Young, S. S. (1993), Resampling-Based Multiple Testing, Wiley.

    Romano, J. P. and Wolf, M. (2005), Exact and approximate stepdown methods for multiple hypothesis testing,
    Journal of the American Statistical Association 100(469):94-108, doi:10.1198/016214504000000539.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.adjust([0.01, 0.04, 0.03], method="bonferroni").p_adjusted
    (0.03, 0.12, 0.09)
    >>> result = ts.adjust([0.01, 0.04, 0.03, 0.2], family=["x", "x", "y", "y"])
    >>> result.p_adjusted, result.p_adjusted_overall
    ((0.02, 0.04, 0.06, 0.2), (0.04, 0.09, 0.09, 0.2))
    >>> differences = [[1.2, 0.3], [0.8, -0.2], [1.9, 0.9], [-0.4, 0.6], [1.1, 1.0], [1.5, -0.7]]
    >>> ts.adjust(differences=differences, method="max-t").p_adjusted
    (0.09375, 0.3125)
    """
    valid_choice("method", method, Adjustment)
    valid_choice("alternative", alternative, Alternative)
    joint = {"statistics": statistics, "replicates": replicates, "differences": differences}
    if method in BY_ORDER:
        wrong = [name for name, value in (joint | {"clusters": clusters}).items() if value is not None]
        if wrong or exact or alternative != "two-sided":
            named = wrong[0] if wrong else "exact" if exact else "alternative"
            raise ArgumentError(f"`{named}` is for method='max-t'; got method={method!r}")
        if p_values is None:
            raise ArgumentTypeError(
                "`p_values` is needed: a vector, `Test` results, or a table with `p_value`"
            )
        given = read_p_values(p_values)
        return _adjusted(given, method, family, lambda places: adjusted(given.values[places], method), {}, ())
    if p_values is not None:
        raise ArgumentError(f"`p_values` cannot be given with method={method!r}, which makes its own")
    details: dict[str, Any] = {}
    if differences is not None:
        if statistics is not None or replicates is not None or exact:
            raise ArgumentError(
                "`differences` make their own statistics and replicates; leave out the others"
            )
        null, details = _flipped(differences, clusters, valid_resamples(n_resamples), valid_seed(seed))
    else:
        if clusters is not None:
            raise ArgumentError("`clusters` goes with `differences`")
        null = _replicated(statistics, replicates, exact=exact)
    return _by_largest(null, method, family, alternative, details)


def _by_largest(
    null: Null, method: Adjustment, family: object, alternative: Alternative, details: dict[str, Any]
) -> Adjusted:
    present = np.flatnonzero(~np.isnan(null.statistics))
    inner = Null(null.statistics[present], null.replicates[:, present], null.exact, null.shown[present])
    values = np.full(len(null.statistics), np.nan)
    values[present] = inner.raw(alternative)
    place = np.full(len(values), -1)
    place[present] = np.arange(len(present))
    notes: list[Note] = []
    if not null.exact:
        notes.append(Note("drawn", f"{len(null.replicates):,} replicates: p = (b + 1) / (R + 1)."))
    return _adjusted(
        PValues(values),
        method,
        family,
        lambda places: inner.adjusted(alternative, place[places], step_down=method == "max-t"),
        {
            "statistics": [None if np.isnan(value) else float(value) for value in null.shown],
            "alternative": alternative,
            **details,
        },
        tuple(notes),
    )


def _adjusted(
    given: PValues,
    method: Adjustment,
    family: object,
    of: Callable[[Codes], Array],
    details: dict[str, Any],
    notes: tuple[Note, ...],
) -> Adjusted:
    """Each family by itself, and all as one."""
    present = np.flatnonzero(given.present)
    overall = np.full(len(given.values), np.nan)
    if len(present):
        overall[present] = of(present)
    within, labels = overall, None
    if family is not None:
        codes, names = _families(family, given)
        labels = tuple(names[code] for code in codes)
        within = np.full(len(given.values), np.nan)
        sizes = []
        for code in range(len(names)):
            members = present[codes[present] == code]
            sizes.append(len(members))
            if len(members):
                within[members] = of(members)
        message = f"{len(names)} families of {', '.join(map(str, sizes))} p-values, each adjusted by itself."
        notes = (*notes, Note("family", message))
    return Adjusted(
        p_values=_plain(given.values),
        p_adjusted=_plain(within),
        p_adjusted_overall=_plain(overall),
        method=method,
        family=labels,
        n=len(present),
        n_missing=given.n_missing,
        details=details,
        notes=(*given.notes, *notes),
        frame=given.frame,
    )


def _families(family: object, given: PValues) -> tuple[Codes, tuple[str, ...]]:
    """Family of each p-value as a code, and the names of the families."""
    names = [family] if isinstance(family, str) else family
    frame = given.frame
    if isinstance(names, Sequence) and frame is not None and all(isinstance(name, str) for name in names):
        unknown = [name for name in names if name not in frame.columns]
        if names and not unknown:
            return _of_columns(frame.select(list(dict.fromkeys(names))))
        if isinstance(family, str) or len(names) != frame.height:
            raise ArgumentError(
                f"`family` names {listed(unknown)}, which the table does not have; its columns are "
                f"{listed(frame.columns)}"
            )
    if isinstance(family, str):
        raise ArgumentTypeError(
            f"`family` is the text {family!r}; a column name needs a table as `p_values`, else give one "
            "label a p-value"
        )
    codes = complete_codes(family, "family", len(given.values))
    return codes, labels_of(family, "family").levels


def _of_columns(frame: pl.DataFrame) -> tuple[Codes, tuple[str, ...]]:
    """Rows that agree in all columns, null with null."""
    words = pl.DataFrame([as_text(column, "family").fill_null("null") for column in frame])
    one = len(frame.columns) == 1
    parts = [pl.col(name) if one else pl.format("{}={}", pl.lit(name), name) for name in frame.columns]
    joined = words.select(pl.concat_str(parts, separator=", ")).to_series()
    names = joined.unique(maintain_order=True).to_list()
    place = {name: code for code, name in enumerate(names)}
    return np.array([place[name] for name in joined], dtype=np.int64), tuple(names)


def _replicated(statistics: object, replicates: object, *, exact: bool) -> Null:
    if statistics is None or replicates is None:
        raise ArgumentTypeError(
            "max-T needs `statistics` and `replicates`, or `differences`: it looks at the tests together"
        )
    own: Array = numbers_of(statistics, "statistics", dimensions=(1,))
    null: Array = numbers_of(replicates, "replicates", dimensions=(2,))
    if null.shape[1] != len(own):
        raise ArgumentError(
            f"`replicates` must have one column a statistic: expected {len(own)}, got {null.shape[1]}"
        )
    gaps = int(np.isnan(null[:, ~np.isnan(own)]).any(axis=1).sum())
    if gaps:
        raise DataError(
            f"{gaps:,} of {len(null):,} rows of `replicates` have a missing value; drop them first"
        )
    return Null(own, null, exact, own)


def _flipped(
    differences: object, clusters: object, n_resamples: int, seed: int
) -> tuple[Null, dict[str, Any]]:
    rows: Array = numbers_of(differences, "differences", dimensions=(2,))
    if gaps := int(np.isnan(rows).any(axis=1).sum()):
        raise DataError(
            f"{gaps:,} of {len(rows):,} rows of `differences` have a missing value; drop them first"
        )
    totals = rows
    if clusters is not None:
        codes = complete_codes(clusters, "clusters", len(rows))
        codes = np.unique(codes, return_inverse=True)[1]
        totals = np.zeros((int(codes.max()) + 1, rows.shape[1]))
        np.add.at(totals, codes, rows)
    if len(totals) < 2:
        raise DesignError("`differences` have one cluster, and sign flips by cluster need two")
    null = sign_flip_null(totals, n_resamples, seed)
    way = "enumeration" if null.exact else "drawn"
    settings = {"n_clusters": len(totals), "way": way, "n_resamples": n_resamples, "seed": seed}
    return null, settings


def _plain(values: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)
