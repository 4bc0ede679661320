"""The model from totals against pyfixest, and against the model of rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.design import design_of
from triagestats.matching import keys_of
from triagestats.models.absorbed import Absorbed, fit_absorbed

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

# Two ways to the same sums of some thousand numbers.
SAME = 1e-10


def responses(seed: int = 3, *, n_scenarios: int = 30) -> pl.DataFrame:
    """An unbalanced table: some cells have gaps, repetitions differ, a few rows are alone."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(n_scenarios):
        level = rng.normal()
        for m in range(3):
            for c in range(3):
                for r in range(int(rng.integers(0, 4))):
                    score = float(rng.random() < 1 / (1 + np.exp(-level - 0.4 * c)))
                    rows.append((f"s{s:02}", f"m{m}", f"c{c}", r, score))
    return pl.DataFrame(rows, schema=["scenario", "model", "condition", "repetition", "score"], orient="row")


def totals(data: pl.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any]]:
    """Counts and sums by cell and level, and scenario and model of each cell."""
    cells = data.group_by("scenario", "model", maintain_order=True).agg(
        *(pl.col("score").filter(pl.col("condition") == c).sum().alias(f"s{c}") for c in ("c0", "c1", "c2")),
        *((pl.col("condition") == c).sum().alias(f"n{c}") for c in ("c0", "c1", "c2")),
    )
    codes = [np.unique(cells[name].to_numpy(), return_inverse=True)[1] for name in ("scenario", "model")]
    return cells.select("nc0", "nc1", "nc2").to_numpy(), cells.select("sc0", "sc1", "sc2").to_numpy(), codes


def fixest(data: pl.DataFrame, vcov: Any, formula: str = "score ~ C(condition) | cell") -> Any:
    import pyfixest

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations between pandas and pyfixest
        frame = data.with_columns(cell=pl.concat_str("scenario", "model")).to_pandas()
        return pyfixest.feols(formula, frame, vcov=vcov)


def test_absorbed_is_pyfixest() -> None:
    data = responses()
    counts, sums, codes = totals(data)
    fit = fit_absorbed(counts, sums, codes[:1])
    reference = fixest(data, {"CRV1": "scenario"})
    np.testing.assert_allclose(fit.estimates, reference.coef().to_numpy(), rtol=SAME)
    np.testing.assert_allclose(fit.crv1, reference._vcov, rtol=1e-8)  # pyfixest demeans to 1e-8
    assert fit.n_rows == reference._N
    assert fit.df == data.filter(pl.len().over("scenario", "model") > 1)["scenario"].n_unique() - 1
    assert fit.n_singletons == data.group_by("scenario", "model").len().filter(pl.col("len") == 1).height > 0


def test_absorbed_two_way_is_pyfixest() -> None:
    data = responses(8)
    counts, sums, codes = totals(data)
    fit = fit_absorbed(counts, sums, codes)
    reference = fixest(data, {"CRV1": "scenario + model"})
    assert fit.repaired is None
    np.testing.assert_allclose(fit.crv1, reference._vcov, rtol=1e-8)  # pyfixest demeans to 1e-8
    assert fit.df == 2
    assert fit.n_clusters[1] == 3
    assert np.isnan(fit.crv3).all()


@pytest.mark.parametrize("vcov", ["CRV1", "CRV3"])
def test_absorbed_is_the_model_of_rows(vcov: Any) -> None:
    data = responses(5)
    counts, sums, codes = totals(data)
    fit = fit_absorbed(counts, sums, codes[:1])
    rows = ts.lpm("score ~ condition | scenario^model", data, vcov=vcov)
    np.testing.assert_allclose(fit.estimates, rows.estimates, rtol=SAME)
    np.testing.assert_allclose(fit.crv1 if vcov == "CRV1" else fit.crv3, rows.vcov, rtol=1e-9)
    glance = rows.glance().row(0, named=True)
    assert (fit.n_rows, fit.df, fit.n_singletons) == (glance["n_rows"], glance["df"], glance["n_singletons"])
    assert fit.n_clusters == (glance["n_clusters"],)
    if vcov == "CRV1":
        assert (fit.n_parameters, fit.factors) == (glance["n_parameters"], (glance["factor"],))


def test_jackknife_by_leaving_clusters_out() -> None:
    counts, sums, codes = totals(responses(6, n_scenarios=9))
    fit = fit_absorbed(counts, sums, codes[:1])
    without = []
    for cluster in range(9):
        kept = codes[0] != cluster
        without.append(fit_absorbed(counts[kept], sums[kept], [codes[0][kept]]).estimates)
    moved = np.array(without) - fit.estimates
    np.testing.assert_allclose(fit.crv3, 8 / 9 * moved.T @ moved, rtol=SAME)


def test_two_levels_once_each_are_the_mean_difference() -> None:
    sums = np.array([[0.0, 1], [1, 1], [0, 1], [1, 0], [0, 0]])
    fit = fit_absorbed(np.ones((5, 2)), sums, [np.arange(5)])
    differences = sums[:, 1] - sums[:, 0]
    assert fit.estimates[0] == pytest.approx(differences.mean())
    # Scores are half the centred differences, X'X is 5 / 2, and the factor 5/4 * 9/8.
    spread = ((differences - differences.mean()) ** 2).sum() / 25
    assert fit.crv1[0, 0] == pytest.approx(5 / 4 * 9 / 8 * spread)
    # Without cluster g the mean moves by (mean - d_g) / 4.
    assert fit.crv3[0, 0] == pytest.approx(4 / 5 * ((differences - differences.mean()) ** 2).sum() / 16)


def test_another_reference_and_order_of_cells_change_no_difference() -> None:
    counts, sums, codes = totals(responses(4))
    fit = fit_absorbed(counts, sums, codes[:1])
    other = fit_absorbed(counts, sums, codes[:1], reference=1)
    turned = np.array([[-1.0, 0.0], [-1.0, 1.0]])  # c0 - c1 and c2 - c1 from c1 - c0 and c2 - c0
    np.testing.assert_allclose(other.estimates, turned @ fit.estimates, rtol=SAME)
    np.testing.assert_allclose(other.crv3, turned @ fit.crv3 @ turned.T, rtol=1e-8)
    order = np.random.default_rng(0).permutation(len(counts))
    again = fit_absorbed(counts[order], sums[order], [codes[0][order]])
    np.testing.assert_allclose(again.crv1, fit.crv1, rtol=SAME)


def test_a_level_that_no_cell_links_is_dropped() -> None:
    counts = np.array([[1, 1, 0], [2, 1, 0], [1, 1, 0], [0, 0, 2]])
    sums = np.array([[0.0, 1, np.nan], [1, 0, np.nan], [0, 0, np.nan], [np.nan, np.nan, 1]])
    fit = fit_absorbed(counts, sums, [np.array([0, 1, 2, 3])])
    assert (fit.levels.tolist(), fit.dropped) == ([1], (2,))
    assert np.isfinite(fit.crv1).all()


def test_a_cluster_that_decides_alone_leaves_no_jackknife() -> None:
    counts = np.array([[1, 1], [2, 0], [2, 0]])
    fit = fit_absorbed(counts, np.array([[0.0, 1], [1, 0], [2, 0]]), [np.arange(3)])
    assert np.isnan(fit.crv3).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: fit_absorbed(np.ones((3, 2)), np.ones((3, 3)), [np.arange(3)]),
            "of the same cells and levels",
        ),
        (
            lambda: fit_absorbed(np.ones((3, 2)), np.ones((3, 2)), []),
            "`clusters` must be one or two variables",
        ),
        (
            lambda: fit_absorbed(np.ones((3, 2)), np.ones((3, 2)), [np.arange(3)], reference=2),
            "from 0 to 1; got 2",
        ),
        (
            lambda: fit_absorbed(np.ones((3, 2)), np.ones((3, 2)), [np.zeros(3, dtype=int)]),
            "needs two clusters",
        ),
        (
            lambda: fit_absorbed(2 * np.eye(2), np.eye(2), [np.arange(2)]),
            "at the reference and at another level",
        ),
    ],
)
def test_what_is_refused(refusal: Refusal, call: Callable[[], Absorbed], said: str) -> None:
    assert said in refusal(call)


def test_narrativeshield_from_the_keys_of_a_design(shared: Shared) -> None:
    expected = json.loads(shared("replication/narrativeshield/expected.json").read_text(encoding="utf-8"))
    cell = expected["lpm"]["B1_all7_two_voices"]["terms"]
    rows = pl.read_csv(shared("replication/narrativeshield/responses.csv.gz").read_bytes())
    table = ts.ResponseTable(
        rows.filter(pl.col("condition") == "B1").drop("condition"), condition="voice", score="correct"
    )
    design = design_of(table)
    keys = keys_of(design, "cell")
    scores = np.where(keys.counts > 0, keys.values, 0.0) * keys.counts
    fit = fit_absorbed(keys.counts, scores, [design.axes[0].codes[keys.unit]])
    assert (fit.n_rows, fit.n_cells, fit.n_clusters) == (21_000, 7_000, (1_000,))
    for place, voice in enumerate(("beta", "gamma")):
        assert fit.estimates[place] == pytest.approx(cell[voice]["coef"], rel=SAME)
        assert np.sqrt(fit.crv1[place, place]) == pytest.approx(cell[voice]["pyfixest"]["se"], rel=SAME)
