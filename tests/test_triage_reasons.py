"""Valid reasons: shares by hand, how reasons are compared, clusters, and input that is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.results import TIDY_SCHEMA

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of a few doubles


def answers(**changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = {
        "case": list(range(10)),
        "escalated": [1, 1, 1, 1, 1, 1, 0, 0, 1, 1],
        "reasons": ["stroke", "age;stroke", "age", "", "bleeding", " STROKE ", "stroke", "", "stroke", "age"],
        "valid": ["stroke;bleeding"] * 10,
        "serious": [1] * 8 + [0, 0],
    }
    return table | changes


def estimates(found: ts.ValidReasons, model: str | None = None) -> dict[str, float]:
    rows = found.tidy().filter(pl.col("model").eq_missing(pl.lit(model)))
    return dict(rows.select("estimand", "estimate").iter_rows())


def test_a_serious_case_passes_when_escalated_for_a_valid_reason() -> None:
    found = ts.valid_reason(answers())
    assert estimates(found) == {
        "escalated": 6 / 8,
        "passed": 4 / 8,
        "valid_if_escalated": pytest.approx(4 / 6),
    }
    assert found.answers["passed"].to_list() == [True, True, False, False, True, True, False, False]
    assert found.answers["valid_reason"].to_list()[6] is True  # a valid reason, and not escalated
    assert [note.code for note in found.notes] == ["not_serious"]


def test_intervals_are_wilsons_where_answers_are_independent() -> None:
    row = ts.valid_reason(answers()).tidy().filter(estimand="passed").row(0, named=True)
    wilson = ts.proportion_ci(4, 8)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((wilson.conf_low, wilson.conf_high))
    assert (row["n_rows"], row["n_clusters"], row["method"]) == (8, 8, "Wilson")


def test_lists_and_whole_texts_as_reasons() -> None:
    by_list = answers(
        reasons=[text.split(";") for text in answers()["reasons"]], valid=[["stroke", "bleeding"]] * 10
    )
    assert estimates(ts.valid_reason(by_list)) == estimates(ts.valid_reason(answers()))
    codes = answers(reasons=["j17, j18"] * 10, valid=["J17, J18"] * 10)
    assert estimates(ts.valid_reason(codes, separator=None))["valid_if_escalated"] == 1.0
    assert estimates(ts.valid_reason(answers(), separator=","))["passed"] == 0.0


def test_an_answer_that_could_not_be_read_did_not_escalate() -> None:
    found = ts.valid_reason(answers(escalated=[None, 1, 1, 1, 1, 1, 0, 0, 1, 1]))
    assert estimates(found)["escalated"] == 5 / 8
    assert found.notes[0].code == "unreadable"


def test_models_are_pooled_as_a_plain_mean_with_clusters_of_cases() -> None:
    random = np.random.default_rng(4)
    n = 30
    done = random.random((n, 2)) < 0.8
    right = random.random((n, 2)) < 0.6
    table = {
        "case": np.repeat(np.arange(n), 2),
        "model": ["a", "b"] * n,
        "escalated": done.reshape(-1),
        "reasons": np.where(right.reshape(-1), "yes", "no"),
        "valid": ["yes"] * 2 * n,
        "serious": [1] * 2 * n,
    }
    found = ts.valid_reason(table)
    passed = done & right
    assert estimates(found, "a")["passed"] == passed[:, 0].mean()
    assert estimates(found)["passed"] == pytest.approx(passed.mean(), abs=EXACT)
    row = found.tidy().filter(pl.col("model").is_null(), estimand="passed").row(0, named=True)
    error = passed.mean(axis=1).std(ddof=1) / np.sqrt(n)
    assert row["std_error"] == pytest.approx(error, abs=EXACT)
    assert (row["n_rows"], row["n_clusters"]) == (60, 30)
    given = found.tidy().filter(pl.col("model").is_null(), estimand="valid_if_escalated").row(0, named=True)
    rates = [passed[:, m].sum() / done[:, m].sum() for m in range(2)]
    assert given["estimate"] == pytest.approx(np.mean(rates), abs=EXACT)
    without = [
        np.mean([np.delete(passed[:, m], g).sum() / np.delete(done[:, m], g).sum() for m in range(2)])
        for g in np.flatnonzero(done.any(axis=1))  # clusters that carry data
    ]
    assert given["std_error"] == pytest.approx(np.sqrt((len(without) - 1) * np.var(without)), abs=EXACT)


def test_repetitions_weigh_as_one_answer() -> None:
    once = answers(case=list(range(10)))
    twice = {name: list(values) * 2 for name, values in once.items()}
    assert estimates(ts.valid_reason(twice)) == estimates(ts.valid_reason(once))
    row = ts.valid_reason(twice).tidy().row(0, named=True)
    assert (row["n_rows"], row["n_clusters"]) == (8, 8)


def test_few_clusters_have_no_interval() -> None:
    table = {name: values[:4] for name, values in answers().items()}
    found = ts.valid_reason(table)
    assert set(found.tidy()["status"]) == {"few_clusters"}
    assert "\n  no interval, passed: 4 clusters: too few" in repr(found)
    assert found._repr_html_().startswith("<pre>Valid reasons, 4 answers to 4 serious cases")


def test_results_convert() -> None:
    found = ts.valid_reason(answers())
    assert found.tidy().schema == TIDY_SCHEMA
    assert found.glance().row(0, named=True)["n_passed"] == 4
    assert json.loads(json.dumps(found.to_dict()))["settings"]["n_cases"] == 8
    assert pickle.loads(pickle.dumps(found)).tidy().equals(found.tidy())
    assert "Valid reasons, 8 answers to 8 serious cases" in repr(found)
    assert found.with_level(0.5).tidy()["conf_low"][0] > found.tidy()["conf_low"][0]


def test_bad_input_says_what_to_do(refusal: Refusal) -> None:
    def refused(**changes: Any) -> str:
        return refusal(lambda: ts.valid_reason(answers(**changes)))

    assert "no case is serious" in refused(serious=[0] * 10)
    assert "`serious` is column 'serious', which is blank in 1 of 10 rows" in refused(
        serious=[None] + [1] * 9
    )
    assert "which is blank for the serious case '0'" in refused(valid=[""] * 10)
    assert "differs between the rows of case '0'" in refused(
        case=[0, 0, *range(2, 10)], valid=["a"] + ["b"] * 9
    )
    assert "`escalated` is column 'escalated', which holds 2" in refused(escalated=[2] * 10)
    assert "`reasons` names 'why'" in refusal(lambda: ts.valid_reason(answers(), reasons="why"))
    assert "`separator` must be text" in refusal(lambda: ts.valid_reason(answers(), separator=""))
