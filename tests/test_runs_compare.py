"""compare: the difference of two runs, by hand, beside analyze, and beside other packages."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.errors import DesignError
from triagestats.runs.gate import EXIT_CODES, gate_of
from triagestats.runs.unvarying import unvarying_interval
from triagestats.schema import TIDY_COLUMNS

EXACT = 1e-12  # the same sums in another order
FEW = 199  # replicates where no interval that is read ends at their quantiles


def table(scores: dict[str, list[float | None]], **more: object) -> pl.DataFrame:
    """Scores of items, one an epoch."""
    rows = [
        {"item": item, "epoch": epoch, "score": score, **more}
        for item, values in scores.items()
        for epoch, score in enumerate(values, start=1)
    ]
    return pl.DataFrame(rows, schema_overrides={"score": pl.Float64})


def drawn(
    seed: int, *, shift: float = 0.0, n_items: int = 60, epochs: int = 2, model: str = "m"
) -> pl.DataFrame:
    """0/1 scores of items in passages that share their difficulty."""
    rng, passages = np.random.default_rng(seed), np.random.default_rng(5).normal(size=20)
    rows = [
        {
            "item": f"i{item:02}",
            "passage": f"p{item % 20}",
            "epoch": epoch,
            "model": model,
            "correct": float(rng.random() < 1 / (1 + np.exp(-passages[item % 20] - shift))),
        }
        for item in range(n_items)
        for epoch in range(1, epochs + 1)
    ]
    return pl.DataFrame(rows)


def compared(a: object, b: object, **asked: Any) -> ts.RunComparison:
    return ts.compare(a, b, **({"n_resamples": FEW} | asked))


def test_the_difference_by_hand() -> None:
    """Items weigh the same, whatever their epochs: (1 - .5) + (0 - 1) + .5 + 0 + 0 + 1, over 6."""
    a = table({"u": [1, 0], "v": [1], "w": [0, 0], "x": [1], "y": [0], "z": [0]})
    b = table({"u": [1, 1], "v": [0], "w": [1, 0], "x": [1], "y": [0], "z": [1]})
    found = compared(a, b)
    per_item = np.array([0.5, -1, 0.5, 0, 0, 1])
    by_scipy = stats.ttest_1samp(per_item, 0)
    row = found.difference
    assert row["estimate"] == pytest.approx(1 / 6, abs=EXACT)
    assert row["statistic"] == pytest.approx(by_scipy.statistic, rel=EXACT)
    interval = by_scipy.confidence_interval()
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((interval.low, interval.high), abs=EXACT)
    assert found.rates["estimate"].to_list() == pytest.approx([2.5 / 6, 3.5 / 6], abs=EXACT)
    glanced = found.glance().row(0, named=True)
    assert [glanced[name] for name in ("n_pairs", "n_scenarios", "n_clusters")] == [8, 6, 6]
    assert glanced["rate_b"] - glanced["rate_a"] == pytest.approx(row["estimate"], abs=EXACT)


@pytest.mark.parametrize("match", ["row", "cell", "scenario"])
def test_the_numbers_are_those_of_analyze(match: Any) -> None:
    """A table whose condition is the run gives the same difference, interval, p-value and verdict."""
    a, b = drawn(1, model="old"), drawn(2, shift=0.6, model="new").slice(3)
    both = pl.concat(
        [side.with_columns(pl.lit(label).alias("condition")) for side, label in ((a, "A"), (b, "B"))]
    )
    fit = ts.analyze(
        both, model=False, cluster="passage", match=match, margin=0.1, reference="A", n_resamples=FEW
    )
    found = compared(a, b, cluster="passage", match=match, margin=0.1)
    assert fit.contrasts is not None
    same = [name for name in fit.contrasts.columns if name not in ("n_missing", "term", "p_adjusted")]
    assert found.contrasts.select(same).equals(fit.contrasts.select(same))
    assert fit.sensitivity is not None
    of_run = [name for name in found.sensitivity.columns if name not in ("n_missing", "term")]
    assert found.sensitivity.select(of_run).equals(fit.sensitivity.select(of_run))


def test_both_sides_swapped_negate() -> None:
    a, b = drawn(3), drawn(4, shift=0.4).slice(5)
    one, other = compared(a, b, cluster="passage"), compared(b, a, cluster="passage")
    assert other.difference["estimate"] == pytest.approx(-one.difference["estimate"], abs=EXACT)
    assert other.difference["conf_low"] == pytest.approx(-one.difference["conf_high"], abs=EXACT)
    assert other.difference["p_value"] == one.difference["p_value"]
    first, second = one.glance(), other.glance()
    assert first["n_only_a"][0] == second["n_only_b"][0] == 5
    assert one.missing is not None
    assert other.missing is not None
    bounds = [
        frame.filter(pl.col("estimand").str.starts_with("difference_if"))["estimate"].to_numpy()
        for frame in (one.missing, other.missing)
    ]
    assert bounds[0] == pytest.approx(-bounds[1][::-1], abs=EXACT)


def test_the_order_of_rows_and_threads_change_nothing() -> None:
    a, b = drawn(3), drawn(4, shift=0.4)
    one = compared(a, b, cluster="passage", n_threads=1)
    other = compared(a.reverse(), b.sample(fraction=1, shuffle=True, seed=1), cluster="passage", n_threads=2)
    assert one.to_json() == other.to_json()


def test_rows_pass_a_gate_that_clusters_do_not() -> None:
    """Six of twelve passages changed as a whole: the rows look like 360 answers, and are twelve."""
    size = 30

    def run(better: range) -> pl.DataFrame:
        rows = [
            {
                "item": f"p{p}q{q}",
                "passage": f"p{p}",
                "score": float(q < size // 2 or (p in better and q < 25)),
            }
            for p in range(12)
            for q in range(size)
        ]
        return pl.DataFrame(rows)

    a, b = run(range(3)), run(range(3, 6))
    by_rows, by_passage = compared(a, b, margin=0.1), compared(a, b, margin=0.1, cluster="passage")
    assert by_rows.difference["estimate"] == by_passage.difference["estimate"] == 0
    assert (by_rows.gate, by_rows.exit_code) == ("not worse", 0)
    assert (by_passage.gate, by_passage.exit_code) == ("undecided", 3)
    rows = by_passage.sensitivity.filter(pl.col("method") == "rows as independent, t").row(0, named=True)
    assert rows["conf_low"] > -0.1
    # s^2 of rows: 60 differences of 1 among 360; of passages: 6 of 1/3 among 12
    effect = ((6 / 9 / 11) / 12) / ((60 / 359) / 360)
    assert by_passage.design_effect == pytest.approx(effect, rel=EXACT)


def test_a_run_that_is_equal_gets_the_interval_of_clusters_that_could_differ() -> None:
    a = drawn(1, n_items=200, epochs=1)
    found = compared(a, a, margin=0.02)
    limit = 1 - 0.025 ** (1 / 200)
    row = found.difference
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((-limit, limit), abs=EXACT)
    assert (row["estimate"], row["p_value"], found.verdict, found.gate) == (0, 1, "equivalent", "not worse")
    assert row["method"].startswith("Clopper-Pearson, clusters that differ; permutation")
    assert compared(a, a).gate == "undecided"
    assert compared(a.head(20), a.head(20), margin=0.02).gate == "undecided"


def test_a_run_that_lost_everywhere_is_worse() -> None:
    a = table({f"i{i}": [1] for i in range(12)})
    b = table({f"i{i}": [0] for i in range(12)})
    found = compared(a, b, margin=0.02)
    limit = 1 - 0.025 ** (1 / 12)
    assert found.difference["conf_high"] == pytest.approx(-1 + 2 * limit, abs=EXACT)
    assert (found.difference["conf_low"], found.gate, found.exit_code) == (-1, "worse", 1)
    assert compared(b, a, margin=0.02).gate == "not worse"


def test_scores_without_a_range_have_no_interval_where_clusters_agree() -> None:
    a = table({f"i{i}": [float(i)] for i in range(12)})
    found = compared(a, a, margin=1)
    assert (found.difference["status"], found.gate, found.exit_code) == ("degenerate", "unusable", 2)
    assert found.decision.reason.startswith("there is no interval: all clusters agree")


@pytest.mark.parametrize(("difference", "n_clusters"), [(0.0, 5), (0.0, 200), (-1.0, 12), (0.4, 30)])
def test_no_spread_is_as_likely_as_the_tail_at_the_limit(difference: float, n_clusters: int) -> None:
    """At the share p where the ends lie, no cluster of G differs with the probability of one tail."""
    low, high = unvarying_interval(difference, n_clusters, 0.9)
    assert -1 <= low <= difference <= high <= 1
    share = (high - low) / 2
    assert (1 - share) ** n_clusters == pytest.approx(0.05, rel=1e-9)  # the beta quantile is iterated
    wide = unvarying_interval(difference, n_clusters, 0.9, weight=2.0)
    assert wide[1] - wide[0] == pytest.approx(min(2.0, 2 * (high - low)), rel=EXACT)


@pytest.mark.parametrize(
    ("low", "high", "margin", "higher", "decision"),
    [
        (-0.01, 0.03, 0.02, True, "not worse"),
        (-0.019, -0.001, 0.02, True, "not worse"),  # shown to lose, and by less than the margin
        (-0.02, 0.03, 0.02, True, "undecided"),
        (-0.05, -0.001, 0.02, True, "worse"),
        (-0.05, 0.0, 0.02, True, "undecided"),
        (0.001, 0.05, 0.02, False, "worse"),
        (-0.05, 0.01, 0.02, False, "not worse"),
        (0.001, 0.05, None, True, "not worse"),
        (0.0, 0.05, None, True, "undecided"),
        (-0.05, -0.01, None, True, "worse"),
        (None, None, 0.02, True, "unusable"),
    ],
)
def test_the_gate(low: float, high: float, margin: float | None, higher: bool, decision: str) -> None:
    row = {"conf_low": low, "conf_high": high, "conf_level": 0.95, "reason": "few"}
    found = gate_of(row, margin=margin, higher_is_better=higher)
    assert found.decision == decision
    assert found.exit_code == {"not worse": 0, "worse": 1, "unusable": 2, "undecided": 3}[decision]


def test_the_gate_and_the_verdict_do_not_contradict_each_other() -> None:
    """Worse is worse for both, not worse passes; equivalent reads a narrower interval, which is noted."""
    seen = set()
    for seed in range(12):
        for shift in (-1.2, -0.2, 0.4):
            found = compared(drawn(seed), drawn(seed + 50, shift=shift), margin=0.15)
            seen.add((found.verdict, found.gate))
            noted = any(note.code == "gate" for note in found.notes)
            assert noted == (found.verdict == "equivalent" and found.gate != "not worse")
    assert {gate for verdict, gate in seen if verdict in ("better", "not worse")} == {"not worse"}
    assert {gate for verdict, gate in seen if verdict == "worse"} == {"worse"}
    assert ("undecided", "undecided") in seen


def test_a_lower_score_can_be_the_better_one() -> None:
    a = table({f"i{i}": [float(10 + i % 5)] for i in range(20)})
    b = a.with_columns(pl.col("score") + 1 + (pl.int_range(20) % 2))
    worse = compared(a, b, higher_is_better=False, margin=0.5)
    assert (worse.difference["estimate"] > 0, worse.gate, worse.verdict) == (True, "worse", "worse")
    assert compared(b, a, higher_is_better=False, margin=0.5).gate == "not worse"
    assert "lower scores are better" in repr(worse)


def test_one_sided_missing_is_counted_and_bounded() -> None:
    a = table({"u": [1, 0], "v": [1, 1], "w": [0, 0], "x": [1, 1], "y": [0, None], "z": [1, 1]})
    b = table({"u": [1, None], "v": [0, 1], "w": [1, 0], "x": [1, 1], "y": [0, 1], "q": [1, 1]})
    b = b.with_columns(pl.when(pl.col("score").is_null()).then(pl.lit("error")).alias("status"))
    found = compared(a, b)
    assert found.alignment.rows() == [
        ("scored", "scored", 8),
        ("absent", "scored", 2),
        ("missing", "scored", 1),
        ("scored", "absent", 2),
        ("scored", "error", 1),
    ]
    glanced = found.glance().row(0, named=True)
    counts = {name: glanced[name] for name in glanced if name.startswith("n_") and name != "n_resamples"}
    assert counts | {"n_notes": 0} == {
        "n_scenarios": 5,
        "n_clusters": 5,
        "n_pairs": 8,
        "n_only_a": 2,
        "n_only_b": 2,
        "n_scored_only_a": 1,
        "n_scored_only_b": 1,
        "n_scored_in_neither": 0,
        "n_notes": 0,
    }
    assert found.difference["n_missing"] == 6
    shares = found.missing
    assert shares is not None
    rows = shares.filter(pl.col("estimand") == "share_missing")
    assert rows.select("condition", "status", "estimate").rows() == [
        ("A", "absent", 2 / 14),
        ("A", "missing", 1 / 14),
        ("B", "absent", 2 / 14),
        ("B", "error", 1 / 14),
    ]
    # per item, what is missing against B: u .5 - .5, v .5 - 1, w .5 - 0, x 0, y .5 - .5, z 0 - 1, q 1 - 1
    low = (0 - 0.5 + 0.5 + 0 + 0 - 1 + 0) / 7
    # and for B: u 1 - .5, v - .5, w .5, x 0, y .5 - 0, z 1 - 1, q 1 - 0
    high = (0.5 - 0.5 + 0.5 + 0 + 0.5 + 0 + 1) / 7
    bounds = shares.filter(pl.col("estimand").str.starts_with("difference_if_missing"))
    assert bounds["estimand"].to_list() == ["difference_if_missing_low", "difference_if_missing_high"]
    assert bounds["estimate"].to_list() == pytest.approx([low, high], abs=EXACT)
    assert low <= found.difference["estimate"] <= high
    codes = [note.code for note in found.notes if note.level == "caution"]
    assert codes[:4] == ["one_side", "one_side", "unscored_one_side", "unscored_one_side"]


def test_the_bounds_are_those_of_tables_filled_in() -> None:
    a, b = drawn(8), drawn(9)
    rng = np.random.default_rng(3)
    holed = [
        side.with_columns(
            pl.when(pl.Series(rng.random(side.height) < 0.1))
            .then(None)
            .otherwise(pl.col("correct"))
            .alias("correct")
        )
        for side in (a, b)
    ]
    found = compared(*holed)
    assert found.missing is not None
    bounds = found.missing.filter(pl.col("estimand").str.starts_with("difference_if_missing"))["estimate"]
    for bound, (in_a, in_b) in zip(bounds, ((1, 0), (0, 1)), strict=True):
        filled = compared(
            *(
                side.with_columns(pl.col("correct").fill_null(v))
                for side, v in zip(holed, (in_a, in_b), strict=True)
            )
        )
        assert bound == pytest.approx(filled.difference["estimate"], abs=EXACT)


def test_epochs_that_do_not_meet() -> None:
    """Rows pair the epochs that both have; cells pair the means over all."""
    a = table({f"i{i}": [i % 2, 1, 0] for i in range(8)})
    b = table({f"i{i}": [0, i % 2, 1] for i in range(8)}).with_columns(pl.col("epoch") + 1)
    rows, cells = compared(a, b), compared(a, b, match="cell")
    assert rows.glance()["n_pairs"][0] == 16
    assert rows.difference["estimate"] == pytest.approx(((0 + 0.5) - (1 + 0)) / 2, abs=EXACT)
    assert cells.glance()["n_pairs"][0] == 8
    assert cells.difference["estimate"] == pytest.approx((0 + 0.5 + 1) / 3 - (0.5 + 1 + 0) / 3, abs=EXACT)
    said = [note.message for note in rows.notes if note.code == "one_side"]
    assert said == [
        f"8 answers (item and epoch) are in {name} alone and do not pair, 8 of them in epochs that the other "
        "run lacks of the item (match='cell' pairs the means of all epochs)."
        for name in "AB"
    ]
    apart = b.with_columns(pl.col("epoch") + 10)
    with pytest.raises(DesignError, match=r"`match='cell'` pairs items by the means of epochs"):
        compared(a, apart)


def test_answers_that_fail_within_an_item_are_counted_and_bounded() -> None:
    """Means over epochs hide a run that fails where it would be wrong; the worst case does not."""
    a = table({f"i{i}": [i % 2, 1, 0] for i in range(8)})
    wrong = (pl.col("score") == 0) & (pl.col("epoch") != 3)
    b = a.with_columns(pl.when(~wrong).then("score").alias("score"))
    cells = compared(a, b, match="cell")
    assert cells.alignment.rows() == [("scored", "scored", 8)]
    assert cells.difference["estimate"] == pytest.approx((1 / 2 - 1 / 3) / 2, abs=EXACT)
    said = [note for note in cells.notes if note.code == "unscored_within"]
    assert [(note.level, note.message.partition(":")[0]) for note in said] == [
        ("caution", "4 answers of B have no score within items that others score")
    ]
    assert cells.missing is not None
    assert cells.missing.select("estimand", "n_missing").rows() == [
        ("difference_if_missing_low", 4),
        ("difference_if_missing_high", 4),
    ]
    assert cells.missing["estimate"].to_list() == pytest.approx([0, 4 / 24], abs=EXACT)
    assert "B - A if all of them spoke against B: 0.000; for it: +0.167" in repr(cells)
    assert not [note for note in compared(a, b).notes if note.code == "unscored_within"]


def test_a_run_beside_itself_is_a_doubt(tmp_path: Path) -> None:
    path, other = tmp_path / "run.csv", tmp_path / "other.csv"
    for name in (path, other):
        drawn(1).write_csv(name)
    first = compared(path, str(path)).notes[0]
    assert (first.code, first.level) == ("same_files", "caution")
    assert first.message == "A and B are the same files, so that they cannot differ."
    assert "same_files" not in {note.code for note in compared(path, other).notes}


def test_a_run_without_epochs_pairs_with_means() -> None:
    a = table({f"i{i}": [i % 2, 1, 0] for i in range(8)})
    b = table({f"i{i}": [i % 3 == 0] for i in range(8)}).drop("epoch")
    found = compared(a, b)
    assert (found.settings.match, found.glance()["n_pairs"][0]) == ("cell", 8)
    assert found.difference["estimate"] == pytest.approx(3 / 8 - 0.5, abs=EXACT)
    assert "B numbers no repetitions: those of A are averaged, and the averages pair." in [
        note.message for note in found.notes
    ]


def test_a_level_is_read_again_without_drawing() -> None:
    found = compared(drawn(1), drawn(2), margin=0.2)
    again = found.with_level(0.8)
    fresh = compared(drawn(1), drawn(2), margin=0.2, conf_level=0.8)
    assert again.to_json() == fresh.to_json()
    assert again.difference["conf_low"] > found.difference["conf_low"]


def test_a_comparison_is_pickled() -> None:
    found = compared(drawn(1), drawn(2).slice(4), margin=0.2)
    again = pickle.loads(pickle.dumps(found))
    assert again.with_level(0.9).to_json() == found.with_level(0.9).to_json()


def test_subgroups_are_beside_the_whole() -> None:
    strata = pl.col("item").str.ends_with("1").cast(pl.String).alias("stratum")
    found = compared(drawn(1).with_columns(strata), drawn(2, shift=0.5).with_columns(strata))
    assert found.contrasts["stratum"].to_list() == [None, "false", "true"]
    assert found.rates.height == 6
    for row in found.contrasts.iter_rows(named=True):
        same = found.rates.filter(pl.col("stratum").eq_missing(row["stratum"]))["estimate"]
        assert same[1] - same[0] == pytest.approx(row["estimate"], abs=EXACT)
    alone = compared(drawn(1).with_columns(strata), drawn(2))
    assert alone.contrasts.height == 1
    assert "strata" in [note.code for note in alone.notes]


def test_frames_have_the_columns_of_the_glossary() -> None:
    found = compared(drawn(1), drawn(2).slice(4))
    for frame in (found.tidy(), found.contrasts, found.rates, found.missing, found.sensitivity, found.tests):
        assert frame is not None
        assert tuple(frame.columns) == TIDY_COLUMNS
    assert found.to_pandas().shape == found.tidy().shape
    assert found.glance().height == 1
    assert repr(found) in found._repr_html_().replace("&#x27;", "'").replace("&gt;", ">")


SETTINGS = [
    *(
        "metric",
        "rate_a",
        "rate_b",
        "estimate",
        "std_error",
        "conf_low",
        "conf_high",
        "conf_level",
        "p_value",
    ),
    *("design_effect", "verdict", "margin", "gate", "higher_is_better", "match", "weights", "interval"),
    *("cluster", "n_scenarios", "n_clusters", "n_pairs", "n_only_a", "n_only_b", "n_scored_only_a"),
    *("n_scored_only_b", "n_scored_in_neither", "n_resamples", "seed", "n_notes"),
]


def test_the_keys_of_the_json_are_stable() -> None:
    found = json.loads(compared(drawn(1, model="old"), drawn(2, model="new").slice(4), margin=0.1).to_json())
    assert list(found) == [
        *("schema_version", "settings", "a", "b", "gate", "contrasts", "rates", "missing", "alignment"),
        *("sensitivity", "tests", "left_out", "notes"),
    ]
    assert list(found["settings"]) == SETTINGS
    assert found["a"] == {"name": "A", "source": None, "models": ["old"]}
    assert list(found["gate"]) == ["decision", "exit_code", "margin", "reason"]
    assert found["gate"]["exit_code"] == EXIT_CODES[found["gate"]["decision"]]
    assert found["settings"]["gate"] == found["gate"]["decision"]
    assert {tuple(row) for row in found["alignment"]} == {("a", "b", "n")}
    documented = Path(__file__).parents[1] / "docs" / "compare.md"
    text = documented.read_text(encoding="utf-8")
    assert [key for key in (*found, *SETTINGS, *found["gate"]) if f"`{key}`" not in text] == []


def test_what_is_printed(shared: Callable[[str], Path]) -> None:
    logs = [shared(f"harness/inspect/passage_mcq_mock-{size}.eval") for size in ("7b", "70b")]
    text = repr(compared(*logs, metric="choice", margin=0.1, names=("small", "large")))
    lines = text.splitlines()
    assert lines[0] == "Comparison of two runs: choice; higher scores are better"
    assert lines[1].startswith("  small  baseline: mockllm/acme/mock-7b (")
    assert lines[4] == "large - small: 0.000, 95 % interval [-0.410, 0.410], p = 1.000: undecided"
    assert lines[5].startswith("Gate: undecided (exit code 3, margin 0.1): ")
    assert "  20 pairs by item and epoch, 7 scenarios, 7 clusters (scenario)" in lines
    assert "  1: small has status error, large has status error" in lines


@pytest.mark.slow
def test_a_loss_of_the_margin_passes_as_rarely_as_it_says() -> None:
    """The candidate loses by the margin in truth; it may pass in half of 5 % of the studies."""
    rng = np.random.default_rng(11)
    n, margin, passed = 800, 0.1, 0
    for _ in range(n):
        hard = rng.normal(size=(40, 1))
        a = rng.random((40, 4)) < 0.3 + 0.5 / (1 + np.exp(-hard))
        b = rng.random((40, 4)) < 0.2 + 0.5 / (1 + np.exp(-hard))
        sides = [
            pl.DataFrame(
                {"item": np.repeat(np.arange(40), 4), "epoch": np.tile(np.arange(4), 40), "score": x.ravel()}
            )
            for x in (a, b)
        ]
        passed += ts.compare(*sides, margin=margin, n_resamples=1).gate == "not worse"
    # the binomial band of 2.5 % in 800 studies, at 3 standard errors, and .005 for the interval's own error
    assert passed / n < 0.025 + 0.005 + 3 * (0.025 * 0.975 / n) ** 0.5
    assert passed > 0
