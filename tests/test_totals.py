"""Estimates from totals against loops that follow the definitions word for word."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import triagestats as ts
from triagestats.design import ClusterAxis, design_of
from triagestats.matching import Keys, keys_of
from triagestats.totals import TotalsBuilder, sums_by_cluster

CLOSE = 1e-12  # sums of at most a few hundred scores between 0 and 1, in another order
FEW_REPLICATES = 19  # these tests read estimates, not intervals

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Naive:
    """An estimate, and the responses and scenarios behind it."""

    estimate: float
    n_rows: int
    scenarios: frozenset[str]


def responses(rows: Iterable[Row]) -> dict[Key, float]:
    """Mean score over judges, those present, by (scenario, model, conditions, variant, repetition)."""
    judged: dict[Key, list[float]] = {}
    for row in rows:
        if row["score"] is not None:
            key = tuple(
                row.get(name) for name in ("scenario", "model", "conditions", "variant", "repetition")
            )
            judged.setdefault(key, []).append(row["score"])
    return {key: fmean(scores) for key, scores in judged.items()}


def grouped(values: Mapping[Key, float], key: Callable[[Key], Key]) -> dict[Key, list[float]]:
    groups: dict[Key, list[float]] = {}
    for old, value in values.items():
        groups.setdefault(key(old), []).append(value)
    return groups


def keyed(scores: Mapping[Key, float], match: str, conditions: Key) -> dict[Key, tuple[float, int]]:
    """Value of each key at one combination of conditions, and how many responses it rests on."""
    here = {(s, m, v, r): x for (s, m, c, v, r), x in scores.items() if c == conditions}
    if match == "row":
        return {key: (value, 1) for key, value in here.items()}
    cells = {key: (fmean(x), len(x)) for key, x in grouped(here, lambda key: key[:3]).items()}
    if match == "cell":
        return cells
    pairs: dict[Key, tuple[float, int]] = {}
    for pair in {key[:2] for key in cells}:
        mine = [value for key, value in cells.items() if key[:2] == pair]
        pairs[pair] = (fmean(value for value, _ in mine), sum(n for _, n in mine))
    return pairs


def scenario_means(keys: Mapping[Key, float]) -> dict[Key, float]:
    """Repetitions within a cell first, then cells within a scenario and model."""
    cells = {key: fmean(x) for key, x in grouped(keys, lambda key: key[:3]).items()}
    return {key: fmean(x) for key, x in grouped(cells, lambda key: key[:2]).items()}


def contrast(
    rows: Sequence[Row],
    combinations: Sequence[Sequence[Key]],
    function: Callable[[Sequence[float]], float],
    *,
    match: str,
    weights: str,
    by_response: bool = False,
) -> dict[str | None, Naive]:
    """A function of level means by model and pooled (None), by the definitions.

    `combinations` holds, for each combination of the other conditions, the conditions of each level.
    """
    scores = responses(rows)
    models = sorted({row["model"] for row in rows})
    parts: list[tuple[Key, str, list[tuple[float, int]]]] = []
    for which, combination in enumerate(combinations):
        sides = [keyed(scores, match, conditions) for conditions in combination]
        for key in set.intersection(*(set(side) for side in sides)):
            parts.append(((which, *key), key[1], [side[key] for side in sides]))

    def level_means(chosen: list[tuple[Key, str, list[tuple[float, int]]]]) -> list[float]:
        n_levels = len(chosen[0][2])
        if weights == "row":
            by = [
                [(x, n if by_response else 1) for x, n in (p[2][i] for p in chosen)] for i in range(n_levels)
            ]
            return [sum(x * n for x, n in side) / sum(n for _, n in side) for side in by]
        sides = [scenario_means({p[0][1:]: p[2][i][0] for p in chosen}) for i in range(n_levels)]
        return [fmean(side.values()) for side in sides]

    def of(chosen: list[tuple[Key, str, list[tuple[float, int]]]]) -> float:
        if weights == "row":
            return function(level_means(chosen))
        present = sorted({p[0][0] for p in chosen})
        return fmean(function(level_means([p for p in chosen if p[0][0] == which])) for which in present)

    def counted(estimate: float, chosen: list[tuple[Key, str, list[tuple[float, int]]]]) -> Naive:
        n_rows = 0
        for which in {p[0][0] for p in chosen}:
            mine = [p for p in chosen if p[0][0] == which]
            n_rows += min(sum(p[2][i][1] for p in mine) for i in range(len(mine[0][2])))
        return Naive(estimate, n_rows, frozenset(p[0][1] for p in chosen))

    result: dict[str | None, Naive] = {}
    for model in models:
        mine = [p for p in parts if p[1] == model]
        if mine:
            result[model] = counted(of(mine), mine)
    if parts:
        pooled = of(parts) if weights == "row" else fmean(part.estimate for part in result.values())
        result[None] = counted(pooled, parts)
    return result


def random_rows(
    seed: int, factors: Sequence[Sequence[str]], *, variants: int, repetitions: int, judges: int
) -> list[Row]:
    """An incomplete table: rows are absent, scores are null, cells have unequal rows."""
    rng = np.random.default_rng(seed)
    kept = rng.choice([0.5, 0.8, 0.97])
    rows: list[Row] = []
    for s, m, c, v, r, j in itertools.product(
        range(6), range(3), itertools.product(*factors), range(variants), range(repetitions), range(judges)
    ):
        if rng.random() > kept:
            continue
        score = None if rng.random() < 0.08 else float(rng.choice([0, 1, 0.3, 0.7]))
        row: Row = {"scenario": f"s{s}", "model": f"m{m}", "conditions": c, "score": score}
        if variants > 1:
            row["variant"] = f"v{v}"
        if repetitions > 1:
            row["repetition"] = r
        if judges > 1:
            row["judge"] = f"j{j}"
        rows.append(row)
    order = rng.permutation(len(rows))
    return [rows[place] for place in order]


def as_frame(rows: Sequence[Row], names: Sequence[str]) -> pl.DataFrame:
    flat = [
        {k: v for k, v in row.items() if k != "conditions"} | dict(zip(names, row["conditions"], strict=True))
        for row in rows
    ]
    return pl.DataFrame(flat, infer_schema_length=None)


def compare(shown: pl.DataFrame, expected: Mapping[str | None, Naive]) -> None:
    for row in shown.iter_rows(named=True):
        naive = expected.get(row["model"])
        if naive is None:
            assert row["status"] == "no_data"
            assert row["estimate"] is None
            continue
        assert row["estimate"] == pytest.approx(naive.estimate, rel=0, abs=CLOSE)
        assert row["n_rows"] == naive.n_rows
        assert row["n_clusters"] == len(naive.scenarios)


def anchoring(x: Sequence[float]) -> float:
    return x[0] - min(x[1:])


SHAPES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "variants": st.integers(1, 2),
        "repetitions": st.integers(1, 3),
        "judges": st.integers(1, 2),
    }
)
THOROUGH = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@THOROUGH
@given(SHAPES, st.sampled_from(["cell", "row", "scenario"]), st.sampled_from(["scenario", "row"]))
def test_one_condition_column(shape: dict[str, int], match: Any, weights: Any) -> None:
    levels = ["alpha", "beta", "gamma"]
    rows = random_rows(shape.pop("seed"), [levels], **shape)
    custom = [
        ts.Gap("alpha", ["beta", "gamma"]),
        ts.AnchoringGap("alpha", ["beta", "gamma"]),
        ts.Function(
            lambda v: v[..., 0] * 2 - v[..., 1] ** 2, [ts.Mean("gamma"), ts.Difference("alpha", "beta")]
        ),
    ]
    fit = ts.analyze(
        as_frame(rows, ["condition"]),
        estimands=custom,
        match=match,
        weights=weights,
        n_resamples=FEW_REPLICATES,
    )
    functions: dict[str, tuple[list[str], Callable[[Sequence[float]], float]]] = {
        "beta - alpha": (["beta", "alpha"], lambda x: x[0] - x[1]),
        "gamma - alpha": (["gamma", "alpha"], lambda x: x[0] - x[1]),
        custom[0].label: (levels, lambda x: x[0] - (x[1] + x[2]) / 2),
        custom[1].label: (levels, anchoring),
        custom[2].label: (["gamma", "alpha", "beta"], lambda x: 2 * x[0] - (x[1] - x[2]) ** 2),
    }
    assert fit.contrasts is not None
    for label, (used, function) in functions.items():
        expected = contrast(rows, [[(level,) for level in used]], function, match=match, weights=weights)
        compare(fit.contrasts.filter(pl.col("contrast") == label), expected)
    for level in levels:
        expected = contrast(
            rows, [[(level,)]], lambda x: x[0], match="cell", weights=weights, by_response=True
        )
        compare(fit.rates.filter(pl.col("condition") == level), expected)


@THOROUGH
@given(SHAPES, st.sampled_from(["cell", "row", "scenario"]), st.sampled_from(["scenario", "row"]))
def test_two_condition_columns(shape: dict[str, int], match: Any, weights: Any) -> None:
    """Marginal contrasts, where a combination of the conditions is never asked, or of one model only."""
    formats, voices = ["letter", "text", "voice"], ["doctor", "patient"]
    rows = [
        row
        for row in random_rows(shape.pop("seed"), [formats, voices], **shape)
        if row["conditions"] != ("voice", "patient")
        and (row["model"], row["conditions"][1]) != ("m2", "patient")
    ]
    joint = ts.Difference("format=text, voice=doctor", "format=letter, voice=patient")
    custom = [ts.AnchoringGap("letter", ["text", "voice"]), joint]
    fit = ts.analyze(
        as_frame(rows, ["format", "voice"]),
        condition=["format", "voice"],
        estimands=custom,
        match=match,
        weights=weights,
        n_resamples=FEW_REPLICATES,
    )

    def difference(x: Sequence[float]) -> float:
        return x[0] - x[1]

    doctor, patient = "doctor", "patient"
    cases: dict[str, tuple[list[list[Key]], Callable[[Sequence[float]], float]]] = {
        "text - letter": ([[("text", v), ("letter", v)] for v in voices], difference),
        "voice - letter": ([[("voice", doctor), ("letter", doctor)]], difference),
        "patient - doctor": ([[(f, patient), (f, doctor)] for f in ("letter", "text")], difference),
        custom[0].label: ([[(f, doctor) for f in formats]], anchoring),
        joint.label: ([[("text", doctor), ("letter", patient)]], difference),
    }
    assert fit.contrasts is not None
    for label, (combinations, function) in cases.items():
        expected = contrast(rows, combinations, function, match=match, weights=weights)
        compare(fit.contrasts.filter(pl.col("contrast") == label), expected)


def test_definitions_by_hand() -> None:
    """Scenario a: letter .5 (two repetitions), text 1; scenario b: letter 1, text 0, once each."""
    table = {
        "scenario": ["a", "a", "a", "b", "b"],
        "condition": ["letter", "letter", "text", "letter", "text"],
        "repetition": [1, 2, 1, 1, 1],
        "score": [0, 1, 1, 1, 0],
    }
    cells = ts.analyze(table, n_resamples=9).contrasts
    rows = ts.analyze(table, n_resamples=9, match="row").contrasts
    assert cells is not None
    assert rows is not None
    assert cells["estimate"][0] == (0.5 - 1) / 2
    assert rows["estimate"][0] == (1 - 1) / 2
    rates = ts.analyze(table, n_resamples=9, weights="row").rates
    assert rates["estimate"].to_list() == [2 / 3, 1 / 2]


def test_scenario_weights_do_not_count_rows() -> None:
    """Twenty right answers to one scenario weigh as much as one wrong answer to another."""
    table = {
        "scenario": ["a"] * 20 + ["b"],
        "repetition": [*range(20), 0],
        "score": [1] * 20 + [0],
    }
    assert ts.analyze(table).rates["estimate"][0] == 0.5
    assert ts.analyze(table, weights="row").rates["estimate"][0] == pytest.approx(20 / 21, rel=CLOSE)


def test_a_coarser_cluster_sums_scenario_means() -> None:
    rows = random_rows(7, [["a", "b"]], variants=2, repetitions=2, judges=1)
    frame = as_frame(rows, ["condition"]).with_columns(
        pl.col("scenario").str.slice(1).cast(pl.Int64).floordiv(2).alias("ward")
    )
    design = design_of(ts.ResponseTable(frame, cluster="ward"))
    matched = keys_of(design, "cell").matched([0, 1])
    sums = sums_by_cluster(matched, design.axes, 3, weights="scenario")
    fine = sums_by_cluster(
        matched,
        (ClusterAxis("scenario", tuple("012345"), "unit", np.arange(6)),),
        3,
        weights="scenario",
    )
    assert set(np.unique(fine.weights)) <= {0.0, 1.0}
    np.testing.assert_allclose(sums.scores, fine.scores.reshape(3, 2, 3, 2).sum(axis=1), atol=CLOSE)
    np.testing.assert_array_equal(sums.weights, fine.weights.reshape(3, 2, 3).sum(axis=1))
    coarse = ts.analyze(frame, cluster="ward", n_resamples=9).contrasts
    plain = ts.analyze(frame.drop("ward"), n_resamples=9).contrasts
    assert coarse is not None
    assert plain is not None
    np.testing.assert_allclose(coarse["estimate"], plain["estimate"], atol=CLOSE)
    assert coarse["n_clusters"][0] == 3


def test_strata_use_their_rows_only() -> None:
    rows = random_rows(3, [["a", "b"]], variants=1, repetitions=2, judges=1)
    frame = as_frame(rows, ["condition"])
    frame = frame.with_columns(pl.Series("stratum", ["x" if r["repetition"] == 0 else "y" for r in rows]))
    fit = ts.analyze(frame, n_resamples=FEW_REPLICATES)
    assert fit.contrasts is not None
    for stratum, repetition in (("x", 0), ("y", 1)):
        mine = [row for row in rows if row["repetition"] == repetition]
        expected = contrast(mine, [[("b",), ("a",)]], lambda x: x[0] - x[1], match="cell", weights="scenario")
        compare(fit.contrasts.filter(pl.col("stratum") == stratum), expected)


def test_columns_that_are_equal_are_stored_once() -> None:
    axis = ClusterAxis("scenario", ("a", "b"), "unit", np.arange(2))
    builder = TotalsBuilder((axis,))
    places = [builder.add(np.array(column)) for column in ([1.0, 2.0], [3.0, 4.0], [1.0, 2.0])]
    totals = builder.build()
    assert places == [0, 1, 0]
    np.testing.assert_array_equal(totals.values, [[1, 3], [2, 4]])
    np.testing.assert_array_equal(totals.sums, [3, 7])


def test_two_axes_are_cut_either_way() -> None:
    axes = (
        ClusterAxis("scenario", ("a", "b"), "unit", np.array([0, 1])),
        ClusterAxis("model", ("m", "n", "o"), "model", np.array([0, 1, 2])),
    )
    builder = TotalsBuilder(axes)
    builder.add(np.arange(6.0))
    builder.add(np.ones(6))
    totals = builder.build()
    assert totals.values.shape == (2, 3, 2)
    np.testing.assert_array_equal(totals.along(0), [[3, 3], [12, 3]])
    np.testing.assert_array_equal(totals.along(1), [[3, 2], [5, 2], [7, 2]])
    np.testing.assert_array_equal(totals.cells[:, 0], np.arange(6))


def test_matched_keys_have_every_level() -> None:
    nan = np.nan
    keys = Keys(
        unit=np.arange(3),
        model=np.zeros(3, dtype=np.int64),
        cell=np.arange(3),
        values=np.array([[1, nan, 0.5], [1, 0, nan], [nan, 0, 0.25]]),
        counts=np.array([[1, 0, 2], [1, 3, 0], [0, 1, 4]]),
    )
    matched = keys.matched([2, 0])
    np.testing.assert_array_equal(matched.unit, [0])
    np.testing.assert_array_equal(matched.values, [[0.5, 1]])
    np.testing.assert_array_equal(matched.counts, [[2, 1]])
