"""Mixed models by Laplace and quadrature against lme4, glmmTMB and ordinal, from the reference data.

Of `mixed.json` this reads all fixtures. Those of the fixed part that have their own tolerance keep it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from triagestats.models.formula import parse_formula
from triagestats.models.mixed.laplace import LaplaceFit, fit_laplace
from triagestats.models.mixed.matrix import Family, MixedMatrix, RandomPart

SHARED: Final = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared")
ORACLES: Final = SHARED / "oracles"
ITERATED: Final = {"rtol": 2e-8}, {"rtol": 2e-5}
"""Of estimates and errors of `glm`, which stops 1e-8 before the logarithm of 7/9 that is its intercept, and
whose weights are those of the iteration before the last."""
LESS: Final = 2e-8
"""By how much a log-likelihood may be below that of R, whose search stops at about 1e-6."""
STOPPED: Final = 5e-6
"""By how much a log-likelihood may be above that of R."""

Fixture = dict[str, Any]


def fixtures() -> list[Any]:
    path = ORACLES / "mixed.json"
    if not path.exists():
        reason = f"reference data {path} is not there; set TRIAGESTATS_SHARED to its folder"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    return [pytest.param(fixture, id=fixture["name"]) for fixture in json.loads(path.read_text())["fixtures"]]


def table(given: Fixture) -> dict[str, Any]:
    """Return the columns, with the one that `derived` describes."""
    data = {
        name: np.array(column) for name, column in json.loads((ORACLES / given["data"]).read_text()).items()
    }
    if "derived" in given:
        pattern = r"(\w+) = ([\d.]+)\*\{(.*?)\}\[(\w+)\] \+ cycle\(\[(.*?)\]\) over rows"
        read = re.fullmatch(pattern, given["derived"])
        assert read is not None, f"cannot read {given['derived']!r}"
        name, factor, levels, column, cycle = read.groups()
        value = {k: float(v) for k, v in (pair.split(":") for pair in levels.split(","))}
        steps = np.resize([float(step) for step in cycle.split(",")], len(data[column]))
        data[name] = float(factor) * np.array([value[level] for level in data[column]]) + steps
    return data


def family(source: str) -> Family:
    if "clmm" in source:
        return "ordinal"
    return "gaussian" if re.search(r"\blmer\b", source) else "binomial"


def matrix_of(fixture: Fixture, *, collapsed: bool = False) -> MixedMatrix:
    """Rows, or cells, of the formula of a fixture: `y ~ a + (1|g) + (1|h)`."""
    formula, data = fixture["options"]["formula"], table(fixture["input"])
    kind = family(fixture["source"])
    if "rating" in data and formula.startswith("r "):
        data["r"] = data.pop("rating")
    parsed = parse_formula(formula)
    y = np.asarray(data[parsed.outcome])
    levels: tuple[str, ...] = ()
    if kind == "ordinal":
        found, y = np.unique(y, return_inverse=True)
        levels = tuple(map(str, found))
    columns, terms = [np.ones(len(y))], ["(Intercept)"]
    for name in (part.strip() for part in parsed.fixed.split("+")):
        column = data[name]
        if column.dtype.kind == "U":
            for level in sorted(set(column))[1:]:
                columns.append(column == level)
                terms.append(f"{name}{level}")
        else:
            columns.append(column)
            terms.append(name)
    x = np.column_stack(columns).astype(float)
    if kind == "ordinal":
        x, terms = x[:, 1:], terms[1:]
    groups = [np.unique(data[term.group.strip()], return_inverse=True) for term in parsed.random]
    y, counts, codes = y.astype(float), np.ones(len(y)), np.column_stack([x[:, :0], *(g[1] for g in groups)])
    if collapsed:
        key = np.column_stack([x, codes, *([y] if kind == "ordinal" else [])])
        _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(which.ravel()).astype(float)
        y = y[first] if kind == "ordinal" else np.bincount(which.ravel(), y)
        x, codes = x[first], codes[first]
    random = tuple(
        RandomPart(
            term.group.strip(),
            (term.group.strip(),),
            tuple(map(str, group[0])),
            codes[:, k].astype(np.int64),
            np.ones((len(y), 1)),
            ("(Intercept)",),
        )
        for k, (term, group) in enumerate(zip(parsed.random, groups, strict=True))
    )
    return MixedMatrix(kind, y, counts, x, tuple(terms), random, levels, int(counts.sum()))


def fitted(fixture: Fixture, matrix: MixedMatrix) -> LaplaceFit:
    nodes = re.search(r"nAGQ=(\d+)", fixture["source"])
    return fit_laplace(matrix, nodes=int(nodes[1]) if nodes else 1, reml=fixture["options"].get("REML", True))


def check(fit: LaplaceFit, matrix: MixedMatrix, fixture: Fixture) -> None:
    """Compare all that the fixture has of a fit."""
    expected, tolerance = fixture["expected"], fixture["tolerance"]

    def close(actual: Any, wanted: Any, **given: float) -> None:
        np.testing.assert_allclose(actual, wanted, **{**tolerance, **given})

    assert fit.converged
    errors = np.sqrt(np.diag(fit.vcov))
    n = len(fit.thresholds)
    for k, term in enumerate(matrix.terms):
        of_term = {**expected.get("fixed", {}), **expected.get("beta", {})}.get(term)
        if isinstance(of_term, dict):
            of_estimate, of_error = ({}, {}) if matrix.random else ITERATED
            close(fit.coefficients[k], of_term["estimate"], **of_estimate)
            close(errors[n + k], of_term["se"], **of_error)
        elif of_term is not None:
            close(fit.coefficients[k], of_term)
    if n:
        close(fit.thresholds, list(expected.get("thresholds", expected.get("theta")).values()))
    if "threshold_se" in expected:
        close(errors[:n], expected["threshold_se"])
    variances = expected.get("variance", {"scenario": expected.get("variance_scenario")})
    for random, covariance, singular in zip(matrix.random, fit.covariances, fit.singular, strict=True):
        close(covariance[0, 0], variances[random.name])
        assert singular == (variances[random.name] < 1e-6)
    if fit.sigma is not None:
        close(fit.sigma**2, variances["Residual"])
    if "loglik" in expected:
        assert -LESS < fit.loglik - expected["loglik"] < STOPPED
        if "aic" in expected:
            close(2 * fit.n_parameters - 2 * fit.loglik, expected["aic"])
    for random, modes in zip(matrix.random, fit.modes, strict=True):
        if (ranef := expected.get(f"ranef_{random.name}")) is not None:
            assert list(random.levels) == list(ranef)
            close(modes[:, 0], list(ranef.values()), atol=1e-4 * np.abs(list(ranef.values())).max())
    if "vcov_fixed" in expected:
        close(fit.vcov[: len(matrix.terms), : len(matrix.terms)], expected["vcov_fixed"])
    if "ols" in expected:
        means = [fit.coefficients[0], *fit.coefficients[1:]]
        close(means, expected["ols"], rtol=1e-9)


@pytest.mark.parametrize("fixture", fixtures())
def test_fits_agree(fixture: Fixture) -> None:
    matrix = matrix_of(fixture)
    check(fitted(fixture, matrix), matrix, fixture)


@pytest.mark.parametrize("fixture", [f for f in fixtures() if f.id in ("glm_no_random", "absent")])
def test_proportions_have_a_closed_form(fixture: Fixture) -> None:
    matrix = matrix_of(fixture)
    fit = fitted(fixture, matrix)
    shares = [matrix.y[matrix.x[:, 1] == k].mean() for k in (0, 1)]
    np.testing.assert_allclose(
        np.cumsum(fit.coefficients), np.log(np.divide(shares, np.subtract(1, shares))), rtol=1e-12
    )


@pytest.mark.parametrize("fixture", fixtures())
def test_collapsed_cells_agree_with_rows(fixture: Fixture) -> None:
    rows = matrix_of(fixture)
    if rows.family == "gaussian":
        pytest.skip("rows of numbers do not collapse")
    cells = matrix_of(fixture, collapsed=True)
    assert cells.counts.sum() == len(rows.y)
    check(fitted(fixture, cells), cells, fixture)


@pytest.mark.parametrize("fixture", [f for f in fixtures() if f.id in ("glmer_crossed_laplace", "absent")])
def test_the_likelihood_ratio_and_glmmtmb_agree(fixture: Fixture) -> None:
    matrix = matrix_of(fixture)
    fit = fitted(fixture, matrix)
    without = MixedMatrix(
        matrix.family,
        matrix.y,
        matrix.counts,
        matrix.x[:, :1],
        matrix.terms[:1],
        matrix.random,
        (),
        matrix.n_rows,
    )
    ratio = 2 * (fit.loglik - fit_laplace(without).loglik)
    assert ratio == pytest.approx(fixture["expected"]["lrt_chi2"], rel=1e-5)
    other = fixture["expected"]["agreement"] if "agreement" in fixture["expected"] else fixture["agreement"]
    assert fit.loglik == pytest.approx(other["glmmTMB_loglik"], abs=1e-7)
    np.testing.assert_allclose(fit.coefficients, other["glmmTMB_fixed"], rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.vcov))[:2], other["glmmTMB_se"], rtol=1e-5)
