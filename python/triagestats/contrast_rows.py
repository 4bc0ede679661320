"""The tests of contrasts as rows of a tidy frame, at a level and with p-values adjusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.contrast_tests import ClusterTest, ContrastTests, PairedTests
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.equivalence_sides import Bounds, Sides, t_sides, tango_sides
from triagestats.intervals import t_p_value
from triagestats.results import Note, Test
from triagestats.score_intervals import tango_interval
from triagestats.step_procedures import adjusted

__all__ = ["FAMILIES", "quantities_of", "rows_of", "with_adjusted"]

ROWS: Final = "rows as independent"
NO_SPREAD: Final = "all clusters agree, so nothing shows how far the estimate could be off"

FAMILIES: Final = Note(
    "families",
    "p_adjusted is Holm's: pooled contrasts are one family, those of single models another, in each stratum; "
    "in `tests` also by kind of test and by judge, in `errors` by measure.",
)


def rows_of(tests: Sequence[ContrastTests], conf_level: float, margin: float | None) -> list[dict[str, Any]]:
    """Rows of the frame `tests` at a level."""
    bounds = None if margin is None or conf_level <= 0.5 else Bounds(-margin, margin, 1 - conf_level)
    rows: list[dict[str, Any]] = []
    for found in tests:
        if found.by_cluster is not None:
            shown = found.identity["judge"] is not None
            rows += [found.identity | row for row in _of_clusters(found.by_cluster, bounds, shown=shown)]
        if found.paired is not None:
            parts = _of_pairs(found.paired, conf_level, bounds, unanimous=found.unanimous)
            rows += [found.identity | row for row in parts]
    return rows


def quantities_of(tests: Sequence[ContrastTests], margin: float | None) -> pl.DataFrame:
    """Counts and one-sided p-values behind the tests, one row each: `quantity` and `value`."""
    names = ("estimand", "term", "model", "contrast", "judge")
    rows = [
        {name: found.identity[name] for name in names} | {"quantity": quantity, "value": value}
        for found in tests
        for quantity, value in (*_quantities(found.paired), *_one_sided(found.by_cluster, margin))
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys((*names, "quantity"), pl.String) | {"value": pl.Float64})


def _one_sided(found: ClusterTest | None, margin: float | None) -> Iterator[tuple[str, float | None]]:
    """Both p-values of the equivalence test by cluster."""
    if found is None or margin is None or found.n_clusters < FEWEST_CLUSTERS:
        return
    sides = t_sides(found.error, Bounds(-margin, margin, 0.05), "")
    yield "equivalence_p_lower", sides.lower.p_value
    yield "equivalence_p_upper", sides.upper.p_value


def _quantities(paired: PairedTests | None) -> Iterator[tuple[str, float]]:
    if paired is None:
        return
    if paired.b is not None and paired.c is not None:
        yield "discordant_level_only", float(paired.b)
        yield "discordant_reference_only", float(paired.c)
    if paired.signed_rank is not None:
        for name in ("n_zero", "n_nonzero", "t_plus", "t_minus"):
            yield f"signed_rank_{name}", float(paired.signed_rank.details[name])


def with_adjusted(frame: pl.DataFrame, *, by_kind: bool) -> pl.DataFrame:
    """`p_adjusted` by Holm's method within each family of `FAMILIES`.

    Parameters
    ----------
    by_kind
        Whether the rows are of several kinds of tests, which the method names before its first comma.
    """
    kind = pl.col("method").str.split(",").list.first() if by_kind else pl.lit("")
    family = ["judge", "stratum", pl.col("model").is_null().alias("pooled"), kind.alias("kind")]
    groups = frame.select(pl.struct(family).rank("dense")).to_series().to_numpy()
    p_values = frame["p_value"].fill_null(np.nan).to_numpy()
    result = np.full(len(p_values), np.nan)
    for group in np.unique(groups):
        members = groups == group
        result[members] = adjusted(p_values[members], "holm")
    return frame.with_columns(pl.Series("p_adjusted", result).fill_nan(None))


def _of_clusters(found: ClusterTest, bounds: Bounds | None, *, shown: bool) -> Iterator[dict[str, Any]]:
    """Rows by cluster; permutation and t test where `shown`: those of the mean stand elsewhere."""
    error = found.error
    same = {"estimate": error.estimate, "n_rows": found.n_rows, "n_clusters": found.n_clusters}
    if shown and found.permuted is not None:
        method = f"permutation of labels by cluster, {found.permuted.how}"
        yield same | {"p_value": found.permuted.p_value, "method": method}
    if found.n_clusters < FEWEST_CLUSTERS:
        return
    if shown and error.std_error > 0:
        arrays = (np.array([value]) for value in (error.estimate, error.std_error, error.df))
        yield same | {
            "std_error": error.std_error,
            "statistic": error.estimate / error.std_error,
            "df": error.df,
            "p_value": float(t_p_value(*arrays)[0]),
            "method": "cluster jackknife t",
        }
    if bounds is not None:
        sides = t_sides(error, bounds, "cluster jackknife t", NO_SPREAD)
        yield same | _equivalence(sides, bounds, "cluster jackknife t")


def _of_pairs(
    found: PairedTests, conf_level: float, bounds: Bounds | None, *, unanimous: bool
) -> Iterator[dict[str, Any]]:
    """Rows of the tests of pairs."""
    if found.mcnemar is not None and found.b is not None and found.c is not None:
        only = ", judges agree" if unanimous else ""
        low, high = tango_interval(found.b, found.c, found.n, conf_level)
        pairs = {"estimate": (found.b - found.c) / found.n, "n_rows": found.n}
        counts = f"{found.b:,} against {found.c:,}"
        yield pairs | {
            "conf_low": low,
            "conf_high": high,
            "conf_level": conf_level,
            "p_value": found.mcnemar.p_value,
            "status": "undefined" if found.mcnemar.undefined else "ok",
            "reason": found.mcnemar.undefined,
            "method": f"McNemar mid-p, {ROWS}{only}, {counts}; Tango interval",
        }
        if (clustered := found.mcnemar_by_cluster) is not None:
            yield pairs | _result(clustered, f"McNemar by cluster (Obuchowski){only}", found.n_clusters)
        if bounds is not None:
            sides = tango_sides(found.b, found.c, found.n, bounds)
            yield pairs | _equivalence(sides, bounds, f"Tango score, {ROWS}{only}")
    if found.signed_rank is not None:
        cells = {"estimate": found.mean_difference, "n_rows": found.n_cells}
        yield cells | _result(found.signed_rank, _of_ranks(found.signed_rank, "independent cells"), None)
        if (clustered := found.signed_rank_by_cluster) is not None:
            yield cells | _result(clustered, _of_ranks(clustered, "cells by cluster"), found.n_clusters)


def _of_ranks(test: Test, of: str) -> str:
    """The method of a signed-rank test, with what it is of in the name of its kind."""
    name, _, how = test.method.partition(", ")
    return f"{name} of {of}, {how}"


def _result(test: Test, method: str, n_clusters: int | None) -> dict[str, Any]:
    df = test.details.get("df")
    return {
        "statistic": test.statistic,
        "df": None if df is None else float(df),
        "p_value": test.p_value,
        "method": method,
        "n_clusters": n_clusters,
        "status": "undefined" if test.undefined else "ok",
        "reason": test.undefined,
    }


def _equivalence(sides: Sides, bounds: Bounds, method: str) -> dict[str, Any]:
    low, high = sides.ends or (None, None)
    p_values = [side.p_value for side in (sides.lower, sides.upper)]
    known = [p for p in p_values if p is not None]
    return {
        "conf_low": low,
        "conf_high": high,
        "conf_level": bounds.conf_level,
        "p_value": max(known) if len(known) == 2 else None,
        "method": f"equivalence within {bounds.high:g} by {method}",
        "status": "ok" if sides.undefined is None else "undefined",
        "reason": sides.undefined,
    }
