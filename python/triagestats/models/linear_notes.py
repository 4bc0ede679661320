"""What a linear model says of itself: its convention in words, doubts, and errors that are undefined."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import defaults
from triagestats.labels import counted
from triagestats.models.covariance import Covariance
from triagestats.models.design_columns import Columns
from triagestats.models.matrix import ModelMatrix
from triagestats.models.sandwich import SmallSample, Vcov
from triagestats.models.within import is_nested, n_levels
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["constant_categories", "notes_of", "undefined_terms"]

_NO_ERROR: Final = 1e-16
"""A variance below this share of the one for independent rows is rounding."""


def constant_categories(columns: Columns) -> dict[str, Note]:
    """A note on each part of the formula that gives no regressor, as its categories have one level."""
    return {
        part: Note("collinear", f"{part} is left out: {said}.", "caution")
        for part, names in columns.parts.items()
        if not names and part != "1"
        for said in [
            ", ".join(
                f"{'it' if name == part else name} is {level!r} in every row"
                for name, level in columns.single.items()
                if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", part)
            )
            or "it gives no column"
        ]
    }


def undefined_terms(
    matrix: ModelMatrix,
    alone: Array,
    covariance: Covariance,
    vcov: Vcov,
    *,
    perfect: bool,
) -> dict[str, str]:
    """Terms whose error cannot be known, and why; `alone` are their variances for independent rows."""
    if perfect:
        why = "the fit is perfect: no residual is left that could show how far the estimate is off"
        return dict.fromkeys(matrix.terms, why)
    found = {}
    for j, term in enumerate(matrix.terms):
        if vcov == "CRV3" and not covariance.estimable[j]:
            found[term] = "it cannot be estimated without one of the clusters"
        elif not covariance.vcov[j, j] > _NO_ERROR * alone[j]:
            found[term] = (
                "its variance is not positive"
                if len(covariance.sizes) == 2
                else "its error comes out as 0: all clusters agree, or one of them alone decides it"
            )
    return found


def notes_of(
    matrix: ModelMatrix, covariance: Covariance, vcov: Vcov, small: SmallSample, *, given: bool, perfect: bool
) -> list[Note]:
    """The convention in words, and what makes the errors doubtful."""
    names, sizes = " and ".join(matrix.cluster_names), covariance.sizes
    notes = [_convention(matrix, covariance, vcov, small)]
    if sizes and not given:
        notes.insert(0, Note("cluster", f"The errors are clustered by {names}."))
    if perfect:
        notes.append(
            Note(
                "perfect_fit",
                "The fit is perfect: no residual is left, and the errors are undefined.",
                "caution",
            )
        )
    if not sizes and matrix.clusters and n_levels(matrix.clusters[0]) < len(matrix.y):
        message = (
            f"{vcov} takes {len(matrix.y):,} rows as independent, but they share "
            f"{n_levels(matrix.clusters[0]):,} clusters ({matrix.cluster_names[0]}): the errors are too "
            "small where rows of a cluster are alike. vcov='CRV1' respects them."
        )
        notes.append(Note("independence", message, "caution"))
    if sizes and min(sizes) < defaults.FEW_CLUSTERS:
        counts = " and ".join(
            f"{size:,} {name}" for size, name in zip(sizes, matrix.cluster_names, strict=True)
        )
        message = (
            f"{counts}: with fewer than {defaults.FEW_CLUSTERS} clusters {vcov} errors may be too small; see "
            "wild_bootstrap" + (", CRV2 or CRV3." if vcov == "CRV1" and len(sizes) == 1 else ".")
        )
        notes.append(Note("few_clusters", message, "caution"))
    alone = [term for term, fine in zip(matrix.terms, covariance.estimable, strict=True) if not fine]
    if alone and vcov != "CRV3":
        message = (
            f"{', '.join(alone)} cannot be estimated without one of the clusters, whose own variation {vcov} "
            "does not see: such errors are far too small."
        )
        notes.append(Note("one_cluster", message, "caution"))
    if sizes and len(matrix.terms) > min(sizes) - 1:
        message = (
            f"{counted(len(matrix.terms), 'regressor')} and {min(sizes)} clusters: the covariance matrix has "
            f"rank {min(sizes) - 1} at most, so that the coefficients cannot be tested together, and their "
            "single errors are not to be trusted."
        )
        notes.append(Note("many_regressors", message, "caution"))
    if covariance.repaired:
        message = f"The two-way matrix is not positive; {covariance.repaired}."
        notes.append(Note("repaired", message, "caution"))
    elif len(sizes) == 2 and _lowest_eigenvalue(covariance.vcov) < -1e-10:
        message = (
            "The two-way matrix has a negative eigenvalue, and is left as it is: a combination of "
            "coefficients may have no error."
        )
        notes.append(Note("not_positive", message, "caution"))
    return notes


def _lowest_eigenvalue(vcov: Array) -> float:
    """Of the matrix as correlations."""
    scale = np.sqrt(np.abs(np.diag(vcov)))
    scale[scale == 0] = 1.0
    return float(np.linalg.eigvalsh(vcov / np.outer(scale, scale)).min())


def _convention(matrix: ModelMatrix, covariance: Covariance, vcov: Vcov, small: SmallSample) -> Note:
    """Factor, K and degrees of freedom as they were used."""
    n, k = len(matrix.y), covariance.n_parameters
    rows = f"{'N' if vcov in ('iid', 'HC1') else '(N-1)'}/(N-K)" if small.k else ""
    group = "G/(G-1)" if small.g else ""
    if vcov == "CRV3":
        rows, group = "", "(G-1)/G" if small.g else ""
    elif vcov == "CRV2":
        rows = group = ""
    elif vcov in ("iid", "HC1"):
        group = ""
    said = " ".join(filter(None, (group, rows))) or "no factor"
    numbers = ", ".join(
        [f"G = {' and '.join(f'{size:,}' for size in covariance.sizes)}"] * bool(covariance.sizes)
        + [f"N = {n:,}"]
        + [f"K = {k:,}"] * bool(rows)
    )
    factors = ", ".join(f"{factor:.6g}" for factor in dict.fromkeys(covariance.factors))
    effects = _effects(matrix, covariance, small) if rows else ""
    way = "Satterthwaite's df for each" if covariance.leverage is not None else f"df = {covariance.df:g}"
    which = f" ({small.two_way} G of the two)" if len(covariance.sizes) == 2 and group else ""
    center = f", centred at the {small.center}" if vcov == "CRV3" else ""
    message = f"{vcov}{center}: factor {factors} = {said}{which}, {numbers}{effects}; t, {way}."
    return Note("convention", message)


def _effects(matrix: ModelMatrix, covariance: Covariance, small: SmallSample) -> str:
    """What K counts of each fixed effect."""
    if not matrix.absorbed:
        return ""
    if small.effects == "none":
        return " (no fixed effect counted)"
    clusters = matrix.clusters if covariance.sizes else ()
    words = []
    for codes, name in zip(matrix.absorbed, matrix.absorbed_names, strict=True):
        nested = small.effects == "nonnested" and any(is_nested(codes, outer) for outer in clusters)
        levels = counted(n_levels(codes), "level")
        words.append(
            f"{name}: {levels}, nested in the clusters, counted as 1" if nested else f"{name}: {levels}"
        )
    return f" ({'; '.join(words)})"
