"""All coefficients of two raters, as functions of one set of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.agreement import functions as known
from triagestats.agreement.disagreement import alpha_of_pairs
from triagestats.agreement.functions import Coefficient, together
from triagestats.agreement.ratings import RatedPairs
from triagestats.agreement.scale import Scale
from triagestats.agreement.weights import agreement_weights, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Coefficient", "beside_kappa", "pair_coefficients", "together"]


def pair_coefficients(scale: Scale, *, weights: object = None) -> tuple[Coefficient, ...]:
    """The coefficients of two raters, of the counts of the k * k pairs of categories (row major).

    Parameters
    ----------
    scale
        The categories. Where they have an order there are also weighted kappa, alpha for ordinal and
        interval scales, the share within one level, and the direction of disagreement; levels are the
        categories of `scale`, one apart.
    weights
        Those of weighted kappa: `linear`, `quadratic` (the default of an ordered scale), or a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.agreement.coefficients import pair_coefficients, together
    >>> from triagestats.agreement.scale import plain_scale
    >>> found = pair_coefficients(plain_scale(2))
    >>> values = together(found)(np.array([20, 5, 10, 15]))  # one cluster, or (..., 4) for many
    >>> {one.name: round(float(value), 3) for one, value in zip(found, values)}["kappa"]
    0.4
    """
    size = scale.size
    equal = np.eye(size)
    found = [
        known.share_of_agreement("percent_agreement", "percent agreement", equal),
        known.share_of_agreement("disagreement", "disagreement rate", 1.0 - equal),
        known.kappa("kappa", "Cohen's kappa", equal),
        alpha_of_pairs("alpha_nominal", scale, "nominal"),
    ]
    if size > 1:
        found += [known.ac("ac1", "Gwet's AC1", equal), known.pabak(size)]
    if scale.ordered:
        chosen = "quadratic" if weights is None else weights
        weighted = agreement_weights(chosen, scale)
        near = (np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= 1).astype(np.float64)
        found += [
            known.kappa("weighted_kappa", f"weighted kappa ({name_of(chosen)})", weighted),
            alpha_of_pairs("alpha_ordinal", scale, "ordinal"),
            alpha_of_pairs("alpha_interval", scale, "interval"),
            known.share_of_agreement("within_1_level", "share within 1 level", near),
            known.direction(size),
        ]
    return tuple(found)


def beside_kappa(pairs: RatedPairs, weights: Array) -> dict[str, Any]:
    """What stands beside kappa: agreement observed and by chance, and coefficients without weights."""
    counts, size, n = pairs.counts, pairs.scale.size, pairs.n
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    expected = float((weights * np.outer(rows, columns) / n**2).sum())
    most = np.minimum(rows, columns).sum() / n
    scale = Scale(pairs.scale.labels, None, declared=True, numeric=False)
    simple = {}
    for one in (*pair_coefficients(scale), known.scott_pi("scott_pi", size)):
        value = float(one.evaluate(counts.reshape(-1)))
        simple[one.name] = None if np.isnan(value) else value
    return {
        "observed": float((weights * counts).sum() / n),
        "expected": expected,
        "std_error_null": None,
        "percent_agreement": simple["percent_agreement"],
        "pabak": simple.get("pabak"),
        "scott_pi": simple["scott_pi"],
        "gwet_ac1": simple.get("ac1"),
        "kappa_max": float((most - expected) / (1 - expected)) if expected < 1 else None,
        "categories": list(pairs.scale.labels),
        "raters": list(pairs.raters),
        "n_missing": pairs.n_missing,
    }
