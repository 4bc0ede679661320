"""Rank tests against the reference values of R and of enumeration, whatever the file holds."""

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
    / "oracles/rank_tests.json"
)
FIXTURES = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
ABSENT = "reference data 'oracles/rank_tests.json' are not there; set TRIAGESTATS_SHARED to their folder"
ROOT_SEARCH = {"rtol": 0.0, "atol": 1e-4}  # the precision of R's search, says the file

Fixture = dict[str, Any]
Found = tuple[float | bool | list[float | None] | None, ts.Test]
Reader = Callable[[Fixture], Found]

SIDES: dict[str, Any] = {"two": "two-sided", "greater": "greater", "less": "less"}
GIVEN_BY_R = ("walsh_ci95_exact_no_ties", "r_ci95", "r_estimate_asymptotic")  # null: R gives none there


def signed(fixture: Fixture, **options: Any) -> ts.Test:
    return ts.wilcoxon_signed_rank(**fixture["input"], **options)


def signed_rank_readers() -> dict[str, Reader]:
    """What the fixtures ask of the signed-rank test, by the path of its key."""
    read: dict[str, Reader] = {}

    def add(key: str, get: Callable[[ts.Test], Any], **options: Any) -> None:
        def reader(fixture: Fixture) -> Found:
            result = signed(fixture, **options)
            return get(result), result

        read[key] = reader

    def detail(name: str) -> Callable[[ts.Test], Any]:
        return lambda result: result.details[name]

    for zeros in ("wilcox", "pratt", "zsplit"):
        normal = f"{zeros}.normal_scipy_variance" if zeros == "zsplit" else f"{zeros}.normal"
        add(f"{zeros}.t_plus", lambda result: result.statistic, zero_method=zeros)
        add(f"{zeros}.t_minus", detail("t_minus"), zero_method=zeros)
        asked: dict[str, Any] = {"zero_method": zeros, "method": "normal"}
        add(f"{normal}.z", detail("z"), **asked)
        add(f"{normal}.z_cc", detail("z_corrected"), **asked, correction=True)
        for side, alternative in SIDES.items():
            add(
                f"{zeros}.exact.{side}",
                lambda result: result.p_value,
                zero_method=zeros,
                method="exact",
                alternative=alternative,
            )
            for suffix, correction in (("", False), ("_cc", True)):
                name = "p" if side == "two" else f"p_{side}"
                add(
                    f"{normal}.{name}{suffix}",
                    lambda result: result.p_value,
                    **asked,
                    correction=correction,
                    alternative=alternative,
                )
    add(
        "zsplit.normal_conditional_z",
        lambda result: result.details.get("z_conditional", result.details["z"]),
        zero_method="zsplit",
    )
    add("n", lambda result: result.n)
    for key in ("n_zero", "n_nonzero", "matched_rank_biserial"):
        add(key, detail(key))
    add("hodges_lehmann", lambda result: result.estimate)
    add("pvalue", lambda result: result.p_value)
    add("undefined_statistic", lambda result: result.statistic is None and result.undefined is not None)
    return read | {
        "walsh_ci95_exact_no_ties": lambda fixture: ends(fixture, method="exact"),
        "r_ci95": r_interval,
        "r_estimate_asymptotic": r_estimate,
    }


def ends(fixture: Fixture, **options: Any) -> Found:
    result = ts.hodges_lehmann(**fixture["input"], **options)
    return [result.conf_low, result.conf_high], result


def r_interval(fixture: Fixture) -> Found:
    """R takes the exact places without ties and zeros, else drops zeros and searches on the normal law."""
    if fixture["expected"]["walsh_ci95_exact_no_ties"] is not None:
        return ends(fixture, method="exact")
    return ends(fixture, method="normal", zeros="drop", correction=True)


def r_estimate(fixture: Fixture) -> Found:
    result = ts.hodges_lehmann(**fixture["input"], zeros="drop")
    return result.estimate, result


def of(test: Callable[..., ts.Test], argument: str, get: Callable[[ts.Test], Any], **options: Any) -> Reader:
    """Something of the result of a test on one input, or of two vectors where `argument` is empty."""

    def reader(fixture: Fixture) -> Found:
        given = fixture["input"]
        result = test(given[argument], **options) if argument else test(**given, **options)
        return get(result), result

    return reader


def p_value(result: ts.Test) -> float | None:
    return result.p_value


def undefined(result: ts.Test) -> bool:
    return result.statistic is None and result.p_value is None and result.undefined is not None


SIGN: dict[str, Reader] = {
    "n_positive": of(ts.sign_test, "", lambda result: result.details["n_positive"]),
    "n_nonzero": of(ts.sign_test, "", lambda result: result.details["n_nonzero"]),
} | {f"p_{side}": of(ts.sign_test, "", p_value, alternative=SIDES[side]) for side in SIDES}

MANN_WHITNEY: dict[str, Reader] = (
    {
        key: of(ts.mann_whitney, "", lambda result, key=key: result.details[key])  # type: ignore[misc]
        for key in ("u_x", "u_y", "z", "rank_biserial", "prob_superiority")
    }
    | {
        f"exact_{side}": of(ts.mann_whitney, "", p_value, method="exact", alternative=side)
        for side in ("greater", "less")
    }
    | {
        "exact_two_abs": of(ts.mann_whitney, "", p_value, method="exact"),
        "exact_two_doubled": of(ts.mann_whitney, "", p_value, method="exact", two_sided="doubled"),
        "normal_p": of(ts.mann_whitney, "", p_value, method="normal"),
        "normal_p_cc": of(ts.mann_whitney, "", p_value, method="normal", correction=True),
        "hodges_lehmann_shift": of(ts.mann_whitney, "", lambda result: result.estimate),
    }
)


def of_several(test: Callable[..., ts.Test], argument: str, statistic: str) -> dict[str, Reader]:
    details = {
        "df": "df",
        "kendall_w": "kendall_w",
        "iman_davenport_F": "iman_davenport_f",
        "iman_davenport_p": "iman_davenport_p",
    }
    return {
        statistic: of(test, argument, lambda result: result.statistic),
        "pvalue": of(test, argument, p_value),
        "undefined": of(test, argument, undefined),
        "mcnemar_chi2_no_cc": of(test, argument, lambda result: result.statistic),
    } | {
        key: of(test, argument, lambda result, name=name: result.details[name])  # type: ignore[misc]
        for key, name in details.items()
    }


def readers(fixture: Fixture) -> dict[str, Reader]:
    """Which test a fixture is of, by the shape of its input and what it expects."""
    given, expected = fixture["input"], fixture["expected"]
    if "groups" in given:
        return of_several(ts.kruskal, "groups", "H")
    if "blocks_by_treatments" in given:
        return of_several(ts.friedman, "blocks_by_treatments", "Q")
    if "subjects_by_treatments" in given:
        return of_several(ts.cochran_q, "subjects_by_treatments", "Q")
    if "u_x" in expected:
        return MANN_WHITNEY
    return SIGN if "p_two" in expected else signed_rank_readers()


def leaves(expected: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in expected.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def agrees(got: Any, expected: Any, tolerance: dict[str, float]) -> bool:
    """The pass rule of the reference data; booleans are equal or not."""
    if isinstance(expected, list):
        pairs = zip(got, expected, strict=True)
        return all(agrees(one, other, tolerance) for one, other in pairs)
    if isinstance(expected, bool):
        return got is expected
    limit = float(expected)
    return got is not None and abs(got - limit) <= tolerance["atol"] + tolerance["rtol"] * abs(limit)


@pytest.mark.skipif(not FIXTURES, reason=ABSENT)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture["name"])
def test_rank_tests(fixture: Fixture) -> None:
    read = readers(fixture)
    for key, expected in leaves(fixture["expected"]):
        assert key in read, f"the file holds a quantity that is not compared: {key}"
        if expected is None and key in GIVEN_BY_R:
            continue
        got, result = read[key](fixture)
        if expected is None:
            assert got is None, key
            assert any(note.code in ("undefined", "degenerate") for note in result.notes), key
            continue
        tolerance = ROOT_SEARCH if key.startswith("r_") else fixture["tolerance"]
        assert agrees(got, expected, tolerance), f"{key}: {got} is not {expected}"
