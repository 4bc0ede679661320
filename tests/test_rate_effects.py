"""Rates beside independent rows, where nothing else is compared."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import triagestats as ts

EXACT = 1e-9
"""Both sides are sums of the same numbers in another order."""


def table(copies: int, clusters: int = 12, **columns: list[str]) -> pl.DataFrame:
    """Every scenario answered `copies` times, always alike: rows of a scenario say one thing."""
    scores = [float(place % 3 > 0) for place in range(clusters)]
    return pl.DataFrame(
        {
            "scenario": [f"s{place:02d}" for place in range(clusters) for _ in range(copies)],
            "repetition": [copy for _ in range(clusters) for copy in range(copies)],
            "score": [score for score in scores for _ in range(copies)],
            **columns,
        }
    )


def effect(fit: ts.Analysis) -> float:
    found = fit.design.filter(pl.col("estimand") == "design_effect")
    assert found.height == 1
    value = found["estimate"][0]
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("copies", [2, 5])
def test_the_design_effect_of_copies_by_hand(copies: int) -> None:
    """Variance of a mean of clusters s2/G with divisor G - 1, over that of rows with divisor n - 1."""
    frame = table(copies)
    fit = ts.analyze(frame, n_resamples=99)
    scores = frame["score"].to_numpy()
    means = scores.reshape(12, copies).mean(axis=1)
    by_cluster = means.var(ddof=1) / 12
    by_row = scores.var(ddof=1) / len(scores)
    assert effect(fit) == pytest.approx(by_cluster / by_row, rel=EXACT)
    note = next(note for note in fit.notes if note.code == "independence")
    assert f"Read as {12 * copies} independent rows" in note.message
    assert f"{math.sqrt(by_cluster / by_row):.2f} times too narrow" in note.message


def test_rows_that_are_clusters_need_no_note() -> None:
    fit = ts.analyze(table(1), n_resamples=99)
    assert effect(fit) == pytest.approx(1, rel=EXACT)
    assert "independence" not in [note.code for note in fit.notes]


def test_rows_that_differ_within_clusters_are_too_wide() -> None:
    """Each scenario is right once and wrong once, but for one."""
    score = np.tile([0.0, 1.0], 12)
    score[1] = 0.0
    frame = table(2).with_columns(pl.Series("score", score))
    note = next(note for note in ts.analyze(frame, n_resamples=99).notes if note.code == "independence")
    assert "times too wide" in note.message


def test_each_model_has_its_own() -> None:
    frame = pl.concat([table(2).with_columns(model=pl.lit(model)) for model in ("a", "b")])
    found = ts.analyze(frame, n_resamples=99).design.filter(pl.col("estimand") == "design_effect")
    assert found.select("model", "n_rows", "n_clusters").rows() == [
        (None, 48, 12),
        ("a", 24, 12),
        ("b", 24, 12),
    ]


def test_scores_that_do_not_vary_have_none() -> None:
    fit = ts.analyze(table(2).with_columns(score=pl.lit(1.0)), n_resamples=99)
    assert fit.design.filter(pl.col("estimand") == "design_effect").is_empty()


def test_contrasts_keep_their_own() -> None:
    frame = pl.concat(
        [
            table(2).with_columns(condition=pl.lit(level), score=pl.col("score").shift(shift, fill_value=0.0))
            for shift, level in enumerate("ab")
        ]
    )
    fit = ts.analyze(frame, n_resamples=99)
    assert fit.design.filter(pl.col("estimand") == "design_effect")["contrast"].to_list() == ["b - a"]
