"""Agreement against golden values of R and others, whatever fixtures the folder holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
FILE = SHARED / "oracles" / "agreement.json"
FIXTURES: list[dict[str, Any]] = (
    json.loads(FILE.read_text(encoding="utf-8"))["fixtures"] if FILE.exists() else []
)

WEIGHTS = {"unweighted": None, "linear": "linear", "quadratic": "quadratic"}
METRICS = ("nominal", "ordinal", "interval", "ratio")
FEW = 99  # replicates, where the interval is not what is compared

Got = Callable[[str], Any]


def _by_name(getters: Mapping[str, Callable[[], Any]]) -> Got:
    """The value of each key; an unknown key is a KeyError, which fails the test."""
    return lambda key: getters[key]()


def _cohen_simple(given: Any, options: Any) -> Got:
    test = ts.cohen_kappa(given["rater1"], given["rater2"])
    simple = ("percent_agreement", "pabak", "scott_pi", "gwet_ac1", "kappa_max")
    return _by_name(
        {
            "kappa": lambda: test.estimate,
            "se_null": lambda: test.details["std_error_null"],
            "undefined": lambda: test.undefined is not None,
        }
        | {name: (lambda name=name: test.details[name]) for name in simple}
    )


def _cohen_table(given: Any, options: Any) -> Got:
    tests = {
        name: ts.cohen_kappa(given["table"], weights=weights, conf_level=options["conf_level"])
        for name, weights in WEIGHTS.items()
    }

    def weighted(test: ts.Test) -> dict[str, Any]:
        return {
            "kappa": test.estimate,
            "po": test.details["observed"],
            "pe": test.details["expected"],
            "se": test.details["std_error"],
            "ci95": [test.conf_low, test.conf_high],
            "se_null": test.details["std_error_null"],
            "z_null": test.statistic,
            "p_null": test.p_value,
        }

    plain = ("pabak", "scott_pi", "gwet_ac1", "percent_agreement", "kappa_max")
    assert len(given["table"]) == options["categories"]
    assert ts.pabak(given["table"]).estimate == tests["unweighted"].details["pabak"]
    return _by_name(
        {name: (lambda test=test: weighted(test)) for name, test in tests.items()}
        | {name: (lambda name=name: tests["unweighted"].details[name]) for name in plain}
    )


def _fleiss(given: Any, options: Any) -> Got:
    counts = given["counts_subjects_by_categories"]
    test = ts.fleiss_kappa(counts, counts=True)
    gwet = ts.gwet_ac1(counts, counts=True)
    assert gwet.estimate == pytest.approx(test.details["gwet_ac1"], abs=1e-12)
    inner = ("randolph_free_marginal", "gwet_ac1")
    return _by_name(
        {
            "kappa": lambda: test.estimate,
            "z": lambda: test.statistic,
            "p_bar": lambda: test.details["observed"],
            "pe_bar": lambda: test.details["expected"],
            "se_null": lambda: test.details["std_error_null"],
            "undefined": lambda: test.undefined is not None,
        }
        | {name: (lambda name=name: test.details[name]) for name in inner}
    )


def _alpha(given: Any, options: Any) -> Got:
    units = [list(unit) for unit in zip(*given["raters_by_units"], strict=True)]
    tests = {name: ts.krippendorff_alpha(units, metric=name, n_resamples=FEW) for name in METRICS}
    return _by_name(
        {name: (lambda test=test: test.estimate) for name, test in tests.items()}
        | {
            "n_pairable": lambda: tests["nominal"].details["n_pairable"],
            "undefined": lambda: tests["nominal"].undefined is not None,
        }
    )


def _gwet(given: Any, options: Any) -> Got:
    ratings, weights = given["subjects_by_raters"], WEIGHTS[options["weights"]]
    if weights is None:
        test = ts.gwet_ac1(ratings, categories=options["categories"])
    else:
        test = ts.gwet_ac2(ratings, weights=weights, categories=options["categories"])
    return _by_name(
        {
            "coefficient": lambda: test.estimate,
            "pa": lambda: test.details["observed"],
            "pe": lambda: test.details["expected"],
            "se_irrCAC_5dp": lambda: test.details["std_error"],
        }
    )


def _icc(given: Any, options: Any) -> Got:
    forms = ("ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k")
    tests = {form: ts.icc(given["subjects_by_raters"], form=form) for form in forms}

    def of(test: ts.Test) -> dict[str, Any]:
        return {
            "icc": test.estimate,
            "F": test.statistic,
            "df1": test.details["df1"],
            "df2": test.details["df2"],
            "p": test.p_value,
            "ci95": [test.conf_low, test.conf_high],
        }

    squares = ("MSR", "MSC", "MSE", "MSW")
    return _by_name(
        {form: (lambda test=test: of(test)) for form, test in tests.items()}
        | {"mean_squares": lambda: {name: tests["ICC1"].details[name.lower()] for name in squares}}
    )


def _kendall(given: Any, options: Any) -> Got:
    items = [list(item) for item in zip(*given["raters_by_items"], strict=True)]
    test = ts.kendall_w(items)
    return _by_name(
        {
            "W": lambda: test.estimate,
            "W_no_tie_correction": lambda: test.details["w_no_tie_correction"],
            "chi2": lambda: test.statistic,
            "df": lambda: test.details["df"],
            "pvalue": lambda: test.p_value,
        }
    )


def _dispatch(fixture: dict[str, Any]) -> Got:
    """The function that a fixture is for, by the shape of its input."""
    given, options = fixture["input"], fixture["options"]
    if "table" in given:
        return _cohen_table(given, options)
    if "rater1" in given:
        return _cohen_simple(given, options)
    if "counts_subjects_by_categories" in given:
        return _fleiss(given, options)
    if "raters_by_units" in given:
        return _alpha(given, options)
    if "raters_by_items" in given:
        return _kendall(given, options)
    if "weights" in options:
        return _gwet(given, options)
    return _icc(given, options)


def _compare(got: Any, expected: Any, tolerance: Mapping[str, float], where: str) -> None:
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            _compare(got[key], value, tolerance, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for place, (one, other) in enumerate(zip(got, expected, strict=True)):
            _compare(one, other, tolerance, f"{where}[{place}]")
    elif expected is None or isinstance(expected, bool):
        assert got is expected, f"{where}: expected {expected}, got {got}"
    else:
        assert got is not None, f"{where}: expected {expected}, got an undefined result"
        slack = tolerance["atol"] + tolerance["rtol"] * abs(expected)
        assert abs(got - expected) <= slack, f"{where}: expected {expected}, got {got}"


@pytest.mark.skipif(not FIXTURES, reason=f"{FILE} is not there; set TRIAGESTATS_SHARED to its folder")
@pytest.mark.parametrize("fixture", FIXTURES or [None], ids=lambda f: f["name"] if f else "absent")
def test_agreement(fixture: dict[str, Any]) -> None:
    got = _dispatch(fixture)
    for key, value in fixture["expected"].items():
        _compare(got(key), value, fixture["tolerance"], key)
