"""The wild cluster bootstrap against enumerated and supplied-weight references."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triagestats.models.matrix import ModelMatrix
from triagestats.models.wild import wild_bootstrap, wild_statistics
from triagestats.results import Test

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
FILE = SHARED / "oracles" / "wild_bootstrap.json"
QUANTILES = (0.025, 0.5, 0.975)
DUMMIES = {"model dummies": "model", "scenario dummies": "scenario"}


def fixtures() -> list[Any]:
    if not FILE.exists():
        return [
            pytest.param({}, marks=pytest.mark.skip(reason=f"{FILE} is not there; set TRIAGESTATS_SHARED"))
        ]
    found = json.loads(FILE.read_text(encoding="utf-8"))["fixtures"]
    return [pytest.param(fixture, id=fixture["name"]) for fixture in found]


def covariates(fixture: dict[str, Any]) -> str:
    """Fixtures with supplied weights say in their name alone which dummies they have."""
    if "covariates" in fixture["input"]:
        return str(fixture["input"]["covariates"])
    return "model dummies" + (" + scenario dummies" if fixture["name"].endswith("_scenario_fe") else "")


def model_of(fixture: dict[str, Any]) -> tuple[ModelMatrix, str]:
    """The model with its dummies as regressors, and the tested term."""
    given = fixture["input"]
    data = json.loads((SHARED / "oracles" / given["data"]).read_text(encoding="utf-8"))
    term, cluster = given.get("term", "treat"), np.array(data[given.get("cluster", "scenario")])
    names, columns = [term, "Intercept"], [np.array(data[term], dtype=float), np.ones(len(cluster))]
    for part in covariates(fixture).split(" + "):
        labels = np.array(data[DUMMIES[part]])
        for label in np.unique(labels)[1:]:
            names.append(str(label))
            columns.append((labels == label).astype(float))
    order = given.get("clusters", sorted(set(cluster.tolist())))
    codes = np.array([order.index(label) for label in cluster.tolist()])
    y = np.array(data["y"], dtype=float)
    matrix = ModelMatrix(y, np.column_stack(columns), tuple(names), (), (), None, (codes,), ("scenario",))
    return matrix, term


class Answers:
    """What the package says to each key of `expected`."""

    def __init__(self, fixture: dict[str, Any]) -> None:
        self.fixture = fixture
        self.matrix, self.term = model_of(fixture)
        self.imposed = bool(fixture["options"]["null_imposed"])
        self.n_clusters = int(self.matrix.clusters[0].max()) + 1

    @cache  # noqa: B019  # lives for one test
    def test(self, p_value: Any = "symmetric") -> Test:
        return wild_bootstrap(
            self.matrix,
            self.term,
            weights="rademacher",
            impose_null=self.imposed,
            p_value=p_value,
            n_resamples=max(2**self.n_clusters, 9_999),
        )

    @cache  # noqa: B019  # lives for one test
    def drawn(self) -> Any:
        signs = itertools.product([1.0, -1.0], repeat=self.n_clusters)
        rows = np.array(self.fixture["input"].get("weights") or list(signs))
        return wild_statistics(self.matrix, self.term, rows, impose_null=self.imposed)

    def exceedances(self) -> int:
        return int((np.abs(self.drawn()) >= abs(self.t()) * (1 - 1e-10)).sum())

    def t(self) -> float:
        statistic = self.test().statistic
        assert statistic is not None
        return statistic

    def strict(self) -> float:
        details = self.test().details
        return float(details["n_as_extreme"] - details["n_ties"]) / float(details["n_replicates"])

    def answer(self, key: str) -> Any:
        answers: dict[str, Callable[[], Any]] = {
            "estimate": lambda: self.test().estimate,
            "t_crv1": self.t,
            "p_two_ge": lambda: self.test().p_value,
            "p_two_gt_strict": self.strict,
            "p_equal_tailed_ge": lambda: self.test("equal-tailed").p_value,
            "n_ties": lambda: self.test().details["n_ties"],
            "n": lambda: self.test().details["n_replicates"],
            "t_quantiles": lambda: np.quantile(self.drawn()[np.isfinite(self.drawn())], QUANTILES),
            "t_star": self.drawn,
            "exceedances": self.exceedances,
            "p_plus1": lambda: (self.exceedances() + 1) / (len(self.drawn()) + 1),
            "p_raw": lambda: self.exceedances() / len(self.drawn()),
        }
        return answers[key]()


@pytest.mark.parametrize("fixture", fixtures())
def test_wild_bootstrap(fixture: dict[str, Any]) -> None:
    answers, tolerance = Answers(fixture), fixture["tolerance"]
    for key, expected in fixture["expected"].items():
        got = answers.answer(key)
        if expected is None:
            assert got is None, key
            assert answers.test().undefined, key
            continue
        got, wanted = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
        assert got.shape == wanted.shape, key
        slack = tolerance["atol"] + tolerance["rtol"] * np.abs(wanted)
        assert (np.abs(got - wanted) <= slack).all(), (key, got, wanted)
