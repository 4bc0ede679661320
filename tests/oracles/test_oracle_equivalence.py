"""Equivalence tests against R and closed forms, from the reference data: every key of every fixture."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import triagestats as ts
from triagestats.equivalence_sides import pivots_of

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
FILE = SHARED / "oracles" / "equivalence.json"
FIXTURES: list[dict[str, Any]] = json.loads(FILE.read_text())["fixtures"] if FILE.exists() else []


def t_test(fixture: dict[str, Any]) -> dict[str, Any]:
    """Paired t, or Welch and pooled t where the samples differ in length or the name says so."""
    x, y = fixture["input"]["x"], fixture["input"]["y"]
    options = fixture["options"]
    two = "_ind_" in fixture["name"] or len(x) != len(y)
    pooled = "pooled" in json.dumps(options).lower() or "student" in fixture["name"]
    method: Any = ("pooled" if pooled else "welch") if two else "t"
    found = ts.tost(
        x, y, low=options["low"], high=options["high"], method=method, alpha=options.get("alpha", 0.05)
    )
    details = found.details
    return {
        "mean": found.estimate,
        "estimate": found.estimate,
        "se": details["std_error"],
        "df": details["df"],
        "t_lower": details["statistic_lower"],
        "p_lower": details["p_lower"],
        "t_upper": details["statistic_upper"],
        "p_upper": details["p_upper"],
        "p_tost": found.p_value,
        "ci90": [found.conf_low, found.conf_high],
        "undefined": found.undefined is not None,
    }


def rank_test(fixture: dict[str, Any]) -> dict[str, Any]:
    x, y = fixture["input"]["x"], fixture["input"]["y"]
    bounds = {"low": fixture["options"]["low"], "high": fixture["options"]["high"]}
    exact = ts.tost(x, y, method="signed-rank", law="exact", **bounds)
    normal = ts.tost(x, y, method="signed-rank", law="normal", correction=True, **bounds)
    return {
        "v_lower": exact.details["statistic_lower"],
        "v_upper": exact.details["statistic_upper"],
        "p_lower_exact": exact.details["p_lower"],
        "p_upper_exact": exact.details["p_upper"],
        "p_tost_exact": exact.p_value,
        "p_lower_normal_cc": normal.details["p_lower"],
        "p_upper_normal_cc": normal.details["p_upper"],
        "p_tost_normal_cc": normal.p_value,
    }


def bootstrap(fixture: dict[str, Any]) -> dict[str, Any]:
    """The studentised distances of the supplied draws, and what is read from them."""
    differences = np.array(fixture["input"]["differences"], dtype=float)
    size = len(differences)
    draws = np.array(fixture["input"]["indices_0based"])
    counts = np.stack([np.bincount(draw, minlength=size) for draw in draws])
    means, pivots = pivots_of(counts, differences, np.ones(size), float(differences.mean()))
    low, high = fixture["options"]["low"], fixture["options"]["high"]
    own = ts.tost(differences, low=low, high=high, method="bootstrap", n_resamples=99).details
    beyond = (pivots >= own["statistic_lower"]).sum(), (pivots <= own["statistic_upper"]).sum()
    p = [(1 + number) / (len(pivots) + 1) for number in beyond]
    return {
        "boot_means": means.tolist(),
        "t_star": pivots.tolist(),
        "t_lower": own["statistic_lower"],
        "t_upper": own["statistic_upper"],
        "p_lower_raw": beyond[0] / len(pivots),
        "p_upper_raw": beyond[1] / len(pivots),
        "p_lower_plus1": p[0],
        "p_upper_plus1": p[1],
        "p_tost_plus1": max(p),
        "ci90_percentile_type7": np.quantile(means, [0.05, 0.95]).tolist(),
    }


def reading_of(fixture: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    if "differences" in fixture["input"]:
        return bootstrap
    return rank_test if "v_lower" in fixture["expected"] else t_test


@pytest.mark.skipif(not FIXTURES, reason="reference data is not there; set TRIAGESTATS_SHARED to its folder")
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture["name"])
def test_equivalence(fixture: dict[str, Any]) -> None:
    found = reading_of(fixture)(fixture)
    tolerance = fixture["tolerance"]
    for key, expected in fixture["expected"].items():
        wanted = pytest.approx(expected, rel=tolerance["rtol"], abs=tolerance["atol"])
        assert found[key] == (None if expected is None else wanted), key
