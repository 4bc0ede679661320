"""Adjusted and combined p-values against the reference values of R, whatever the file holds."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import triagestats as ts

FILE = (
    Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
    / "oracles/multiple_testing.json"
)
FIXTURES = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
ABSENT = (
    "reference data 'oracles/multiple_testing.json' are not there; set TRIAGESTATS_SHARED to their folder"
)

Fixture = dict[str, Any]
Reader = Callable[[Fixture], list[Any]]
"""Reads one expected quantity, in every way that there is."""


def adjusted(method: str) -> Reader:
    """Adjusted p-values, from a list and from an array with NaN."""

    def read(fixture: Fixture) -> list[Any]:
        given = fixture["input"]["pvalues"]
        results = [ts.adjust(given, method=method), ts.adjust(np.array(given, dtype=float), method=method)]
        assert all(result.n_missing == given.count(None) for result in results)
        return [result.p_adjusted for result in results]

    return read


def combined(method: str, field: str = "p_value", *, weighted: bool = False) -> Reader:
    def read(fixture: Fixture) -> list[Any]:
        weights = fixture["input"]["weights"] if weighted else None
        result = ts.combine_pvalues(fixture["input"]["pvalues"], method=method, weights=weights)
        return [getattr(result, field) if hasattr(result, field) else result.details[field]]

    return read


def signed(field: str) -> Reader:
    """z-values as two-sided p-values with the sign of the effect."""

    def read(fixture: Fixture) -> list[Any]:
        z = np.array(fixture["input"]["z"], dtype=float)
        result = ts.combine_pvalues(2 * stats.norm.sf(np.abs(z)), method="stouffer", signs=z)
        return [getattr(result, field)]

    return read


def enumerated(differences: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """One-sample t of each column, as it is and under all sign flips."""
    rows = np.array(differences, dtype=float)
    flips = np.array(list(itertools.product([1, -1], repeat=len(rows))))
    flipped = flips[:, :, None] * rows
    t = flipped.mean(axis=1) / (flipped.std(axis=1, ddof=1) / len(rows) ** 0.5)
    return t[0], t


def max_t(field: str, method: str = "max-t") -> Reader:
    """From the differences, and from statistics with their replicates."""

    def read(fixture: Fixture) -> list[Any]:
        differences = fixture["input"]["differences"]
        statistics, replicates = enumerated(differences)
        results = [
            ts.adjust(differences=differences, method=method),
            ts.adjust(statistics=statistics, replicates=replicates, exact=True, method=method),
        ]
        if field == "statistics":
            return [np.abs(result.details["statistics"]).tolist() for result in results]
        return [getattr(result, field) for result in results]

    return read


ADJUSTED = {
    method.replace("-", "_"): adjusted(method)
    for method in ("holm", "bonferroni", "hochberg", "hommel", "bh", "by", "sidak", "holm-sidak")
}
COMBINED: dict[str, Reader] = {
    "fisher_stat": combined("fisher", "statistic"),
    "fisher_p": combined("fisher"),
    "stouffer_z": combined("stouffer", "statistic"),
    "stouffer_p": combined("stouffer"),
    "stouffer_weighted_z": combined("stouffer", "statistic", weighted=True),
    "stouffer_weighted_p": combined("stouffer", weighted=True),
    "tippett_p": combined("tippett"),
    "pearson_p": combined("pearson"),
    "simes_p": combined("simes"),
    "cauchy_p": combined("cauchy"),
    "harmonic_mean_raw": combined("fisher", "harmonic_mean_raw"),
}
SIGNED = {"combined_z": signed("statistic"), "p_two": signed("p_value")}
MAX_T = {
    "t_abs": max_t("statistics"),
    "raw_p": max_t("p_values"),
    "single_step_p": max_t("p_adjusted", "max-t-single-step"),
    "step_down_p": max_t("p_adjusted"),
}


def readers_for(given: dict[str, Any]) -> dict[str, Reader]:
    if "differences" in given:
        return MAX_T
    if "z" in given:
        return SIGNED
    return COMBINED if "weights" in given else ADJUSTED


def agree(fixture: Fixture, found: Any, expected: Any) -> bool:
    """Whether the numbers are within the fixture's tolerance, element by element."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            agree(fixture, a, b) for a, b in zip(found, expected, strict=True)
        )
    if expected is None or found is None:
        return found is expected
    wanted, tolerance = float(expected), fixture["tolerance"]
    return found == wanted or abs(found - wanted) <= tolerance["atol"] + tolerance["rtol"] * abs(wanted)


@pytest.mark.skipif(not FIXTURES, reason=ABSENT)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: str(fixture["name"]))
def test_multiple_testing(fixture: Fixture) -> None:
    readers = readers_for(fixture["input"])
    assert set(fixture["expected"]) <= set(readers), "no reader for some keys"
    for key, expected in fixture["expected"].items():
        for found in readers[key](fixture):
            assert agree(fixture, found, expected), f"{key}: {found} for {expected}"
