"""The wild cluster bootstrap: refits in NumPy, codings of one model, ties, inversion, edges."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import triagestats as ts
from triagestats import _native
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.models.matrix import ModelMatrix
from triagestats.models.wild import wild_bootstrap, wild_statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PARITY = 1e-9  # of t* with refits by the pseudo-inverse of all dummies
ROUNDING = 1e-12  # of sums whose order of addition differs
INVERSION = 1e-6  # in standard errors: a step over the end of an interval
EFFECTS = (
    "none",
    "nested",
    "cluster",
    "two nested",
    "crossed",
    "nested+crossed",
    "two crossed",
    "many",
    "all",
)


def codes(values: Any) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def random_matrix(effects: str, *, weighted: bool, seed: int = 3, n: int = 150, g: int = 9) -> ModelMatrix:
    """Unbalanced clusters of rows with four regressors and fixed effects of a kind."""
    rng = np.random.default_rng(seed)
    cluster = codes(rng.integers(0, g, n))
    nested = codes(cluster * 4 + rng.integers(0, 4, n))
    second = codes(cluster * 3 + rng.integers(0, 3, n))
    few, many, most = (codes(rng.integers(0, levels, n)) for levels in (4, 12, 40))
    absorbed = {
        "none": (),
        "nested": (nested,),
        "cluster": (cluster,),
        "two nested": (nested, second),
        "crossed": (few,),
        "nested+crossed": (cluster, few),
        "two crossed": (few, many),
        "many": (most, cluster),
        "all": (nested, second, few, many),
    }[effects]
    x = rng.normal(size=(n, 4))
    x[:, 1] += 0.3 * cluster + (few == 2)
    x[:, 2] = rng.integers(0, 2, n)
    x[:, 3] = x[:, 1] ** 2
    if effects == "none":
        x = np.column_stack([x, np.ones(n)])
    y = x @ rng.normal(size=x.shape[1]) + rng.normal(size=g)[cluster] + rng.normal(size=n)
    weights = rng.uniform(0.2, 3, n) if weighted else None
    names = tuple(f"effect{place}" for place in range(len(absorbed)))
    return ModelMatrix(y, x, tuple("abcde"[: x.shape[1]]), absorbed, names, weights, (cluster,), ("group",))


def refits(matrix: ModelMatrix, term: str, weights: Array, value: float, *, impose: bool) -> Array:
    """Each replicate fitted again to all rows, with a dummy for every level; t* without a factor."""
    place = matrix.terms.index(term)
    root = np.sqrt(np.ones(len(matrix.y)) if matrix.weights is None else matrix.weights)
    others = [
        np.delete(matrix.x, place, axis=1),
        *(np.eye(level.max() + 1)[level] for level in matrix.absorbed),
    ]
    rest = np.column_stack(others) * root[:, None]
    x = matrix.x[:, place] * root
    design = np.column_stack([x, rest])
    inverse = np.linalg.pinv(design, rcond=1e-11)
    y = matrix.y * root
    if impose:
        fitted = value * x + rest @ (np.linalg.pinv(rest, rcond=1e-11) @ (y - value * x))
    else:
        fitted = design @ (inverse @ y)
        value = float(inverse[0] @ y)
    found = []
    for row in weights:
        drawn = fitted + row[matrix.clusters[0]] * (y - fitted)
        coefficients = inverse @ drawn
        scores = np.bincount(matrix.clusters[0], weights=inverse[0] * (drawn - design @ coefficients))
        found.append((coefficients[0] - value) / np.linalg.norm(scores))
    return np.array(found)


def paired(gains: Any, *, start: Any = None) -> dict[str, list[Any]]:
    """Items with one answer to each of two arms."""
    base = [item % 3 for item in range(len(gains))] if start is None else start
    return {
        "item": [f"i{item:03}" for item in range(len(gains)) for _ in range(2)],
        "arm": ["u", "v"] * len(gains),
        "y": [score for b, gain in zip(base, gains, strict=True) for score in (b, b + gain)],
    }


def fit(gains: Any) -> Any:
    return ts.lpm("y ~ arm | item", paired(gains), cluster="item")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("effects", EFFECTS)
def test_replicates_are_refits(effects: str, weighted: bool) -> None:
    matrix = random_matrix(effects, weighted=weighted)
    rng = np.random.default_rng(8)
    g = int(matrix.clusters[0].max()) + 1
    rows = np.concatenate([np.ones((1, g)), rng.choice([-1.0, 1.0], (6, g)), rng.normal(size=(6, g))])
    for term, impose in itertools.product("bc", (True, False)):
        result = wild_bootstrap(matrix, term, value=0.3, impose_null=impose, n_resamples=99)
        expected = (
            refits(matrix, term, rows, 0.3, impose=impose) / result.details["small_sample_factor"] ** 0.5
        )
        got = wild_statistics(matrix, term, rows, value=0.3, impose_null=impose)
        np.testing.assert_allclose(got, expected, rtol=PARITY, atol=PARITY)
        if impose:
            assert result.statistic == pytest.approx(expected[0], rel=PARITY)


@pytest.mark.parametrize("kind", ["rademacher", "webb", "mammen"])
def test_native_replicates_are_sums_of_numpy(kind: Any) -> None:
    rng = np.random.default_rng(5)
    for g, parts, rank in ((1, 1, 1), (70, 2, 1), (130, 2, 6), (65, 1, 4)):
        scores, left = rng.normal(size=(g, parts, 1 + rank)), rng.normal(size=(g, rank))
        weights = _native.wild_weights(g, 21, 7, kind=kind, first=2)
        got = _native.wild_regression(scores, left, 21, 7, kind=kind, first=2)
        sums = np.einsum("rg,gpk->rpk", weights, scores)
        own = weights[:, None, :] * scores[:, :, 0].T - np.einsum("gk,rpk->rpg", left, sums[:, :, 1:])
        squares = [(own[:, p] * own[:, q]).sum(axis=1) for p in range(parts) for q in range(p, parts)]
        expected = np.column_stack([sums[:, :, 0], *squares])
        np.testing.assert_allclose(got, expected, rtol=ROUNDING, atol=ROUNDING * g)
        threaded = _native.wild_regression(scores, left, 21, 7, kind=kind, first=2, n_threads=3)
        np.testing.assert_array_equal(got, threaded)
        chunks = [_native.wild_regression(scores, left, 7, 7, kind=kind, first=2 + at) for at in (0, 7, 14)]
        np.testing.assert_array_equal(got, np.concatenate(chunks))
        np.testing.assert_array_equal(
            got, _native.weighted_wild_regression(scores, left, weights, n_threads=2)
        )


def test_native_signs_are_all_of_them() -> None:
    rng = np.random.default_rng(6)
    scores, left = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 2))
    signs = np.array([[1.0 - 2 * (number >> g & 1) for g in range(5)] for number in range(32)])
    got = _native.enumerate_wild_regression(scores, left, 32, n_threads=2)
    np.testing.assert_array_equal(got, _native.weighted_wild_regression(scores, left, signs))
    np.testing.assert_array_equal(got[30:], _native.enumerate_wild_regression(scores, left, 2, first=30))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, m: _native.wild_regression(s, m[:4], 3, 1, kind="webb"), "`left` must have shape"),
        (lambda s, m: _native.wild_regression(s[:, 0], m, 3, 1, kind="webb"), "shape \\(G, P, 1 \\+ K\\)"),
        (lambda s, m: _native.wild_regression(s, m, 3, 1, kind="normal"), "`kind` must be"),
        (lambda s, m: _native.wild_regression(s * np.nan, m, 3, 1, kind="webb"), "`scores` must be finite"),
        (lambda s, m: _native.wild_regression(np.repeat(s, 2, 1), m, 3, 1, kind="webb"), "one or two parts"),
        (lambda s, m: _native.enumerate_wild_regression(s, m, 33), "the 32 arrangements"),
        (lambda s, m: _native.weighted_wild_regression(s, m, np.ones((2, 4))), "each of the 5 clusters"),
    ],
)
def test_native_input_is_checked(call: Callable[[Array, Array], Array], message: str) -> None:
    rng = np.random.default_rng(6)
    with pytest.raises((ValueError, TypeError), match=message):
        call(rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 2)))


def by_hand(gains: Any) -> float:
    """Share of the sign vectors whose paired t is as large as that of the data."""

    def ratio(values: Array) -> Array:
        centred = values - values.mean(axis=-1, keepdims=True)
        return np.abs(values.sum(axis=-1)) / np.sqrt((centred**2).sum(axis=-1))

    own = np.array(gains, dtype=float)
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(own))))
    return float((ratio(signs * own) >= ratio(own) * (1 - 1e-9)).mean())


@pytest.mark.parametrize(
    "gains", [(1, 2, 0, 1, 3, 1, -1, 2), (0.1, 0.2, 0.3, -0.1, 0.4, 0.2), (3, -1, 2, 5, 4, 4, 1)]
)
def test_pairs_give_the_sign_flip_test_of_t(gains: Any) -> None:
    result = wild_bootstrap(fit(gains), "arm[T.v]")
    assert result.p_value == by_hand(gains)
    assert result.estimate == pytest.approx(np.mean(gains))
    error = np.std(gains, ddof=1) / len(gains) ** 0.5
    factor = result.details["small_sample_factor"] * (len(gains) - 1) / len(gains)
    assert result.details["std_error"] == pytest.approx(error * factor**0.5)


def coded(shift: float = 0.0, scale: float = 1.0) -> list[Any]:
    """One set of data as five models with the same coefficient, residuals and clusters."""
    rng = np.random.default_rng(12)
    rows: dict[str, list[Any]] = {"scenario": [], "model": [], "arm": [], "y": []}
    for scenario, model, arm in itertools.product(range(8), range(3), range(2)):
        rows["scenario"].append(f"s{scenario}")
        rows["model"].append(f"m{model}")
        rows["arm"].append("uv"[arm])
        rows["y"].append(shift + scale * float(rng.random() < 0.4 + 0.25 * arm))
    right = (
        "y ~ arm",
        "y ~ arm + model",
        "y ~ arm + model + scenario",
        "y ~ arm + model | scenario",
        "y ~ arm | scenario + model",
        "y ~ arm | scenario^model",
    )
    return [ts.lpm(formula, rows, cluster="scenario") for formula in right]


@pytest.mark.parametrize("p_value", ["symmetric", "equal-tailed"])
@pytest.mark.parametrize("impose", [True, False])
def test_codings_of_one_model_agree(impose: bool, p_value: Any) -> None:
    results = [
        wild_bootstrap(model, "arm[T.v]", impose_null=impose, p_value=p_value)
        for model in coded() + coded(1e6, 1e-3) + coded(0.1, 1 / 3)
    ]
    assert {result.details["enumerated"] for result in results} == {True}
    for name in ("n_as_extreme", "n_above", "n_below", "n_ties"):
        assert len({result.details[name] for result in results}) == 1, name
    assert len({result.p_value for result in results}) == 1
    assert not impose or results[0].details["n_ties"] >= 2


@pytest.mark.parametrize("model_rows", ["as they are", "scenario dummies", "absorbed"])
def test_few_clusters_give_seven_of_64(shared: Any, model_rows: str) -> None:
    data = json.loads(shared("oracles/data/few_clusters.json").read_text(encoding="utf-8"))
    formula = {
        "as they are": "y ~ treat + model",
        "scenario dummies": "y ~ treat + model + scenario",
        "absorbed": "y ~ treat | scenario + model",
    }[model_rows]
    result = wild_bootstrap(ts.lpm(formula, data, cluster="scenario"), "treat")
    assert (result.p_value, result.details["n_ties"]) == (0.109375, 20)
    assert result.estimate == pytest.approx(0.260869565217391)


def test_transformations_change_nothing() -> None:
    matrix = random_matrix("nested+crossed", weighted=True)
    base = wild_bootstrap(matrix, "c", value=0.2)
    order = np.random.default_rng(1).permutation(len(matrix.y))
    names = np.random.default_rng(2).permutation(int(matrix.clusters[0].max()) + 1)
    assert matrix.weights is not None
    mixed = replace(
        matrix,
        y=matrix.y[order],
        x=matrix.x[order],
        absorbed=tuple(level[order] for level in matrix.absorbed),
        weights=7 * matrix.weights[order],
        clusters=(names[matrix.clusters[0]][order],),
    )
    shifted = replace(matrix, y=5 + 3 * matrix.y)
    turned = replace(matrix, x=matrix.x * np.where(np.array(matrix.terms) == "c", -2.0, 1.0))
    for other, value, scale in ((mixed, 0.2, 1.0), (shifted, 0.6, 3.0), (turned, -0.1, -0.5)):
        result = wild_bootstrap(other, "c", value=value)
        assert result.p_value == base.p_value
        assert result.estimate == pytest.approx(scale * (base.estimate or 0.0))
        ends = sorted(scale * (end or 0.0) for end in (base.conf_low, base.conf_high))
        assert [result.conf_low, result.conf_high] == pytest.approx(ends, rel=1e-7)


def test_a_weight_of_two_is_a_row_twice() -> None:
    matrix = random_matrix("crossed", weighted=False)
    weights = np.random.default_rng(4).integers(1, 4, len(matrix.y))
    rows = np.repeat(np.arange(len(matrix.y)), weights)
    twice = replace(
        matrix,
        y=matrix.y[rows],
        x=matrix.x[rows],
        absorbed=tuple(level[rows] for level in matrix.absorbed),
        clusters=(matrix.clusters[0][rows],),
    )
    one = wild_bootstrap(replace(matrix, weights=weights.astype(float)), "b")
    two = wild_bootstrap(twice, "b")
    assert (one.p_value, one.estimate) == (two.p_value, pytest.approx(two.estimate))
    ratio = one.details["small_sample_factor"] / two.details["small_sample_factor"]
    assert one.details["std_error"] == pytest.approx(two.details["std_error"] * ratio**0.5)


@pytest.mark.parametrize("weights", ["rademacher", "webb", "mammen"])
def test_threads_change_nothing(weights: Any) -> None:
    matrix = random_matrix("nested", weighted=False, g=40, n=400)
    one, two = (
        wild_bootstrap(matrix, "b", weights=weights, n_resamples=2_345, n_threads=threads)
        for threads in (1, 3)
    )
    assert one == two
    assert one.details["n_replicates"] == 2_345
    assert one.p_value == (one.details["n_as_extreme"] + 1) / 2_346


@pytest.mark.parametrize("p_value", ["symmetric", "equal-tailed"])
@pytest.mark.parametrize("impose", [True, False])
@pytest.mark.parametrize(
    ("weights", "g"), [("rademacher", 9), ("rademacher", 20), ("webb", 20), ("mammen", 20)]
)
def test_the_interval_inverts_the_test(weights: Any, g: int, impose: bool, p_value: Any) -> None:
    matrix = random_matrix("crossed", weighted=True, g=g, n=15 * g)

    def at(value: float) -> Any:
        return wild_bootstrap(
            matrix, "a", value=value, weights=weights, impose_null=impose, p_value=p_value, n_resamples=999
        )

    result = at(0.0)
    low, high, error = result.conf_low, result.conf_high, result.details["std_error"]
    assert low < result.estimate < high
    for end, outwards in ((low, -error), (high, error)):
        assert at(end - INVERSION * outwards).p_value > 0.05
        assert at(end + INVERSION * outwards).p_value <= 0.05 + ROUNDING
    assert at(result.estimate).p_value == 1.0 or p_value == "equal-tailed"


def test_the_unrestricted_interval_is_one_of_quantiles() -> None:
    matrix = random_matrix("nested", weighted=False, g=30, n=300)
    result = wild_bootstrap(matrix, "b", impose_null=False, n_resamples=999)
    signs = _native.wild_weights(30, 999, result.details["seed"], kind="rademacher")
    sizes = np.sort(np.abs(wild_statistics(matrix, "b", signs, impose_null=False)))
    half = sizes[-50] * result.details["std_error"]  # 49 of 999 lie beyond: p = 50 / 1000 rejects
    assert result.conf_high == pytest.approx(result.estimate + half, abs=1e-8)
    assert result.conf_low == pytest.approx(result.estimate - half, abs=1e-8)


def test_drawn_signs_approach_all_of_them() -> None:
    matrix = random_matrix("nested", weighted=False, g=13, n=200, seed=7)
    exact = wild_bootstrap(matrix, "a", value=-0.3)
    drawn = wild_bootstrap(matrix, "a", value=-0.3, n_resamples=8_000)
    assert exact.details["enumerated"]
    assert not drawn.details["enumerated"]
    assert exact.p_value is not None
    assert drawn.p_value is not None
    error = (exact.p_value * (1 - exact.p_value) / 8_000) ** 0.5
    assert abs(drawn.p_value - exact.p_value) < 5 * error + 1 / 8_001


@pytest.mark.parametrize(
    ("g", "n_resamples", "kind", "enumerated"),
    [
        (8, 9_999, "rademacher", True),
        (8, 255, "webb", False),
        (10, 99, "rademacher", False),
        (13, 9_999, "rademacher", True),
    ],
)
def test_weights_follow_the_number_of_clusters(g: int, n_resamples: int, kind: str, enumerated: bool) -> None:
    gains = np.random.default_rng(g).normal(0.5, 1, g)
    result = wild_bootstrap(fit(gains), "arm[T.v]", n_resamples=n_resamples)
    assert (result.details["weights"], result.details["enumerated"]) == (kind, enumerated)
    assert any(note.code == "weights" for note in result.notes) == (kind == "webb")


def codes_of(result: Any) -> set[str]:
    return {note.code for note in result.notes}


def test_five_clusters_cannot_reject() -> None:
    result = wild_bootstrap(fit((1, 2, 1, 3, 2)), "arm[T.v]")
    assert result.p_value == result.details["smallest_p_value"] == 2 / 32
    assert (result.conf_low, result.conf_high) == (-np.inf, np.inf)
    assert {"smallest_p", "unbounded"} <= codes_of(result)
    narrower = wild_bootstrap(fit((1, 2, 1, 3, 2)), "arm[T.v]", conf_level=0.9)
    assert narrower.conf_low is not None
    assert 0 < narrower.conf_low < 1.8
    assert "smallest_p" not in codes_of(narrower)
    webb = wild_bootstrap(fit((1, 2, 1, 3, 2)), "arm[T.v]", weights="webb")
    assert webb.p_value is not None
    assert webb.p_value < 0.05
    assert np.isfinite([webb.conf_low, webb.conf_high]).all()


@pytest.mark.parametrize("p_value", ["symmetric", "equal-tailed"])
@pytest.mark.parametrize(
    ("weights", "g", "n_resamples", "floor"),
    [
        ("mammen", 8, 4_999, 0.7236068**8 + 0.2763932**8),
        ("mammen", 4, 4_999, 0.7236068**4 + 0.2763932**4),
        ("webb", 3, 4_999, 6 / 6**3),
        ("webb", 4, 4_999, 6 / 6**4),
        ("rademacher", 5, 20, 2 / 2**5),
    ],
)
def test_no_data_beat_the_floor_of_drawn_weights(
    weights: Any, g: int, n_resamples: int, floor: float, p_value: Any
) -> None:
    """One weight for all clusters gives t again: p of a huge effect is the chance of that, and a little."""
    gains = np.random.default_rng(3).normal(50, 1, g)
    result = wild_bootstrap(fit(gains), "arm[T.v]", weights=weights, n_resamples=n_resamples, p_value=p_value)
    least = result.details["smallest_p_value"]
    if p_value == "symmetric":
        assert least == pytest.approx((n_resamples * floor + 1) / (n_resamples + 1), rel=1e-6)
    elif weights != "mammen":
        assert least == pytest.approx(2 * (n_resamples * floor / 2 + 1) / (n_resamples + 1), rel=1e-6)
    error = 4 * (floor * (1 - floor) / n_resamples) ** 0.5 + 2 / n_resamples
    assert result.p_value is not None
    assert result.p_value >= least - error
    if p_value == "symmetric":
        assert result.p_value <= least + error
    assert ("smallest_p" in codes_of(result)) == (least > 0.05)
    if least > 0.05:
        assert f"p cannot be below about {least:.3g}." in str(result)
    free = wild_bootstrap(fit(gains), "arm[T.v]", weights=weights, n_resamples=n_resamples, impose_null=False)
    assert free.details["smallest_p_value"] == pytest.approx(1 / (n_resamples + 1))


def test_ends_have_the_digits_to_which_they_were_found() -> None:
    """A boundary at 0 is printed as 0, not as the noise of its search."""
    for gains in (
        (1, 1, 1, 1, 1, 1, 1, 1, 1, -9),
        (3, -1, 2, 0, 1, 1, 2, 4, -2, 1),
        (1, 0, 0, 1, 1, 0, 0, 1, 2),
    ):
        result = wild_bootstrap(fit(gains), "arm[T.v]")
        for end in (result.conf_low, result.conf_high):
            assert end is not None
            assert len(f"{end:.15g}".lstrip("-").replace(".", "").lstrip("0").rstrip("0")) <= 12
            assert end == 0 or abs(end) > 1e-8


def test_replicates_without_an_error_count() -> None:
    """Where all sizes are equal, a sign vector can make all gains equal: its t* is infinite."""
    gains = (1, -1, 1, 1, 1, -1)
    result = wild_bootstrap(fit(gains), "arm[T.v]")
    assert result.details["n_degenerate"] == 2
    assert "degenerate" in codes_of(result)
    at_least = sum(abs(sum(signs)) >= 2 for signs in itertools.product([1, -1], repeat=6))
    assert result.p_value == at_least / 64
    drawn = wild_statistics(fit(gains), "arm[T.v]", np.array([gains, np.negative(gains)], dtype=float))
    assert drawn.tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("gains", [(2, 2, 2, 2, 2, 2), (0, 0, 0, 0, 0, 0), (0.1, 0.1, 0.1, 0.1)])
def test_without_an_error_t_is_undefined(gains: Any) -> None:
    result = wild_bootstrap(fit(gains), "arm[T.v]")
    assert result.estimate == pytest.approx(gains[0], abs=ROUNDING)
    assert (result.statistic, result.p_value, result.conf_low, result.details["std_error"]) == (None,) * 4
    assert "error by cluster is 0" in (result.undefined or "")
    assert result.tidy()["status"][0] == "undefined"


def test_a_few_treated_clusters_are_noted() -> None:
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(12), 10)
    x = np.column_stack([np.ones(120), cluster == 0])
    matrix = ModelMatrix(rng.normal(size=120), x, ("one", "treated"), (), (), None, (cluster,), ("group",))
    result = wild_bootstrap(matrix, "treated")
    assert result.details["effective_clusters"] < 2
    assert "few_clusters" in codes_of(result)
    assert "few_clusters" not in codes_of(wild_bootstrap(matrix, "one", value=0.1))


def test_no_replicate_beyond_the_data_is_said() -> None:
    result = wild_bootstrap(fit((9, 10, 11, 10, 9, 11, 10, 10)), "arm[T.v]", impose_null=False)
    assert result.p_value == 0
    assert "zero_p" in codes_of(result)
    assert wild_bootstrap(fit((9, 10, 11, 10, 9, 11, 10, 10)), "arm[T.v]").p_value == 2 / 256


def test_the_result_says_what_was_done() -> None:
    result = wild_bootstrap(fit((1, 2, 0, 1, 3, 1, -1, 2)), "arm[T.v]", p_value="equal-tailed")
    assert result.method == (
        "wild cluster bootstrap-t, null imposed, equal-tailed, Rademacher weights, all 256 sign vectors"
    )
    row = result.tidy().row(0, named=True)
    assert (row["estimand"], row["contrast"], row["n_clusters"], row["n_rows"]) == (
        "coefficient",
        "arm[T.v]",
        8,
        16,
    )
    assert row["std_error"] == result.details["std_error"]
    assert result.notes[0].message.startswith("CRV1 factor 1.22449, with G = 8, N = 16 and K = 2;")
    assert result.to_dict()["details"]["two_sided"] == "equal-tailed"
    assert result.glance().height == 1


def test_the_convention_of_the_fit_holds() -> None:
    rows = paired((1, 2, 0, 1, 3, 1, -1, 2))
    for small in ({"effects": "full"}, {"k": False}, {"g": False}):
        model = ts.lpm("y ~ arm | item", rows, cluster="item", small_sample=small)
        result = wild_bootstrap(model, "arm[T.v]")
        assert result.details["std_error"] == pytest.approx(model.std_errors[0])
        assert result.p_value == 0.078125
    assert wild_bootstrap(model.matrix, "arm[T.v]").p_value == 0.078125


@pytest.mark.parametrize(
    ("change", "term", "kind", "message"),
    [
        ({}, "bb", ArgumentError, "`term` must be a coefficient of the model, such as 'b'; got 'bb'"),
        ({"clusters": (), "cluster_names": ()}, "b", DesignError, "the model has none"),
        ({"clusters": "two"}, "b", DesignError, "the model has 'group' and 'other'"),
        ({"clusters": "one"}, "b", DesignError, "'group' has one cluster"),
        ({"x": "swallowed"}, "b", DesignError, "nothing of 'b' is left beside the other regressors, effect0"),
        ({"x": "collinear"}, "b", DesignError, "nothing of 'b' is left beside the other regressors"),
        ({"x": "wide"}, "x3", DesignError, "150 rows cannot carry 201 parameters"),
    ],
)
def test_models_that_cannot_be_tested(
    change: dict[str, Any], term: str, kind: type[Exception], message: str
) -> None:
    matrix = random_matrix("cluster", weighted=False)
    cluster = matrix.clusters[0]
    if change.get("clusters") == "two":
        change = {"clusters": (cluster, cluster), "cluster_names": ("group", "other")}
    elif change.get("clusters") == "one":
        change = {"clusters": (np.zeros_like(cluster),)}
    elif change.get("x") == "swallowed":
        x = matrix.x.copy()
        x[:, 1] = cluster / 7
        change = {"x": x}
    elif change.get("x") == "collinear":
        x = matrix.x.copy()
        x[:, 1] = x[:, 0] - 3 * x[:, 2]
        change = {"x": x}
    elif change.get("x") == "wide":
        x = np.random.default_rng(1).normal(size=(150, 200))
        change = {"x": x, "terms": tuple(f"x{place}" for place in range(200))}
    with pytest.raises(kind, match=message.replace("(", "\\(")):
        wild_bootstrap(replace(matrix, **change), term)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"value": "0"}, ArgumentTypeError, "`value` must be a number; got '0'"),
        ({"value": np.nan}, ArgumentError, "`value` must be finite; got nan"),
        ({"weights": "normal"}, ArgumentError, "`weights` must be one of"),
        ({"p_value": "upper"}, ArgumentError, "`p_value` must be one of 'symmetric', 'equal-tailed'"),
        ({"impose_null": 1}, ArgumentTypeError, "`impose_null` must be True or False; got 1"),
        ({"conf_level": 95}, ArgumentError, "did you mean 0.95"),
        ({"n_resamples": 0}, ArgumentError, "`n_resamples` must be at least 1"),
        ({"seed": -1}, ArgumentError, "`seed` must lie"),
        ({"n_threads": 0}, ArgumentError, "`n_threads` must be at least 1"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        wild_bootstrap(random_matrix("none", weighted=False), "b", **arguments)


def test_other_objects_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="`model` must be what lpm returns; got dict"):
        wild_bootstrap({}, "b")  # type: ignore[arg-type]  # refused
    with pytest.raises(ArgumentError, match=r"shape \(R, 9\), a column for each cluster; got shape \(2, 8\)"):
        wild_statistics(random_matrix("none", weighted=False), "b", np.ones((2, 8)))


@pytest.mark.slow
def test_size_with_ten_unequal_clusters() -> None:
    """Of 1,500 tests of a true hypothesis at 5 %, no more reject than three binomial errors allow."""
    rng = np.random.default_rng(77)
    sizes = np.array([4, 4, 6, 6, 8, 8, 10, 12, 14, 18])
    cluster = np.repeat(np.arange(10), sizes)
    rejected = 0
    for _ in range(1_500):
        x = np.column_stack(
            [np.ones(len(cluster)), rng.normal(size=10)[cluster] + rng.normal(size=len(cluster))]
        )
        y = rng.normal(size=10)[cluster] + rng.normal(size=len(cluster))
        matrix = ModelMatrix(y, x, ("one", "x"), (), (), None, (cluster,), ("group",))
        p_value = wild_bootstrap(matrix, "x", n_threads=1).p_value
        rejected += p_value is not None and p_value <= 0.05
    assert 0.025 < rejected / 1_500 < 0.05 + 3 * (0.05 * 0.95 / 1_500) ** 0.5
