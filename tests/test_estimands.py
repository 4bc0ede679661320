"""Estimands as functions of level means."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triagestats as ts
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.estimands import Estimand

SUMS = 1e-12  # three terms between -1 and 1, in another order

CASES: list[tuple[Estimand, tuple[str, ...], list[float], float, str]] = [
    (ts.Mean("a"), ("a",), [0.25], 0.25, "mean(a)"),
    (ts.Difference("a", "b"), ("a", "b"), [0.75, 0.5], 0.25, "a - b"),
    (ts.Gap("a", ["b", "c"]), ("a", "b", "c"), [0.75, 0.5, 0.25], 0.375, "a - mean(b, c)"),
    (ts.AnchoringGap("a", ["b", "c"]), ("a", "b", "c"), [0.75, 0.5, 0.25], 0.5, "a - min(b, c)"),
    (ts.AnchoringGap("a", ["b", "c"]), ("a", "b", "c"), [0.5, 0.75, 1.0], -0.25, "a - min(b, c)"),
    (
        ts.Function(lambda v: v[..., 0] / v[..., 1], [ts.Mean("b"), ts.Gap("a", ["b"])], name="ratio"),
        ("b", "a"),
        [0.25, 0.75],
        0.5,
        "ratio(mean(b), a - mean(b))",
    ),
]


@pytest.mark.parametrize(("estimand", "levels", "means", "value", "label"), CASES)
def test_by_hand(
    estimand: Estimand, levels: tuple[str, ...], means: list[float], value: float, label: str
) -> None:
    assert estimand.levels == levels
    assert estimand.label == label
    assert float(estimand.evaluate(np.array(means))) == value


@pytest.mark.parametrize("estimand", [case[0] for case in CASES], ids=lambda estimand: estimand.label)
def test_leading_axes_are_separate(estimand: Estimand) -> None:
    means = np.random.default_rng(1).random((4, 5, len(estimand.levels)))
    together = estimand.evaluate(means)
    assert together.shape == (4, 5)
    for place in np.ndindex(4, 5):
        assert together[place] == estimand.evaluate(means[place])


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_linear_estimands_are_their_coefficients(means: list[float]) -> None:
    for estimand in (ts.Mean("a"), ts.Difference("a", "b"), ts.Gap("a", ["b", "c", "d"])):
        used = np.array(means[: len(estimand.levels)])
        assert estimand.coefficients is not None
        assert float(estimand.evaluate(used)) == pytest.approx(float(used @ estimand.coefficients), abs=SUMS)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_anchoring_gap_is_the_largest_difference(means: list[float]) -> None:
    gap = float(ts.AnchoringGap("a", ["b", "c"]).evaluate(np.array(means)))
    assert gap == max(means[0] - means[1], means[0] - means[2])


def test_undefined_means_stay_undefined() -> None:
    for estimand in (ts.Gap("a", ["b", "c"]), ts.AnchoringGap("a", ["b", "c"])):
        for place in range(3):
            means = np.array([0.5, 0.5, 0.5])
            means[place] = np.nan
            assert np.isnan(estimand.evaluate(means))


def test_smoothness_and_nulls() -> None:
    assert not ts.AnchoringGap("a", ["b", "c"]).smooth
    assert ts.AnchoringGap("a", ["b"]).smooth
    assert ts.Gap("a", ["b", "c"]).smooth
    assert ts.Mean("a").null is None
    assert [e.null for e in (ts.Difference("a", "b"), ts.Gap("a", ["b", "c", "d"]))] == [0.0, 0.0]
    assert ts.AnchoringGap("a", ["b", "c"]).null == 0
    assert ts.Function(lambda v: v[..., 0], [ts.Mean("a")]).null is None
    assert ts.Function(lambda v: v[..., 0], [ts.Mean("a")], null=1).null == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ts.Difference("a", "a"), ArgumentError, "must differ"),
        (lambda: ts.Gap("a", ["b", "a"]), ArgumentError, "must differ"),
        (lambda: ts.Gap("a", []), ArgumentTypeError, "list of condition levels"),
        (lambda: ts.Gap("a", "bc"), ArgumentTypeError, "list of condition levels"),
        (lambda: ts.Mean(None), ArgumentTypeError, "name of a condition level"),
        (lambda: ts.Mean(True), ArgumentTypeError, "name of a condition level"),
        (lambda: ts.Function(lambda v: v, []), ArgumentTypeError, "list of estimands"),
        (lambda: ts.Function(3, [ts.Mean("a")]), ArgumentTypeError, "callable"),
        (lambda: ts.Function(lambda v: v, [ts.Mean("a")], null=float("nan")), ArgumentTypeError, "finite"),
    ],
)
def test_refusals(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]


def test_a_function_that_is_not_vectorised_is_refused() -> None:
    estimand = ts.Function(lambda v: v.mean(), [ts.Mean("a"), ts.Mean("b")], name="flat")
    with pytest.raises(ArgumentError, match="'flat' must return one value for each leading index"):
        estimand.evaluate(np.ones((3, 2)))


def _two_yes_no() -> pl.DataFrame:
    rows = [
        (f"s{s}", a, b, float((s + (a == "yes") * (b == "yes")) % 2))
        for s in range(6)
        for a in ("no", "yes")
        for b in ("no", "yes")
    ]
    return pl.DataFrame(rows, schema=["scenario", "warned", "named", "score"], orient="row")


def test_levels_of_two_condition_columns_are_ambiguous() -> None:
    table = _two_yes_no()
    condition = ["warned", "named"]
    with pytest.raises(ArgumentError, match=r"fits the condition columns \['warned', 'named'\]"):
        ts.analyze(table, condition=condition, estimands=[ts.Difference("yes", "no")])
    joint = ts.Difference("warned=yes, named=no", "warned=no, named=no")
    fit = ts.analyze(table, condition=condition, estimands=[joint], n_resamples=99)
    assert fit.contrasts is not None
    assert fit.contrasts.filter(pl.col("contrast") == joint.label).height == 1


def test_levels_that_the_table_lacks_are_refused() -> None:
    with pytest.raises(ArgumentError, match="needs the levels"):
        ts.analyze(_two_yes_no(), condition=["warned"], variant="named", estimands=[ts.Mean("maybe")])
