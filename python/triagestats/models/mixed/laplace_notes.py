"""What the reader of a fit by maximum likelihood must know of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from triagestats.models.mixed.laplace import LaplaceFit
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.results import Note

__all__ = ["laplace_notes"]

_FEW_ROWS: Final = 5
"""Rows a level below which the Laplace approximation makes a deviation visibly too small."""


def laplace_notes(matrix: MixedMatrix, fit: LaplaceFit) -> Iterator[Note]:
    """Notes on convergence, singular parts, and the approximation."""
    if not fit.converged:
        yield Note("not_converged", f"The fit did not converge: {fit.message}.", "caution")
    for part, singular in zip(matrix.random, fit.singular, strict=True):
        if singular:
            what = (
                f"The variance of {part.name} is estimated at 0"
                if part.width == 1
                else f"The covariance matrix of the effects of {part.name} is singular"
            )
            message = f"{what} (a singular fit), and counts as known in the errors of the rest."
            yield Note("singular", message, "caution")
    if matrix.family == "gaussian":
        return
    if fit.nodes == 1:
        yield from _attenuated(matrix)
    yield Note(
        "population",
        "Probabilities are averages over new levels of all random factors, drawn from their normal "
        "distributions.",
    )


def _attenuated(matrix: MixedMatrix) -> Iterator[Note]:
    """Parts with so few rows a level that the approximation shows."""
    sparse = [part.name for part in matrix.random if matrix.n_rows / part.n_levels < _FEW_ROWS]
    if sparse:
        remedy = " `nodes=15` avoids that." if len(matrix.random) == 1 and matrix.random[0].width == 1 else ""
        message = (
            f"{', '.join(sparse)}: with under {_FEW_ROWS} rows a level the Laplace approximation makes the "
            f"standard deviation too small.{remedy}"
        )
        yield Note("laplace", message, "caution")
