"""Paired 0/1 outcomes against the reference values of R and of the formulas, whatever the file holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts
from triagestats.margin_tests import OneSided, tango_tests

FILE = (
    Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
    / "oracles/paired_binary.json"
)
FIXTURES = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
ABSENT = "reference data 'oracles/paired_binary.json' are not there; set TRIAGESTATS_SHARED to their folder"

Fixture = dict[str, Any]
Reading = tuple[Any, "ts.Test | None"]


def forms(given: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The same pairs as counts, as a table, and as vectors."""
    if "b" in given:
        yield given["b"], given["c"]
    if "table" in given:
        yield (given["table"],)
        (both, b), (c, neither) = given["table"]
        yield [1] * (both + b) + [0] * (c + neither), [1] * both + [0] * b + [1] * c + [0] * neither


def of_test(
    field: str, method: str, alternative: str = "two-sided"
) -> Callable[[Fixture], Iterator[Reading]]:
    """A field of McNemar's test, for every form of input."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        for form in forms(fixture["input"]):
            result = ts.mcnemar(
                *form,
                method=method,
                alternative=alternative,
                conf_level=fixture["options"].get("conf_level", 0.95),
            )
            yield getattr(result, field), result

    return read


def of_interval(method: str, field: str = "ends") -> Callable[[Fixture], Iterator[Reading]]:
    """The interval of the difference, as it is or before it is cut."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        level = fixture["options"].get("conf_level", 1 - 2 * fixture["options"].get("alpha", 0.05))
        for form in forms(fixture["input"]):
            if len(form) == 2 and not isinstance(form[0], list):
                continue  # two counts do not say how many pairs there are
            result = ts.paired_difference_ci(*form, method=method, conf_level=level)
            found = {
                "ends": [result.conf_low, result.conf_high],
                "raw": result.details.get("interval_raw"),
                "estimate": result.estimate,
                "statistic": result.statistic,
            }
            yield found[field], result

    return read


def at_margin(field: str) -> Callable[[Fixture], Iterator[Reading]]:
    """A field of Tango's tests at both margins."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        (both, b), (c, neither) = fixture["input"]["table"]
        margin = fixture["options"]["margin"]
        tests: OneSided = tango_tests(b, c, both + b + c + neither, -margin, margin)
        yield getattr(tests, field), None

    return read


def is_equivalent(fixture: Fixture) -> Iterator[Reading]:
    """From the p-value, and from the interval."""
    alpha, margin = fixture["options"]["alpha"], fixture["options"]["margin"]
    for p_value, _ in at_margin("p_value")(fixture):
        yield p_value < alpha, None
    for (low, high), _ in of_interval("tango")(fixture):
        yield -margin < low and high < margin, None


READ: dict[str, Callable[[Fixture], Iterator[Reading]]] = {
    "exact_pvalue": of_test("p_value", "exact"),
    "exact_pvalue_greater": of_test("p_value", "exact", "greater"),
    "exact_pvalue_less": of_test("p_value", "exact", "less"),
    "midp_pvalue": of_test("p_value", "mid-p"),
    "chi2_statistic": of_test("statistic", "chi2"),
    "chi2_pvalue": of_test("p_value", "chi2"),
    "chi2_cc_statistic": of_test("statistic", "chi2-corrected"),
    "chi2_cc_pvalue": of_test("p_value", "chi2-corrected"),
    "odds_ratio": of_test("estimate", "exact"),
    "ci_low": of_test("conf_low", "exact"),
    "ci_high": of_test("conf_high", "exact"),
    "estimate": of_interval("tango", "estimate"),
    "wald_raw": of_interval("wald", "raw"),
    "agresti_min_raw": of_interval("agresti-min", "raw"),
    "bonett_price_raw": of_interval("bonett-price", "raw"),
    "newcombe10": of_interval("newcombe"),
    "tango": of_interval("tango"),
    "ci90": of_interval("tango"),
    "z_at_zero": of_interval("tango", "statistic"),
    "z_lower": at_margin("z_lower"),
    "z_upper": at_margin("z_upper"),
    "p_noninferiority": at_margin("p_lower"),
    "p_nonsuperiority": at_margin("p_upper"),
    "p_tost": at_margin("p_value"),
    "equivalent_at_05": is_equivalent,
}


def agrees(got: Any, expected: Any, tolerance: dict[str, float]) -> bool:
    """The pass rule of the reference data; booleans are equal or not."""
    if isinstance(expected, list):
        return len(got) == len(expected) and all(
            agrees(g, e, tolerance) for g, e in zip(got, expected, strict=True)
        )
    if isinstance(expected, bool):
        return got is expected
    limit = float(expected)  # also of the strings for infinity
    if got == limit:
        return True
    return got is not None and abs(got - limit) <= tolerance["atol"] + tolerance["rtol"] * abs(limit)


@pytest.mark.skipif(not FIXTURES, reason=ABSENT)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture["name"])
def test_paired_binary(fixture: Fixture) -> None:
    assert fixture["expected"].keys() <= READ.keys(), "the file holds a quantity that is not compared"
    for key, expected in fixture["expected"].items():
        readings = list(READ[key](fixture))
        assert readings, f"{key}: no form of the input gives it"
        for got, result in readings:
            if expected is None:
                assert got is None, key
                assert result is not None
                assert result.undefined, key
            else:
                assert agrees(got, expected, fixture["tolerance"]), f"{key}: {got} is not {expected}"
