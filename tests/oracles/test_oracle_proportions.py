"""Proportions and their differences against the reference values of R, whatever the file holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts
from triagestats.margin_tests import OneSided, wald_tests

FILE = (
    Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
    / "oracles/proportions.json"
)
FIXTURES = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
ABSENT = "reference data 'oracles/proportions.json' are not there; set TRIAGESTATS_SHARED to their folder"

Fixture = dict[str, Any]
Reader = Callable[[Fixture], Any]


def one(method: str, detail: str | None = None) -> Reader:
    """The interval of one proportion, or a pair of ends from its details."""

    def read(fixture: Fixture) -> Any:
        result = ts.proportion_ci(
            **fixture["input"], method=method, conf_level=fixture["options"]["conf_level"]
        )
        return result.details[detail] if detail else [result.conf_low, result.conf_high]

    return read


def two(method: str, detail: str | None = None) -> Reader:
    """The interval of a difference, or something from its details."""

    def read(fixture: Fixture) -> Any:
        result = ts.difference_ci(
            **fixture["input"], method=method, conf_level=fixture["options"]["conf_level"]
        )
        if detail is None:
            return [result.conf_low, result.conf_high]
        found = result.details[detail]
        assert found is not None or any(note.code == "boundary" for note in result.notes), detail
        return found

    return read


def at_margins(fixture: Fixture) -> OneSided:
    margin = fixture["options"]["margin"]
    return wald_tests(**fixture["input"], low=-margin, high=margin)


def wald_ends(fixture: Fixture) -> list[float] | None:
    """Wald's 1 - 2 alpha interval, where it has an error."""
    level = 1 - 2 * fixture["options"]["alpha"]
    details = ts.difference_ci(**fixture["input"], conf_level=level).details
    return None if details["std_error"] is None else details["wald_raw"]


ONE: dict[str, Reader] = {
    "estimate": lambda fixture: ts.proportion_ci(**fixture["input"]).estimate,
    "wilson": one("wilson"),
    "wilson_cc": one("wilson-corrected"),
    "clopper_pearson": one("clopper-pearson"),
    "jeffreys": one("jeffreys"),
    "jeffreys_unmodified": one("jeffreys", "interval_unmodified"),
    "agresti_coull_raw": one("agresti-coull", "interval_raw"),
    "wald_raw": one("wilson", "wald_raw"),
}
TWO: dict[str, Reader] = {
    "estimate": lambda fixture: ts.difference_ci(**fixture["input"]).estimate,
    "miettinen_nurminen": two("miettinen-nurminen"),
    "mee": two("mee"),
    "newcombe_hybrid": two("newcombe"),
    "agresti_caffo_raw": two("agresti-caffo", "interval_raw"),
    "wald_raw": two("newcombe", "wald_raw"),
    "z_pooled": two("newcombe", "z_pooled"),
    "p_pooled": two("newcombe", "p_pooled"),
    "z_unpooled": two("newcombe", "z_unpooled"),
}
MARGIN: dict[str, Reader] = {
    "z_lower": lambda fixture: at_margins(fixture).z_lower,
    "z_upper": lambda fixture: at_margins(fixture).z_upper,
    "p_lower": lambda fixture: at_margins(fixture).p_lower,
    "p_upper": lambda fixture: at_margins(fixture).p_upper,
    "p_tost": lambda fixture: at_margins(fixture).p_value,
    "ci90": wald_ends,
    "undefined": lambda fixture: at_margins(fixture).p_value is None,
}


def agrees(got: Any, expected: Any, tolerance: dict[str, float]) -> bool:
    """The pass rule of the reference data; booleans are equal or not."""
    if isinstance(expected, list):
        return len(got) == len(expected) and all(
            agrees(g, e, tolerance) for g, e in zip(got, expected, strict=True)
        )
    if isinstance(expected, bool) or expected is None:
        return got is expected
    limit = float(expected)
    return got is not None and abs(got - limit) <= tolerance["atol"] + tolerance["rtol"] * abs(limit)


@pytest.mark.skipif(not FIXTURES, reason=ABSENT)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture["name"])
def test_proportions(fixture: Fixture) -> None:
    read = MARGIN if "margin" in fixture["options"] else TWO if "count1" in fixture["input"] else ONE
    assert fixture["expected"].keys() <= read.keys(), "the file holds a quantity that is not compared"
    for key, expected in fixture["expected"].items():
        got = read[key](fixture)
        tolerance = fixture["tolerance"]
        assert agrees(got, expected, tolerance), f"{key}: {got} is not {expected}"
