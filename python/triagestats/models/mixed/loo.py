"""Leave-one-out cross-validation of a Bayesian mixed model: by scenario, cell or row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from scipy import special

from triagestats.errors import ArgumentError
from triagestats.labels import counted
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.held_out import level_log_likelihood, nested_in
from triagestats.models.mixed.likelihood import blocks, log_density, predictor
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.naming import grouped
from triagestats.models.mixed.psis import smoothed_weights
from triagestats.models.mixed.thinning import thinned
from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LeaveOneOut", "leave_one_out"]

_MOST_SHAPE: Final = 0.7
_FEWEST_DRAWS: Final = 200
_NESTED_NUMBERS: Final = 8_000_000
"""Of cells times draws, where effects within effects are integrated: more would take minutes."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeaveOneOut(Shown):
    """Expected log predictive density of what is left out, by Pareto-smoothed importance sampling.

    Attributes
    ----------
    unit
        What is left out at once: a random part by name, `cell` or `row`.
    elpd, std_error
        Sum over the units, and its standard error.
    p_loo
        Effective number of parameters: what the density of the fitted data has more.
    pointwise
        Density of each unit (of each kind of row of a cell, for rows), shape (k,).
    multiplicity
        How many units each stands for, shape (k,).
    shapes
        Shape of the tail of the weights of each, shape (k,); above 0.7 it is not reliable.
    n_draws
        Draws that were used.
    notes
        Choices made and doubts.
    """

    unit: str
    elpd: float
    std_error: float
    p_loo: float
    pointwise: Array
    multiplicity: Array
    shapes: Array
    n_draws: int
    n_rows: int
    notes: tuple[Note, ...]

    @property
    def n_units(self) -> int:
        """Units that are left out in turn."""
        return int(self.multiplicity.sum())

    def tidy(self) -> pl.DataFrame:
        """Two rows with the columns of the glossary: the expected density, and the number of parameters."""
        doubts = " ".join(note.message for note in self.notes if note.level == "caution") or None
        shared = {
            "term": self.unit,
            "status": "warning" if doubts else "ok",
            "reason": doubts,
            "method": "Pareto-smoothed importance sampling",
            "n_rows": self.n_rows,
        }
        return tidy_frame(
            [
                {
                    "estimand": "expected log predictive density",
                    "estimate": self.elpd,
                    "std_error": self.std_error,
                    **shared,
                },
                {"estimand": "effective number of parameters", "estimate": self.p_loo, **shared},
            ]
        )

    def glance(self) -> pl.DataFrame:
        """One row: the sums and how reliable they are."""
        return pl.DataFrame(
            {
                "unit": [self.unit],
                "n_units": [self.n_units],
                "elpd": [self.elpd],
                "std_error": [self.std_error],
                "p_loo": [self.p_loo],
                "n_unreliable": [int(self.multiplicity[self.shapes > _MOST_SHAPE].sum())],
                "worst_shape": [float(self.shapes.max())],
                "n_draws": [self.n_draws],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Estimates, settings and notes as plain JSON values."""
        return as_json(self, estimates=self.tidy())

    def __repr__(self) -> str:
        head = (
            f"Leave one {self.unit} out: expected log predictive density {self.elpd:.1f}, error "
            f"{self.std_error:.1f}; {self.p_loo:.1f} effective parameters; {self.n_units:,} units"
        )
        return "\n".join([head, *(f"  note: {note.message}" for note in self.notes)])


def leave_one_out(
    matrix: MixedMatrix, draws: Draws, *, unit: str, efficiency: float = 1.0, most_draws: int = 1_000
) -> LeaveOneOut:
    """Leave one unit out at a time.

    Parameters
    ----------
    matrix, draws
        The model and its draws.
    unit
        The name of a random part such as `scenario`: all rows of a level at once, predicted as a new level,
        with its effects integrated out. `cell`: all rows that share regressors and groupings; `row`: one of
        them. A cell or row left out is predicted for scenarios and models that the fit knows.
    efficiency
        Effective over actual number of draws.
    most_draws
        For levels and cells: of more draws, every k-th is used.

    Raises
    ------
    ArgumentError
        If `unit` is none of these, or its effects cannot be integrated.

    References
    ----------
    Vehtari, A., Gelman, A. and Gabry, J. (2017), Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC, Statistics and Computing 27(5):1413-1432, doi:10.1007/s11222-016-9696-4.
    """
    names = [part.name for part in matrix.random]
    if unit not in (*names, "cell", "row"):
        raise ArgumentError(f"`unit` must be one of {[*names, 'cell', 'row']}; got {unit!r}")
    if unit in names and len(nested_in(matrix, names.index(unit))) > len(grouped(matrix, unit)):
        most_draws = min(most_draws, max(_FEWEST_DRAWS, _NESTED_NUMBERS // len(matrix.y)))
    kept = thinned(draws, most_draws)
    n = kept.n_chains * kept.n_draws
    notes = []
    total = draws.n_chains * draws.n_draws
    if n < total:
        notes.append(Note("thinned", f"{n:,} of {total:,} draws were used for leaving out."))
    pieces = [
        (*_left_out(density, efficiency), multiplicity)
        for density, multiplicity in _densities(matrix, kept, unit)
    ]
    pointwise, fitted, shapes, multiplicity = (
        np.concatenate([piece[k] for piece in pieces]) for k in range(4)
    )
    units = multiplicity.sum()
    elpd = float(multiplicity @ pointwise)
    spread = float(multiplicity @ np.square(pointwise - elpd / units)) / max(units - 1, 1)
    bad = int(multiplicity[shapes > _MOST_SHAPE].sum())
    if bad:
        notes.append(
            Note(
                "unreliable_weights",
                f"Leaving out by reweighting is not reliable for {counted(bad, unit)} of {int(units):,} "
                f"(Pareto shape above {_MOST_SHAPE:g}, up to {shapes.max():.2f}).",
                "caution",
            )
        )
    return LeaveOneOut(
        unit=unit,
        elpd=elpd,
        std_error=float(np.sqrt(units * spread)),
        p_loo=float(multiplicity @ fitted) - elpd,
        pointwise=pointwise,
        multiplicity=multiplicity,
        shapes=shapes,
        n_draws=n,
        n_rows=matrix.n_rows,
        notes=tuple(notes),
    )


def _left_out(density: Array, efficiency: float) -> tuple[Array, Array, Array]:
    """Density of each unit left out, that of the fit, and the shape of the tail; from (units, draws)."""
    weights, shapes = smoothed_weights(-density, efficiency=efficiency)
    fitted = special.logsumexp(density, axis=1) - np.log(density.shape[1])
    return special.logsumexp(weights + density, axis=1), fitted, shapes


def _densities(matrix: MixedMatrix, draws: Draws, unit: str) -> Iterator[tuple[Array, Array]]:
    """Log densities (units, draws) in blocks, and how many units each stands for."""
    if unit not in ("cell", "row"):
        part = next(part for part in matrix.random if part.name == unit)
        seen = np.bincount(part.codes, minlength=part.n_levels) > 0
        density = level_log_likelihood(matrix, draws, unit)[seen]
        yield density, np.ones(len(density))
        return
    for rows in blocks(len(matrix.y), draws.n_chains * draws.n_draws):
        eta = predictor(matrix, draws, rows)
        y, counts = matrix.y[rows], matrix.counts[rows]
        if unit == "cell":
            yield log_density(matrix, draws, rows, eta), np.ones(len(y))
        elif matrix.family == "binomial":
            for multiplicity, density in ((y, -np.logaddexp(0, -eta)), (counts - y, -np.logaddexp(0, eta))):
                some = multiplicity > 0
                if some.any():
                    yield density[some], multiplicity[some]
        else:
            yield log_density(matrix, draws, rows, eta) / counts[:, None], counts
