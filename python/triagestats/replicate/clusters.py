"""Answers of the library that respect clusters, as lines beside published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from triagestats.bootstraps import bootstrap, cluster_bootstrap
from triagestats.errors import TriagestatsError
from triagestats.estimands import Difference, Estimand
from triagestats.estimates import Estimates
from triagestats.permute_table import permutation_tests
from triagestats.replicate.entry import Clustered
from triagestats.results import Test
from triagestats.table import ResponseTable
from triagestats.triage.concentration import concentration
from triagestats.triage.outcomes import Kind

if TYPE_CHECKING:
    from triagestats.triage.selection import Rows

__all__ = [
    "by_rows",
    "leave_one_out",
    "mean_by_cluster",
    "of_row",
    "of_test",
    "these_only",
    "with_flips",
]


def of_row(
    about: str, row: Mapping[str, Any], cluster: str, *, p_value: float | None = None, note: str = ""
) -> Clustered:
    """The answer of one tidy row."""
    return Clustered(
        about=about,
        estimate=row["estimate"],
        conf_low=row["conf_low"],
        conf_high=row["conf_high"],
        p_value=row["p_value"] if p_value is None else p_value,
        n_clusters=row["n_clusters"],
        cluster=cluster,
        method=row["method"] or "",
        note=note,
    )


def of_test(about: str, test: Test, cluster: str, *, note: str = "") -> Clustered:
    """The answer of one test, which may be an interval alone."""
    return Clustered(
        about=about,
        estimate=test.estimate,
        conf_low=test.conf_low,
        conf_high=test.conf_high,
        p_value=test.p_value,
        n_clusters=test.details.get("n_clusters"),
        cluster=cluster,
        method=test.method,
        note=test.undefined or note,
    )


def by_rows(table: ResponseTable, estimands: Sequence[Estimand]) -> Estimates:
    """Means over rows, and differences over the rows of both sides, with the clusters of the table."""
    return bootstrap(table, list(estimands), match="row", weights="row", interval="jackknife-t")


def with_flips(table: ResponseTable, level: str, reference: str, cluster: str) -> tuple[Clustered, ...]:
    """A difference over matched rows: jackknife interval, and the p-value of sign flips by cluster."""
    asked = [Difference(level, reference)]
    tests = permutation_tests(table, estimands=asked, match="row", weights="row").tidy()
    fit = by_rows(table, asked).tidy()
    (row,) = fit.filter(pl.col("model").is_null()).iter_rows(named=True)
    p_value = tests.filter(pl.col("model").is_null())["p_value"][0]
    return (of_row(f"{level} - {reference}", row, cluster, p_value=p_value),)


def mean_by_cluster(about: str, values: pl.Series, clusters: pl.Series, cluster: str) -> Clustered:
    """The mean over rows with whole clusters resampled."""
    fit = cluster_bootstrap(values, clusters, interval="jackknife-t")
    (row,) = fit.tidy().iter_rows(named=True)
    return of_row(about, row, cluster)


def these_only(
    table: ResponseTable, subset: Rows | None, *, kind: Kind = "correct", reference: str | None = None
) -> tuple[Clustered, ...]:
    """Rates and their differences in few scenarios: of fresh answers to these alone."""
    try:
        found = concentration(table, subset=subset, kind=kind, reference=reference)
    except TriagestatsError as error:
        return (Clustered(about="no interval", note=str(error)),)
    rows = found.tidy().filter(pl.col("estimand") == f"{kind}_rate")
    effective = found.tidy().filter(pl.col("estimand") == "effective_scenarios")
    of_condition = dict(effective.select("condition", "estimate").iter_rows())
    answers = []
    for row in rows.iter_rows(named=True):
        where = row["contrast"] or row["condition"] or "all"
        number = of_condition.get(row["condition"])
        notes = [
            "these scenarios only" if "these scenarios only" in (row["method"] or "") else "",
            "" if number is None or row["contrast"] else f"rests on {number:.2g} effective scenarios",
            "" if row["conf_low"] is not None else f"no interval: {row['reason']}",
        ]
        answers.append(of_row(where, row, "scenario", note="; ".join(filter(None, notes))))
    return tuple(answers)


def leave_one_out(table: ResponseTable, level: str, reference: str) -> str:
    """How far a difference moves without each cluster, in words."""
    found = concentration(
        table, kind="correct", subset={"condition": [level, reference]}, reference=reference
    )
    rows = found.tidy().filter(pl.col("contrast") == f"{level} - {reference}")
    ends = {row["estimand"]: row for row in rows.iter_rows(named=True)}
    low, high = (ends.get(f"leave_one_out_{end}") for end in ("low", "high"))
    if low is None or high is None or low["estimate"] is None:
        return ""
    told = [f"{end['estimate']:+.3f} ({end['term']})" for end in (low, high)]
    return f"without one cluster {told[0]} to {told[1]}"
