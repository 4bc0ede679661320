"""Signed ranks of cells, and clustered differences as the folders recompute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from triagestats.defaults import N_RESAMPLES
from triagestats.estimands import Difference
from triagestats.permute_table import permutation_tests
from triagestats.replicate.clusters import by_rows, of_row
from triagestats.replicate.entry import Clustered, Found
from triagestats.replicate.fits import LEVEL, Fit
from triagestats.replicate.montecarlo import Band, band_of_p, band_of_spread, bands_of_ends
from triagestats.replicate.published import Published
from triagestats.results import Test
from triagestats.signed_ranks import wilcoxon_signed_rank
from triagestats.table import ResponseTable

__all__ = ["clustered_block", "resampled_test", "signed_ranks"]


def signed_ranks(
    wide: pl.DataFrame, level: str, reference: str, *, clusters: str, flip: bool = False
) -> tuple[dict[str, Any], Test]:
    """Signed ranks of two columns with zeros dropped and the normal law, as scipy has them; and the test.

    With `flip` one sign is drawn a cluster, for all of its cells.
    """
    x, y = wide[level], wide[reference]
    if flip:
        test = wilcoxon_signed_rank(x, y, clusters=wide[clusters], zero_method="wilcox", conf_level=None)
        return {}, test

    def ranked(**options: Any) -> Test:
        return wilcoxon_signed_rank(x, y, method="normal", conf_level=None, **options)

    test = ranked(zero_method="wilcox")
    found = {
        "p": test.p_value,
        "W": test.details["t_min"],
        "n_cells": wide.height,
        "n_pos": test.details["n_positive"],
        "n_neg": test.details["n_negative"],
        "n_zero": test.details["n_zero"],
        "mean_difference": float(np.mean(x.to_numpy() - y.to_numpy())),
        "p_pratt": ranked(zero_method="pratt").p_value,
        "p_continuity_corrected": ranked(zero_method="wilcox", correction=True).p_value,
    }
    return found, test


def clustered_block(
    published: Published, table: ResponseTable, difference: Difference, cluster: str
) -> Found:
    """A difference over matched rows with its errors by cluster: jackknifed, resampled, and flipped."""
    asked = [difference]
    label = difference.label
    fit = by_rows(table, asked)
    row = Fit(fit).row(label)
    tests = permutation_tests(table, estimands=asked, match="row", weights="row").tidy()
    (test,) = tests.filter(pl.col("model").is_null()).iter_rows(named=True)
    drawn = Fit(fit.with_interval("percentile"))
    resampled = drawn.row(label)
    value = {
        "estimate": row["estimate"],
        "n_rows": row["n_rows"],
        "n_clusters": row["n_clusters"],
        "bootstrap_95ci": [resampled["conf_low"], resampled["conf_high"]],
        "bootstrap_se": resampled["std_error"],
        "sign_flip_p": test["p_value"],
    }
    linear = len(set(_sizes(table, difference, cluster))) == 1
    if linear:  # clusters of one size: the jackknife of the mean is its linearised error
        value |= {"cr1_se": row["std_error"], "cr1_t_95ci": [row["conf_low"], row["conf_high"]]}
    bands: dict[str, Band] = drawn.bands("bootstrap_95ci", label, None, published.n_replicates)
    if (source := published.n_replicates) is not None:
        bands["bootstrap_se"] = band_of_spread(resampled["std_error"], source, fit.n_resamples)
        if (flips := _flips_of(published)) is not None:
            library = fit.n_resamples if "drawn" in test["method"] else None
            bands["sign_flip_p"] = band_of_p(test["p_value"], flips, library)
    answer = of_row(f"{difference.level} - {difference.reference}", row, cluster, p_value=test["p_value"])
    note = (
        ""
        if linear
        else "the cluster jackknife of a ratio differs from the linearised CR1 error in the third digit"
    )
    return Found(value, bands=bands, clustered=(answer,), note=note)


def _sizes(table: ResponseTable, difference: Difference, cluster: str) -> list[int]:
    """Matched rows in each cluster."""
    frame = table.frame.filter(pl.col("score").is_not_null())
    keys = [name for name in ("scenario", "model", "variant", "repetition") if name in frame.columns]
    both = (
        frame.filter(pl.col("condition").is_in([difference.level, difference.reference]))
        .group_by(*keys, *([cluster] if cluster not in keys else []))
        .agg(pl.col("condition").n_unique().alias("sides"))
        .filter(pl.col("sides") == 2)
    )
    return both.group_by(cluster).len()["len"].to_list()


def _flips_of(published: Published) -> int | None:
    """Sign flips that the folder drew; None where it enumerated them."""
    how = (published.recomputed or {}).get("sign_flip_how", "")
    number = how.split(" random")[0].replace(",", "")
    return int(number) if number.isdigit() else None


def resampled_test(published: Published, test: Callable[[float], Test], answer: Clustered) -> Found:
    """An estimate with a percentile interval by cluster, which is drawn anew at each level from one seed."""
    found = test(LEVEL)
    bands: dict[str, Band] = {}
    value = {
        "estimate": found.estimate,
        "n_clusters": answer.n_clusters,
        "bootstrap_95ci": [found.conf_low, found.conf_high],
    }
    if (source := published.n_replicates) is not None:
        ends = bands_of_ends(lambda level: _ends(test(level)), LEVEL, source, N_RESAMPLES)
        bands = {f"bootstrap_95ci/{place}": band for place, band in enumerate(ends)}
    return Found(value, bands=bands, clustered=(answer,))


def _ends(test: Test) -> tuple[float | None, float | None]:
    return test.conf_low, test.conf_high
