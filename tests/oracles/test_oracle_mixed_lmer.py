"""Linear mixed models against lme4, lmerTest, emmeans and pbkrtest, from the reference data.

Of `mixed.json` this reads the fixtures that have an option `REML`, those of lmer; the others are of
generalised models.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.models.formula import parse_formula

SHARED: Final = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
ORACLES: Final = SHARED / "oracles"
TO_OLS: Final = 1e-9
"""Where all variances are 0 the fixed effects are least squares, to rounding."""

Fit = ts.VarianceComponents
Fixture = dict[str, Any]


def fixtures() -> list[Any]:
    path = ORACLES / "mixed.json"
    if not path.exists():
        reason = f"reference data {path} is not there; set TRIAGESTATS_SHARED to its folder"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    found = json.loads(path.read_text())["fixtures"]
    return [pytest.param(f, id=f["name"]) for f in found if "REML" in f["options"]]


def table(given: Fixture) -> dict[str, list[Any]]:
    """Return the columns, with the one that `derived` describes."""
    data: dict[str, list[Any]] = json.loads((ORACLES / given["data"]).read_text())
    if "derived" in given:
        pattern = r"(\w+) = ([\d.]+)\*\{(.*?)\}\[(\w+)\] \+ cycle\(\[(.*?)\]\) over rows"
        read = re.fullmatch(pattern, given["derived"])
        assert read is not None, f"cannot read {given['derived']!r}"
        name, factor, levels, column, cycle = read.groups()
        value = {k: float(v) for k, v in (pair.split(":") for pair in levels.split(","))}
        steps = np.resize([float(step) for step in cycle.split(",")], len(data[column]))
        data[name] = [
            float(factor) * value[level] + step for level, step in zip(data[column], steps, strict=True)
        ]
    return data


def fitted(fixture: Fixture, df_method: Any = "satterthwaite") -> Fit:
    """Fit the formula of a fixture: `y ~ a + b + (1|g) + (1|g:h)`."""
    data, formula = table(fixture["input"]), parse_formula(fixture["options"]["formula"])
    assert not formula.absorbed
    assert all(term.terms == "1" for term in formula.random)
    groups = [term.group.replace(" ", "") for term in formula.random]
    names = [name.strip() for name in formula.fixed.split("+") if name.strip() != "1"]
    numeric = [name for name in names if not isinstance(data[name][0], str)]
    factors = [name for name in names if name not in numeric]
    if (reference := fixture["options"].get("reference")) is not None:
        for name in factors:
            assert sorted(set(data[name]))[0] == reference
    return ts.variance_components(
        data,
        factors=[group for group in groups if ":" not in group],
        interactions=[group for group in groups if ":" in group],
        fixed=factors,
        covariates=numeric,
        outcome=formula.outcome,
        method="reml" if fixture["options"]["REML"] else "ml",
        df_method=df_method,
    )


class Compare:
    """One fixture beside our fit; a method a key of `expected`."""

    def __init__(self, fixture: Fixture) -> None:
        self.fixture = fixture
        self.fit = fitted(fixture)
        self.ours = {"(Intercept)": "(Intercept)"} | {
            f"{factor}{level}": f"{factor}[T.{level}]"
            for factor, (levels, _) in self.fit.marginals.items()
            for level in levels[1:]
        }
        self.rows = self.by_term(self.fit)

    @staticmethod
    def by_term(fit: Fit) -> dict[str, dict[str, Any]]:
        tidy = fit.tidy().filter(pl.col("estimand") == "coefficient")
        return {row["term"]: row for row in tidy.iter_rows(named=True)}

    def close(self, got: Any, expected: Any) -> None:
        tolerance = self.fixture["tolerance"]
        assert np.shape(got) == np.shape(expected)
        off = np.abs(np.asarray(got, dtype=float) - np.asarray(expected, dtype=float))
        assert (off <= tolerance["atol"] + tolerance["rtol"] * np.abs(np.asarray(expected))).all(), (
            got,
            expected,
        )

    def fixed(self, expected: Fixture) -> None:
        columns = {"estimate": "estimate", "se": "std_error", "df": "df", "stat": "statistic", "p": "p_value"}
        assert len(expected) == len(self.rows)
        for name, numbers in expected.items():
            for key, value in numbers.items():
                self.close(self.rows[self.ours.get(name, name)][columns[key]], value)

    def variance(self, expected: Fixture) -> None:
        got = {"Residual" if name == "residual" else name: v for name, v in self.fit.variances.items()}
        assert set(got) == set(expected)
        for name, value in expected.items():
            self.close(got[name], value)

    def loglik(self, expected: float) -> None:
        self.close(self.fit.log_likelihood, expected)

    def aic(self, expected: float) -> None:
        self.close(self.fit.glance()["aic"][0], expected)

    def vcov_fixed(self, expected: list[list[float]]) -> None:
        self.close(self.fit.fixed.covariance.tolist(), expected)

    def kenward_roger(self, expected: Fixture) -> None:
        rows = self.by_term(fitted(self.fixture, "kenward-roger")).values()
        columns = {"se": "std_error", "df": "df", "p": "p_value"}
        for key, values in expected.items():
            self.close([row[columns[key]] for row in rows], values)

    def emmeans(self, expected: Fixture) -> None:
        (factor,) = self.fit.marginals
        means = self.fit.means(factor)
        columns = {"mean": "estimate", "se": "std_error", "df": "df"}
        for key, values in expected.items():
            if key == "levels":
                assert means["term"].to_list() == [f"{factor} = {level}" for level in values]
            else:
                self.close(means[columns[key]].to_list(), values)

    def contrasts(self, expected: Fixture) -> None:
        """Compare pairs: emmeans has the earlier level minus the later one, we the reverse."""
        (factor,) = self.fit.marginals
        plain = self.fit.contrasts(factor)
        for key, values in expected.items():
            if key == "name":
                ours = [" - ".join(reversed(name.split(" - "))) for name in plain["contrast"]]
                assert ours == values
            elif key == "estimate":
                self.close((-plain["estimate"]).to_list(), values)
            elif key.startswith("p_"):
                adjust: Any = key.removeprefix("p_")
                rows = self.fit.contrasts(factor, adjust=adjust)
                self.close(rows["p_value" if adjust == "none" else "p_adjusted"].to_list(), values)
            else:
                self.close(plain[{"se": "std_error", "df": "df"}[key]].to_list(), values)

    def anova(self, expected: Fixture) -> None:
        row = self.fit.f_tests().row(0, named=True)
        numerator = float(re.findall(r"(\d+) numerator", row["method"])[0])
        got = {"F": row["statistic"], "numdf": numerator, "dendf": row["df"], "p": row["p_value"]}
        for key, value in expected.items():
            self.close(got[key], value)

    def singular(self, expected: bool) -> None:
        assert self.fit.singular is expected
        assert any(note.code == "singular" for note in self.fit.notes) is expected

    def fixed_equals_ols(self, expected: bool) -> None:
        ols = np.array(self.fixture["expected"]["ols"])
        assert bool(np.allclose(self.fit.fixed.estimate, ols, rtol=0, atol=TO_OLS)) is expected

    def ols(self, expected: list[float]) -> None:
        self.close(self.fit.fixed.estimate.tolist(), expected)

    def icc(self, factor: str, expected: float) -> None:
        self.close(self.fit.icc[factor], expected)

    def check(self, key: str, expected: Any) -> None:
        if key.startswith("icc_"):
            self.icc(key.removeprefix("icc_"), expected)
            return
        compare: Callable[[Any], None] | None = getattr(self, key, None)
        assert compare is not None, f"nothing compares {key!r}"
        compare(expected)


@pytest.mark.parametrize("fixture", fixtures())
def test_lmer(fixture: Fixture) -> None:
    compare = Compare(fixture)
    assert compare.fit.converged
    assert fixture["expected"]
    for key, expected in fixture["expected"].items():
        compare.check(key, expected)
