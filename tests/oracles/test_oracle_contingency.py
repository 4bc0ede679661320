"""Tables of counts against the reference values of R, whatever the file holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

FILE = (
    Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
    / "oracles/contingency.json"
)
FIXTURES = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
ABSENT = "reference data 'oracles/contingency.json' are not there; set TRIAGESTATS_SHARED to their folder"
FEW_ROWS = 1_000  # above, a table is not written out as labels

Fixture = dict[str, Any]
Reading = tuple[Any, ts.Test]
Reader = Callable[[Fixture], Iterator[Reading]]


def forms(table: list[list[int]]) -> Iterator[tuple[Any, ...]]:
    """The same observations as a table, and as two labels a row."""
    yield (table,)
    if sum(map(sum, table)) <= FEW_ROWS:
        cells = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
        yield [i for i, _ in cells], [j for _, j in cells]


def of(call: Callable[..., ts.Test], field: str, **options: Any) -> Reader:
    """A field or detail of a test of a table, for every form of input."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        for form in forms(fixture["input"]["table"]):
            result = call(*form, **options)
            yield (getattr(result, field) if hasattr(result, field) else result.details[field]), result

    return read


def interval(level: float) -> Reader:
    """The conditional interval of the odds ratio."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        for form in forms(fixture["input"]["table"]):
            result = ts.fisher_exact(*form, conf_level=level)
            ends = [result.conf_low, result.conf_high]
            yield (None if ends == [None, None] else ends), result

    return read


def trend(field: str, method: str) -> Reader:
    """A field or detail of the trend test."""

    def read(fixture: Fixture) -> Iterator[Reading]:
        given = fixture["input"]
        result = ts.trend_test(given["successes"], given["totals"], scores=given.get("scores"), method=method)
        yield (getattr(result, field) if hasattr(result, field) else result.details.get(field)), result

    return read


def chi_squares(keys: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Reader]:
    return {key: of(ts.chi_square, field, **options) for key, (field, options) in keys.items()}


TABLES: dict[str, Reader] = {
    "pvalue_two": of(ts.fisher_exact, "p_value"),
    "pvalue_greater": of(ts.fisher_exact, "p_value", alternative="greater"),
    "pvalue_less": of(ts.fisher_exact, "p_value", alternative="less"),
    "midp_two_min_likelihood": of(ts.fisher_exact, "mid_p"),
    "conditional_or": of(ts.fisher_exact, "estimate"),
    "conditional_ci90": interval(0.90),
    "conditional_ci95": interval(0.95),
    "conditional_ci99": interval(0.99),
    "sample_or": of(ts.fisher_exact, "sample_odds_ratio"),
    "fisher_freeman_halton_p": of(ts.fisher_exact, "p_value"),
    "bowker": of(ts.bowker, "statistic"),
    "bowker_df": of(ts.bowker, "df"),
    "bowker_p": of(ts.bowker, "p_value"),
    "stuart_maxwell": of(ts.stuart_maxwell, "statistic"),
    "stuart_maxwell_df": of(ts.stuart_maxwell, "df"),
    "stuart_maxwell_p": of(ts.stuart_maxwell, "p_value"),
    "bhapkar": of(ts.stuart_maxwell, "statistic", method="bhapkar"),
    "bhapkar_p": of(ts.stuart_maxwell, "p_value", method="bhapkar"),
} | chi_squares(
    {
        "chi2": ("statistic", {}),
        "chi2_pvalue": ("p_value", {}),
        "df": ("df", {}),
        "chi2_yates": ("statistic", {"correction": True}),
        "chi2_yates_pvalue": ("p_value", {"correction": True}),
        "G": ("statistic", {"method": "g"}),
        "G_pvalue": ("p_value", {"method": "g"}),
        "cramers_v": ("estimate", {}),
        "cramers_v_bias_corrected": ("cramers_v_bias_corrected", {}),
    }
)
TRENDS: dict[str, Reader] = {
    "z": trend("statistic", "cochran-armitage"),
    "chi2": trend("chi2", "cochran-armitage"),
    "pvalue": trend("p_value", "cochran-armitage"),
    "z_mantel": trend("statistic", "mantel"),
    "pvalue_mantel": trend("p_value", "mantel"),
}


def agree(fixture: Fixture, found: Any, expected: Any) -> bool:
    """Whether the numbers are within the fixture's tolerance, element by element."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            agree(fixture, a, b) for a, b in zip(found, expected, strict=True)
        )
    wanted, tolerance = float(expected), fixture["tolerance"]
    return found == wanted or abs(found - wanted) <= tolerance["atol"] + tolerance["rtol"] * abs(wanted)


@pytest.mark.skipif(not FIXTURES, reason=ABSENT)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: str(fixture["name"]))
def test_contingency(fixture: Fixture) -> None:
    readers = TABLES if "table" in fixture["input"] else TRENDS
    assert set(fixture["expected"]) <= set(readers), "no reader for some keys"
    for key, expected in fixture["expected"].items():
        for found, result in readers[key](fixture):
            if expected is None:
                assert found is None, f"{key} is undefined, and here {found}"
                assert result.undefined, f"{key} is undefined without a reason"
            else:
                assert agree(fixture, found, expected), f"{key}: {found} for {expected}"
