"""The printed summary: what a reader finds in it, whatever the study looks like.

`TRIAGESTATS_REMAKE_SNAPSHOTS=1 python -m pytest tests/test_summary.py` writes the snapshots anew; read
the difference before you keep it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.report.labels import Decimals, level_text, name, p_text, percent
from triagestats.report.text import summary_text

SNAPSHOTS = Path(__file__).parent / "snapshots"
REMAKE = "TRIAGESTATS_REMAKE_SNAPSHOTS"
WIDTH = 110


def table(
    *,
    n_scenarios: int = 20,
    models: Sequence[str | None] = ("m1", "m2"),
    conditions: Sequence[str | None] = ("a", "b"),
    scale: float = 0.0,
    columns: Callable[[int], dict[str, Any]] = lambda _: {},
) -> pl.DataFrame:
    """Return two repetitions of 0/1 scores, or of scores around 50 with a spread."""
    draw = np.random.default_rng(11)
    rows = []
    for s in range(n_scenarios):
        base = draw.uniform(0.2, 0.8)
        for m in models:
            for c in conditions:
                p = base + draw.uniform(-0.2, 0.2)
                for r in range(2):
                    score = float(draw.uniform() < p) if not scale else 50 + scale * (p + draw.normal() / 9)
                    row = {"scenario": f"s{s:02}", "model": m, "condition": c, "repetition": r}
                    rows.append(row | {"score": score} | columns(s))
    frame = pl.DataFrame(rows)
    return frame.drop(column for column in ("model", "condition") if frame[column].null_count())


def printed(data: object, **asked: Any) -> str:
    return repr(ts.analyze(data, n_resamples=999, **asked))


def section(text: str, start: str) -> str:
    """Return the block of lines that starts with the given words."""
    found = [block for block in text.split("\n\n") if block.startswith(start)]
    assert found, f"no section starts with {start!r} in\n{text}"
    return found[0]


def test_demo_is_printed_as_recorded() -> None:
    text = repr(ts.analyze(ts.demo_table(), margin=0.05)) + "\n"
    path = SNAPSHOTS / "demo.txt"
    if os.environ.get(REMAKE):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"set {REMAKE}=1 to record the new text"


def test_the_answer_comes_first_and_stands_beside_independence() -> None:
    fit = ts.analyze(ts.demo_table(), n_resamples=999, margin=0.05)
    blocks = repr(fit).split("\n\n")
    assert blocks[0].startswith("triagestats")
    assert re.fullmatch(
        r"letter - free_text: -0\.056, 95 % interval \[-0\.193, 0\.081\], p = 0\.4\d\d: undecided", blocks[1]
    )
    lines = blocks[2].splitlines()
    assert [line.split("   ")[0].strip() for line in lines[3:]] == ["17 clusters", "1,220 rows", "249 cells"]
    assert lines[3].endswith("14.3")
    for words in ("taken as independent", "estimate", "95 % interval", "design effect"):
        assert words in lines[1]


def test_the_design_says_what_was_matched_and_lost() -> None:
    design = section(repr(ts.analyze(ts.demo_table(), n_resamples=999, margin=0.05)), "Design")
    assert "3,780 rows, 2,520 responses, 2,495 scored, 504 cells, 2 judges" in design
    assert "249 keys matched by cell; without a partner: 3 of letter, 3 of free_text" in design
    assert "margin 0.05" in design
    assert "seed 20260911" in design


def test_missing_answers_stand_with_their_worst_cases() -> None:
    fit = ts.analyze(ts.demo_table(), n_resamples=999)
    missing = section(repr(fit), "Answers that are missing")
    assert "25 unparsed, 15 absent" in missing
    assert fit.missing is not None
    for row in fit.missing.filter(pl.col("estimand").str.starts_with("rate_if")).iter_rows(named=True):
        assert f"{row['estimate']:.3f}" in missing


def test_disagreement_of_interval_and_test_is_a_doubt() -> None:
    rows = [
        {"scenario": s, "condition": c, "score": 0.5 + (c == "b") * gain}
        for s, gain in enumerate([0.10, 0.11, 0.12, 0.10, 0.11])
        for c in ("a", "b")
    ]
    doubts = section(printed(pl.DataFrame(rows)), "Doubts")
    assert (
        "Readings disagree on b - a: 0 is excluded by all intervals, not by the permutation test (p = 0.062)."
        in doubts
    )
    assert "the permutation test's p cannot be below 0.0625" in doubts
    assert "All estimates: 5 clusters: intervals from fewer than 12 may cover less than they say." in doubts


def test_few_clusters_have_no_interval_and_say_why() -> None:
    text = printed(table(n_scenarios=3))
    assert "95 % interval withheld" in text
    assert "too few for an interval" in section(text, "Doubts")


def test_many_conditions_stand_below_each_other_and_repeat_nothing() -> None:
    text = printed(table(conditions=[f"c{i}" for i in range(8)]))
    assert text.count(" - c0: ") == 7
    assert "each condition: 1 variant x 2 repetitions, all planned answers usable" in text
    assert "each contrast: 40 keys matched by cell, none left over" in text
    assert "condition" in section(text, "Rates").splitlines()[1]


def test_thirty_models_are_shown_and_three_hundred_are_not() -> None:
    models = [f"model{i:02}" for i in range(30)]
    text = printed(table(models=models))
    assert all(section(text, start).count("model") >= 30 for start in ("Contrasts by model", "Rates"))
    crowd = [f"model{i:03}" for i in range(100)]
    text = printed(table(models=crowd, n_scenarios=6))
    assert "100 contrasts by model: see `contrasts`." in text
    assert "the others: see `rates`" in text
    assert len(text.splitlines()) < 60


def test_long_names_fold_and_keep_numbers_whole() -> None:
    models = ["a model whose name is long and has a version 2024-11-20 and a suffix:free", "m"]
    conditions = [f"a prompt format whose description, with commas, goes on and on {c}" for c in "xy"]
    fit = ts.analyze(table(models=models, conditions=conditions), n_resamples=999)
    text = repr(fit)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert fit.contrasts is not None
    for row in fit.contrasts.iter_rows(named=True):
        assert f"[{row['conf_low']:.3f}, {row['conf_high']:.3f}]" in text


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_width_loses_anything(width: int) -> None:
    fit = ts.analyze(ts.demo_table(), n_resamples=999)
    text = summary_text(fit, width=width)
    assert "…" not in text
    wide = re.findall(r"\[-?\d\.\d{3}, \d\.\d{3}\]", summary_text(fit, width=WIDTH))
    narrow = re.findall(r"\[-?\d\.\d{3}, +\d\.\d{3}\]", re.sub(r"\n", " ", text))
    assert narrow == wide
    assert "".join(summary_text(fit, width=WIDTH).split()).count("model_c") == text.count("model_c")


def test_several_condition_columns_name_themselves() -> None:
    data = pl.concat([table().with_columns(voice=pl.lit(voice)) for voice in ("low", "high")])
    text = printed(data.with_columns(pl.col("condition").alias("style")), condition=["style", "voice"])
    assert re.search(r"^style: b - a: ", text, re.MULTILINE)
    assert re.search(r"^voice: low - high: ", text, re.MULTILINE)
    assert "style=a, voice=high" in section(text, "Rates")
    assert "voice: low - high" in section(text, "Contrasts by model")


def test_columns_with_the_same_levels_are_not_mixed_up() -> None:
    data = pl.concat([table().with_columns(other=pl.lit(level)) for level in ("a", "b")])
    text = printed(
        data.filter((pl.col("other") == "a") | (pl.col("scenario") < "s10")), condition=["condition", "other"]
    )
    design = section(text, "Design")
    assert "condition: b - a: 60 keys matched by cell, none left over" in design
    assert "other: b - a: 40 keys matched by cell; without a partner: 40 of a" in design
    assert section(text, "What the same data").count("rows") >= 2


def test_strata_are_read_side_by_side() -> None:
    text = printed(table(columns=lambda s: {"stratum": "odd" if s % 2 else "even"}))
    assert "Contrasts by stratum, models pooled: b - a" in text
    assert "Rates by stratum, models pooled" in text
    assert {"even", "odd"} <= set(section(text, "Contrasts by stratum").split())


def test_one_condition_has_rates_alone() -> None:
    text = printed(table(conditions=("a",)))
    assert "Nothing is compared: the table has one condition." in text
    assert "Contrasts" not in text
    assert "scores are better" not in text


def test_without_a_model_column_no_model_is_named() -> None:
    text = printed(table(models=(None,)))
    assert "model" not in text.partition("Design")[0].replace("model       ", "")
    assert "20 scenarios" in text.splitlines()[0]


def test_one_model_is_not_pooled() -> None:
    text = printed(table(models=("only",)))
    assert "1 model x 20 scenarios" in text.splitlines()[0]
    assert "all models" not in text
    assert "Contrasts by model" not in text
    assert "only" in section(text, "Rates")


def test_other_scores_show_the_digits_that_their_errors_allow() -> None:
    text = printed(table(scale=1000), margin=5, higher_is_better=False)
    assert "Mean scores" in text
    assert "lower scores are better" in text
    assert re.search(r"b - a: [+-]?\d+\.\d, 95 % interval \[-?\d+\.\d, -?\d+\.\d\]", text)
    small = printed(table(scale=1000).with_columns(score=pl.col("score") / 1e6))
    assert re.search(r"b - a: [+-]?0\.\d{7}, ", small)


def test_two_crossed_cluster_columns_are_named_with_their_sizes() -> None:
    text = printed(table(models=[f"m{i}" for i in range(8)]), cluster=["scenario", "model"])
    assert "clustered by scenario (20) and model (8)" in text.splitlines()[0]
    assert "two-way clusters" in section(text, "What the same data")


def test_a_model_without_one_side_is_shown_without_numbers() -> None:
    data = table().filter(~((pl.col("model") == "m2") & (pl.col("condition") == "b")))
    text = printed(data)
    assert re.search(r"^m2 +no data +0", section(text, "Contrasts by model"), re.MULTILINE)
    assert "b - a (m2): no key is scored at all of its levels" in section(text, "Doubts")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        (":smile:", ":smile:"),
        ("模型 é", "模型 é"),
        ("[/]", "[/]"),
        ("two\nlines\tand tab", "two lines and tab"),
        ("red \x1b[31m", r"red \x1b[31m"),
        ("bell\x07", r"bell\x07"),
    ],
)
def test_names_are_printed_as_they_are(given: str, shown: str) -> None:
    text = printed(table(models=(given, "m"), conditions=(given, "other"), n_scenarios=6))
    for start in ("Contrasts by model", "Rates"):
        assert shown in section(text, start)
    assert f" - {shown}: " in text or f"{shown} - " in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_frames_are_not_rounded_and_labels_stay_in_print() -> None:
    fit = ts.analyze(table(), n_resamples=999)
    assert fit.contrasts is not None
    assert any(round(low, 6) != low for low in fit.contrasts["conf_low"])
    assert set(fit.rates["model"]) == {None, "m1", "m2"}
    assert "all models" in repr(fit)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (-0.0001, "0.000"),
        (0.0004, "0.000"),
        (1234.5, "+1,234.500"),
        (-0.5, "-0.500"),
        (None, ""),
    ],
)
def test_signed_numbers(value: float | None, text: str) -> None:
    assert Decimals().signed(value) == text


@pytest.mark.parametrize(
    ("errors", "places"),
    [([], 3), ([None, 0.0], 3), ([0.05], 4), ([1.7, None, 2.0], 2), ([300.0], 0), ([1e-14], 9)],
)
def test_decimals_follow_the_error(errors: list[float | None], places: int) -> None:
    assert Decimals.of(errors).places == places


def test_small_texts() -> None:
    assert p_text(0.0004, equals=True) == "p < 0.001"
    assert p_text(0.25, equals=True) == "p = 0.250"
    assert p_text(None) == ""
    assert [level_text(level) for level in (0.95, 0.9, 0.999, 0.55)] == ["95 %", "90 %", "99.9 %", "55 %"]
    assert percent(0.9999) == "> 99.9 %"
    assert percent(0.5) == "50.0 %"
    assert name(None) == ""
