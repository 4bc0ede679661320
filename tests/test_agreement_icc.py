"""Intraclass correlations: by analysis of variance, forms, invariances, limits, and clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-10  # rounding of sums of squares
FORMS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")
RATINGS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
FLAT = [[1, 3], [3, 1], [2, 2], [1, 3], [3, 1]]  # every unit has the mean 2


def rated(n: int, m: int, seed: int) -> np.ndarray:
    """Units of variance 4 with residuals of variance 1, and raters apart."""
    draw = np.random.default_rng(seed)
    return draw.normal(0, 2, (n, 1)) + draw.normal(0, 1, (n, m)) + np.arange(m)


@pytest.mark.parametrize("form", FORMS)
def test_spellings(form: str) -> None:
    short = form.replace("(", "").replace(",1)", "").replace(",k)", "k").replace(",", "")
    values = {
        ts.icc(RATINGS, form=spelling).estimate for spelling in (form, short, form.lower(), f" {form} ")
    }
    assert len(values) == 1
    assert ts.icc(RATINGS, form=form).estimand == form


@pytest.mark.parametrize("form", FORMS)
def test_invariances(form: str) -> None:
    plain = ts.icc(RATINGS, form=form)
    moved = ts.icc(np.array(RATINGS)[::-1, ::-1] * 10 + 1_000, form=form)
    for name in ("estimate", "statistic", "p_value", "conf_low", "conf_high"):
        assert getattr(moved, name) == pytest.approx(getattr(plain, name), rel=1e-8)


def test_raters_apart_matter_to_agreement_not_to_consistency() -> None:
    shifted = np.array(RATINGS) + np.array([0, 5, 10, 15])
    assert ts.icc(shifted, form="ICC3").estimate == pytest.approx(
        ts.icc(RATINGS, form="ICC3").estimate, abs=EXACT
    )
    assert ts.icc(shifted, form="ICC2").estimate < ts.icc(RATINGS, form="ICC2").estimate  # type: ignore[operator]


def test_average_forms_follow_spearman_brown() -> None:
    for model in "123":
        single = ts.icc(RATINGS, form=f"ICC({model},1)")
        average = ts.icc(RATINGS, form=f"ICC({model},k)")
        for name in ("estimate", "conf_low", "conf_high"):
            value = getattr(single, name)
            assert getattr(average, name) == pytest.approx(4 * value / (1 + 3 * value), abs=EXACT)


def test_f_is_that_of_an_analysis_of_variance() -> None:
    one_way = stats.f_oneway(*np.array(RATINGS, dtype=float))
    test = ts.icc(RATINGS, form="ICC(1,1)")
    assert test.statistic == pytest.approx(one_way.statistic, rel=EXACT)
    assert test.p_value == pytest.approx(one_way.pvalue, rel=1e-8)
    assert test.alternative == "greater"


def test_p_value_deep_in_the_tail() -> None:
    test = ts.icc(rated(400, 3, 1), form="ICC(3,1)")
    assert test.p_value is not None
    assert 0 < test.p_value < 1e-100


def test_the_interval_covers_the_truth_it_should() -> None:
    """ICC(1,1) of variances 4 and 1 is 0.8; 95 % intervals miss it in about 10 of 200 samples."""
    draw = np.random.default_rng(2)
    missed = 0
    for _ in range(200):
        values = draw.normal(0, 2, (20, 1)) + draw.normal(0, 1, (20, 3))
        test = ts.icc(values, form="ICC(1,1)")
        missed += not test.conf_low < 0.8 < test.conf_high  # type: ignore[operator]
    assert 3 <= missed <= 20  # a binomial of 200 and 0.05 lies there with probability 0.996


@pytest.mark.parametrize(("form", "value"), [("ICC1", -1), ("ICC2", -5 / 3), ("ICC3", -1)])
def test_negative_estimates_are_not_clipped(form: str, value: float) -> None:
    test = ts.icc(FLAT, form=form)
    assert test.estimate == pytest.approx(value, abs=EXACT)
    assert (test.statistic, test.p_value) == (0, 1)
    assert test.conf_low is None
    assert [note.code for note in test.notes] == ["degenerate"]


@pytest.mark.parametrize("form", FORMS[3:])
def test_a_denominator_that_is_not_positive_is_undefined(form: str) -> None:
    test = ts.icc(FLAT, form=form)
    assert test.estimate is test.p_value is None
    assert test.undefined is not None
    assert f"{form} divides by is not positive" in test.undefined


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [3, 0.1])
def test_equal_ratings_are_undefined(form: str, value: float) -> None:
    test = ts.icc([[value] * 3] * 4, form=form)
    assert test.estimate is test.statistic is test.p_value is None
    assert test.undefined == "All ratings are equal, so that there is no variance to share."


@pytest.mark.parametrize("form", FORMS)
def test_raters_who_agree_exactly(form: str) -> None:
    test = ts.icc([[0.1, 0.1], [0.7, 0.7], [0.3, 0.3]], form=form)
    assert test.estimate == pytest.approx(1, abs=EXACT)
    assert test.statistic is test.p_value is test.conf_low is None
    assert [note.code for note in test.notes] == ["degenerate"]


@pytest.mark.parametrize("form", FORMS)
def test_resampled_units_read_the_same_coefficient(form: str) -> None:
    values = rated(40, 3, 3)
    test = ts.icc(values, form=form, interval="jackknife-t")
    without = np.array(
        [ts.icc(np.delete(values, i, axis=0), form=form).estimate for i in range(40)], dtype=float
    )
    error = np.sqrt(39 / 40 * ((without - without.mean()) ** 2).sum())
    assert test.details["std_error"] == pytest.approx(error, rel=1e-7)
    assert test.estimate == ts.icc(values, form=form).estimate


def test_clusters() -> None:
    values = np.repeat(rated(30, 3, 4), 2, axis=0)
    test = ts.icc(values, form="ICC(2,1)", clusters=np.repeat(np.arange(30), 2), n_resamples=999)
    naive = ts.icc(values, form="ICC(2,1)")
    assert test.details["n_clusters"] == 30
    assert test.p_value is test.statistic is None
    assert test.conf_low < test.estimate < test.conf_high  # type: ignore[operator]
    assert test.estimate == naive.estimate


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.icc(RATINGS, form="ICC(4,1)"), "`form` must be one of 'ICC(1,1)'"),
        (lambda: ts.icc(RATINGS, form=2), "`form` must be one of"),
        (lambda: ts.icc([[1, 2, None], [1, 2, 3]], form="ICC1"), "missing='omit'"),
        (lambda: ts.icc([[1, 2]], form="ICC1"), "has 1 unit, and variance between units needs two"),
        (lambda: ts.icc([["a", "b"], ["b", "b"]], form="ICC1"), "must hold numbers"),
        (lambda: ts.icc([[1, float("inf")], [1, 2]], form="ICC1"), "infinite"),
        (lambda: ts.icc([[1], [2]], form="ICC1"), "two at least"),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)


def test_there_is_no_default_form() -> None:
    with pytest.raises(TypeError, match="form"):
        ts.icc(RATINGS)  # type: ignore[call-arg]


def test_incomplete_units_are_omitted_and_counted() -> None:
    test = ts.icc([*RATINGS, [1, None, 2, 3]], form="ICC3", missing="omit")
    assert test.estimate == ts.icc(RATINGS, form="ICC3").estimate
    assert test.details["n_missing"] == 1
