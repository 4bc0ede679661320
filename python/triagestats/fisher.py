"""fisher_exact: exact tests of independence in a table of counts, with the conditional odds ratio."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.association import Association, chi_square_tail
from triagestats.conditional_odds import ConditionalLaw
from triagestats.crosstab import Crosstab, read_crosstab
from triagestats.errors import ArgumentError
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.table_law import drawn_tables, enumerated_tables
from triagestats.tolerances import SMALLEST
from triagestats.vectors import Missing

__all__ = ["fisher_exact"]

TwoSided = Literal["minimum-likelihood", "central", "blaker"]

MOST_TABLES: Final = 2_000_000
"""Tables with given margins that are written out for 2 x 2."""
_WORDS: Final = {
    "minimum-likelihood": "two-sided by minimum likelihood",
    "central": "two-sided by doubling",
    "blaker": "two-sided by Blaker's tails",
}


def fisher_exact(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    alternative: Alternative = "two-sided",
    two_sided: TwoSided = "minimum-likelihood",
    conf_level: float = 0.95,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Fisher's exact test of a 2 x 2 table, or of Freeman and Halton for a larger one.

    Given the margins, the first cell of a 2 x 2 table with odds ratio psi has

        P(X = k) proportional to choose(r1, k) choose(r2, c1 - k) psi^k,

    with r1, r2 the row totals and c1 that of the first column. The p-value takes psi = 1. A larger table has
    the probability (product of r_i! times product of c_j!) / (n! times product of n_ij!), and p is the
    probability of all tables that are no likelier than the observed one.

    Parameters
    ----------
    x, y
        `x` alone: a table of counts, (r, c). Both: two labels a row, or names of columns of `data`, which are
        counted; rows and columns then stand in the order of the labels.
    data
        A table of any make; of a ResponseTable the columns of its `frame`.
    clusters
        One label a row, or a column of `data`. The test takes rows as independent: clusters that rows share
        are refused, with the call that respects them, and those of a table (its scenarios) are noted.
    missing
        `raise`, or `omit` the rows without a label.
    alternative
        `greater`: an odds ratio above 1; `less`: below. For 2 x 2 only.
    two_sided
        `minimum-likelihood`: the tables that are no likelier than the observed one, as R and scipy;
        `central`: twice the smaller tail; `blaker`: the tables whose smaller tail is no larger. For 2 x 2
        only.
    conf_level
        Level of the interval of the odds ratio.
    n_resamples, seed
        Used where a larger table has too many others to count: R tables are drawn with the same margins,
        and p = (b + 1) / (R + 1).

    Returns
    -------
    Test
        For 2 x 2: `estimate` is the conditional maximum likelihood odds ratio, `conf_low` and `conf_high` its
        central exact interval, one-sided for a one-sided alternative, `statistic` the first cell. `details`:
        `sample_odds_ratio` (n11 n22 / (n12 n21)), `mid_p`, `p_value_less`, `p_value_greater`, `chi2`,
        `chi2_p_value`, `chi2_yates`, `chi2_yates_p_value`, `table`.
        For r x c: `statistic` is the probability of the table; `details`: `n_tables`, `chi2`, `df`,
        `chi2_p_value`, `table`. `method` says whether all tables were counted.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used: negative, fractional or missing counts,
        one row or column, labels that do not pair, clusters that rows share.
    DataError
        If a label is missing (unless `omit`).

    Notes
    -----
    Empty rows and columns are left out, with a note. Where less than two rows or columns are left, one table
    alone is possible: p is 1, and odds ratio, mid-p and chi-square are undefined.

    The interval belongs to the central test; the two-sided p-value by minimum likelihood can fall on the
    other side of alpha. R's `fisher.test` finds its interval to about 1 % only (621.9 for the upper end of
    Fisher's tea table); here the log odds are found to 1e-14 (626.24).

    `mid_p` counts the observed table, and those tied with it, half; it is not defined for `blaker`.
    Probabilities tie within a relative 1e-10. A p-value below the smallest normal float, 2.2e-308, is given
    as that, with a note.

    References
    ----------
    Agresti, A. (1992), A survey of exact inference for contingency tables, Statistical Science 7(1):131-153,
    doi:10.1214/ss/1177011454.

    Fay, M. P. (2010), Confidence intervals that match Fisher's exact or Blaker's exact tests, Biostatistics
    11(2):373-374, doi:10.1093/biostatistics/kxp050.

    Freeman, G. H. and Halton, J. H. (1951), Note on an exact treatment of contingency, goodness of fit and
    other problems of significance, Biometrika 38(1-2):141-149.

    Examples
    --------
    >>> import triagestats as ts
    >>> tea = ts.fisher_exact([[3, 1], [1, 3]])
    >>> round(tea.p_value, 4), round(tea.estimate, 3), tea.details["sample_odds_ratio"]
    (0.4857, 6.408, 9.0)
    >>> round(tea.conf_low, 4), round(tea.conf_high, 2)
    (0.2117, 626.24)
    >>> round(ts.fisher_exact(["a", "a", "a", "b", "b", "b"], [0, 0, 0, 1, 1, 1]).p_value, 4)
    0.1
    >>> round(ts.fisher_exact([[3, 0, 2], [1, 4, 0]]).p_value, 4)
    0.0794
    """
    valid_choice("alternative", alternative, Alternative)
    valid_choice("two_sided", two_sided, TwoSided)
    level = valid_level(conf_level)
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    table = read_crosstab(x, y, data=data, clusters=clusters, missing=missing)
    table.refuse_clusters("Fisher's exact test")
    full = table.without_empty()
    if min(full.counts.shape) < 2:
        return _one_table_only(table, alternative)
    if full.counts.shape == (2, 2):
        return _two_by_two(full, alternative, two_sided, level)
    if alternative != "two-sided" or two_sided != "minimum-likelihood":
        named = f"alternative={alternative!r}" if alternative != "two-sided" else f"two_sided={two_sided!r}"
        shape = " x ".join(map(str, full.counts.shape))
        raise ArgumentError(f"{named} needs a 2 x 2 table; `x` is {shape}, whose test has no direction")
    return _larger(full, resamples, seed)


def _two_by_two(table: Crosstab, alternative: Alternative, two_sided: TwoSided, conf_level: float) -> Test:
    size = ConditionalLaw.size(table.counts)
    if size > MOST_TABLES:
        raise ArgumentError(
            f"{size:,} tables have these margins, more than the {MOST_TABLES:,} that are counted; chi_square "
            "is as good for so many observations"
        )
    law = ConditionalLaw.of(table.counts)
    less, greater, half = law.less, law.greater, law.mass / 2
    mid_p: float | None
    if alternative != "two-sided":
        p_value = less if alternative == "less" else greater
        mid_p = p_value - half
    elif two_sided == "minimum-likelihood":
        p_value, mid_p = law.minimum_likelihood()
    elif two_sided == "central":
        p_value, mid_p = min(1.0, 2 * min(less, greater)), min(1.0, 2 * (min(less, greater) - half))
    else:
        p_value, mid_p = law.blaker(), None
    (a, b), (c, d) = table.counts.tolist()
    low, high = law.interval(conf_level, alternative)
    return Test(
        estimand="odds ratio",
        contrast=_contrast(table),
        estimate=law.odds_ratio(),
        statistic=float(a),
        p_value=p_value,
        conf_low=low,
        conf_high=high,
        conf_level=conf_level,
        alternative=alternative,
        method="Fisher's exact test"
        + (f", {_WORDS[two_sided]}" if alternative == "two-sided" else "")
        + ", conditional odds ratio",
        n=table.n,
        details={
            "sample_odds_ratio": a * d / (b * c) if b * c else math.inf,
            "mid_p": mid_p,
            "p_value_less": less,
            "p_value_greater": greater,
            **_chi_squares(table),
            **table.described(),
        },
        notes=(*table.notes, *_floored(p_value), *table.independence()),
    )


def _floored(p_value: float) -> tuple[Note, ...]:
    """A note where the p-value is the smallest number that there is in place of a smaller one."""
    if p_value > 2 * SMALLEST:  # twice, where a tail is doubled
        return ()
    return (Note("floor", f"The p-value is below {SMALLEST:.2g}, the smallest number that can be shown."),)


def _larger(table: Crosstab, n_resamples: int, seed: int) -> Test:
    law = enumerated_tables(table.counts) or drawn_tables(table.counts, n_resamples, seed)
    notes = [*table.notes, *_floored(law.p_value), *table.independence()]
    details: dict[str, Any] = {"n_tables": law.n_tables, **_chi_squares(table), **table.described()}
    if not law.exact:
        message = f"Too many tables have these margins to count them: {law.n_tables:,} were drawn."
        notes.append(Note("drawn", message))
        details |= {"n_resamples": n_resamples, "seed": seed}
    return Test(
        estimand=None,
        statistic=law.probability,
        p_value=law.p_value,
        method="Fisher-Freeman-Halton test, "
        + ("exact by enumeration" if law.exact else f"{law.n_tables:,} drawn tables"),
        n=table.n,
        details=details,
        notes=tuple(notes),
    )


def _one_table_only(table: Crosstab, alternative: Alternative) -> Test:
    """A margin is empty: the data cannot speak about the odds ratio."""
    message = (
        f"Only one {table.alone} holds observations, so that no other table has these margins: p is 1, and "
        "the odds ratio, mid-p and chi-square are undefined."
    )
    two_by_two = max(table.counts.shape) == 2
    names = ("sample_odds_ratio", "mid_p", "chi2", "chi2_p_value", "chi2_yates", "chi2_yates_p_value")
    return Test(
        estimand="odds ratio" if two_by_two else None,
        contrast=None,
        estimate=None,
        statistic=None,
        p_value=1.0,
        alternative=alternative,
        method="Fisher's exact test" if two_by_two else "Fisher-Freeman-Halton test, exact by enumeration",
        n=table.n,
        details=dict.fromkeys(names) | {"p_value_less": 1.0, "p_value_greater": 1.0} | table.described(),
        notes=(*table.notes, Note("undefined", message, "caution"), *table.independence()),
    )


def _contrast(table: Crosstab) -> str:
    """The odds ratio in words: level over reference for labels, first over second row for counts."""
    if table.rows == ("row 1", "row 2"):
        return f"odds of {table.columns[0]}, row 1 / row 2"
    return f"odds of {table.columns[1]}, {table.rows[1]} / {table.rows[0]}"


def _chi_squares(table: Crosstab) -> dict[str, Any]:
    found = Association.of(table.counts)
    details: dict[str, Any] = {"chi2": found.chi2, "chi2_p_value": chi_square_tail(found.chi2, found.df)}
    if found.yates is None:
        return details | {"chi2_df": found.df}
    return details | {
        "chi2_yates": found.yates,
        "chi2_yates_p_value": chi_square_tail(found.yates, found.df),
    }
