"""Every fixture of fe_lpm.json: least squares with fixed effects, as fixest and clubSandwich have it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.models.sandwich import count_parameters

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[3] / "shared") / "oracles"
FAMILY = SHARED / "fe_lpm.json"

if FAMILY.exists():
    FIXTURES: list[dict[str, Any]] = json.loads(FAMILY.read_text(encoding="utf-8"))["fixtures"]
    CASES = [pytest.param(fixture, id=fixture["name"]) for fixture in FIXTURES]
else:
    reason = f"reference data {FAMILY} is not there; set TRIAGESTATS_SHARED to its folder"
    CASES = [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]

# fixest's `ssc` in our words. It repairs negative eigenvalues wherever there are any.
SMALL: dict[str, dict[str, object]] = {
    "default": {},
    "K_none": {"effects": "none"},
    "K_full": {"effects": "full"},
    "K_nonnested": {},
    "no_K_adj": {"k": False},
    "no_G_adj": {"g": False},
    "no_adj": {"k": False, "g": False},
    "G.df='min'": {"two_way": "min"},
    "G.df='conventional'": {"two_way": "conventional"},
}
VCOV: dict[str, tuple[str, Any]] = {
    "iid": ("iid", None),
    "hc1": ("HC1", None),
    "crv1_scenario": ("CRV1", "scenario"),
    "twoway_scenario_model": ("CRV1", ["scenario", "model"]),
}
# clubSandwich's names: kind, and the factors that it has.
CLUB: dict[str, tuple[str, dict[str, object]]] = {
    "CR0": ("CRV1", {"k": False, "g": False}),
    "CR1": ("CRV1", {"k": False}),
    "CR1S": ("CRV1", {"effects": "full"}),
    "CR2": ("CRV2", {}),
    "CR3": ("CRV3", {"g": False}),
}
OPTIONS = {"formula", "vcov", "weights", "ssc", "singletons", "fixef.rm", "cluster"}


@pytest.mark.parametrize("fixture", CASES)
def test_fe_lpm(fixture: dict[str, Any]) -> None:
    assert set(fixture["options"]) <= OPTIONS, "an option that this test does not know"
    assert set(fixture["input"]) <= {"data", "derived", "filter"}
    data = _data(fixture["input"])
    expected = fixture["expected"]
    got = _coefficients(fixture["options"], data) if "coef" in expected else _clubs(fixture["options"], data)
    rtol, atol = fixture["tolerance"]["rtol"], fixture["tolerance"]["atol"]
    _compare(got, expected, rtol, atol, fixture["name"])


def _data(given: dict[str, Any]) -> pl.DataFrame:
    data = pl.DataFrame(json.loads((SHARED / given["data"]).read_text(encoding="utf-8")))
    if given.get("derived"):
        assert given["derived"] == "x2b = 2*x2 - 3"
        data = data.with_columns(x2b=2 * pl.col("x2") - 3)
    if given.get("filter"):
        text = re.fullmatch(r"drop scenarios whose name contains '(\w+)'", given["filter"])
        assert text is not None
        data = data.filter(~pl.col("scenario").str.contains(text[1]))
    return data


def _coefficients(options: dict[str, Any], data: pl.DataFrame) -> dict[str, Any]:
    """A fit by fixest's conventions, in the shape of the fixtures."""
    kind, cluster = VCOV[options["vcov"]]
    ssc = "default" if "default" in options.get("ssc", "default") else options["ssc"]
    fit = ts.lpm(
        options["formula"],
        data,
        cluster=cluster,
        vcov=kind,  # type: ignore[arg-type]  # a choice of the table above
        weights="w" if options.get("weights") else None,
        singletons="drop" if options.get("fixef.rm") == "singletons" else "keep",
        small_sample={**SMALL[ssc], "repair": "eigenvalues"},
    )
    rows = fit.tidy().iter_rows(named=True)
    covariance = fit.covariance
    clusters = fit.matrix.clusters if kind == "CRV1" else ()
    return {
        "coef": {
            row["term"]: {
                "estimate": row["estimate"],
                "se": row["std_error"],
                "t": row["statistic"],
                "p": row["p_value"],
                "ci95": [row["conf_low"], row["conf_high"]],
            }
            for row in rows
        },
        "vcov": fit.vcov.tolist(),
        "psd_fixed": covariance.repaired is not None,
        "se_unfixed": np.sqrt(np.diag(covariance.unrepaired)).tolist(),
        "nobs": len(fit.matrix.y),
        "df_t": covariance.df,
        # fixest's degrees_freedom(type = "k") leaves nested effects out whatever `ssc` says.
        "df_k": count_parameters(len(fit.terms), fit.matrix.absorbed, clusters, "nonnested"),
        "dropped_collinear": list(fit.dropped) or None,
    }


def _clubs(options: dict[str, Any], data: pl.DataFrame) -> dict[str, Any]:
    """Fits by clubSandwich's conventions, and the cluster jackknife."""

    def fit(vcov: Any, **small: object) -> ts.LinearModel:
        return ts.lpm(
            options["formula"],
            data,
            cluster=options["cluster"],
            vcov=vcov,
            singletons="keep",
            small_sample=small,
        )

    jackknife, around_mean = fit("CRV3"), fit("CRV3", center="mean")
    got: dict[str, Any] = {
        "terms": list(jackknife.terms),
        "estimate": jackknife.estimates.tolist(),
        "clusters": jackknife.n_clusters,
        "jackknife_centered_full_se": jackknife.std_errors.tolist(),
        "jackknife_centered_mean_se": around_mean.std_errors.tolist(),
        "p_t_Gminus1_jackknife": jackknife.tidy()["p_value"].to_list(),
    }
    for name, (vcov, small) in CLUB.items():
        found = fit(vcov, **small, df="satterthwaite")
        tidy = found.tidy()
        got[name] = {
            "se": tidy["std_error"].to_list(),
            "df_satt": tidy["df"].to_list(),
            "p_satt": tidy["p_value"].to_list(),
        }
    return got


def _compare(got: Any, expected: Any, rtol: float, atol: float, where: str) -> None:
    """Every key and number of `expected`; null stands for what is undefined."""
    if isinstance(expected, dict):
        unknown = set(expected) - set(got)
        assert not unknown, f"{where}: nothing is computed for {sorted(unknown)}"
        for key, value in expected.items():
            _compare(got[key], value, rtol, atol, f"{where}/{key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for place, value in enumerate(expected):
            _compare(got[place], value, rtol, atol, f"{where}/{place}")
    elif expected is None or isinstance(expected, bool | str):
        assert got == expected, where
    else:
        assert got is not None, where
        assert abs(got - expected) <= atol + rtol * abs(expected), f"{where}: {got} against {expected}"
