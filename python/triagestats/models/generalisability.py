"""What another design would show: errors of rates and contrasts from variance components."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.errors import ArgumentError
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Component", "FactorSize", "Generalisability", "design_effect", "generalisability", "project"]

RESIDUAL: Final = "residual"
_ERRORS: Final = (
    "se_rate",
    "se_contrast",
    "relative_error",
    "absolute_error",
    "coefficient",
    "dependability",
)


@dataclass(frozen=True, slots=True)
class Component:
    """One variance component.

    Attributes
    ----------
    name
        The term, or `residual`.
    parts
        The factors whose combinations have an effect each; none for the residual.
    variance
        The estimate.
    std_error
        From the curvature of the likelihood; None at the boundary 0.
    conf_low, conf_high
        Its interval, None where there is none.
    share
        Of the sum of all components.
    n_levels
        Effects that were drawn; rows for the residual.
    concentration
        Sum of squared shares of the rows by effect, which is 1 / n_levels in a balanced table.
    singular
        Whether the estimate is at the boundary 0.
    """

    name: str
    parts: tuple[str, ...]
    variance: float
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    share: float
    n_levels: int
    concentration: float
    singular: bool


@dataclass(frozen=True, slots=True)
class FactorSize:
    """A factor of a fitted study: levels, whether they are a sample, what it is nested in, and its role."""

    name: str
    n_levels: int
    random: bool
    within: tuple[str, ...]
    role: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Generalisability(Shown):
    """Errors that other designs would have; see `VarianceComponents.generalisability`.

    Attributes
    ----------
    frame
        One row a design: its numbers of levels, then `se_rate`, `se_contrast`, and with an object of
        measurement `relative_error`, `absolute_error`, `coefficient` and `dependability`.
    contrast
        The factor whose levels are compared; None where there is none.
    measured
        The object of measurement; None where none was named.
    fixed
        Factors whose levels are taken as the only ones.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> parts = ts.variance_components(ts.demo_table(), fixed="condition", interval="none")
    >>> errors = parts.generalisability(n_scenarios=[17, 68]).frame["se_contrast"]
    >>> bool(errors[1] < errors[0])
    True
    """

    frame: pl.DataFrame
    contrast: str | None
    measured: str | None
    fixed: tuple[str, ...]
    notes: tuple[Note, ...]

    def tidy(self) -> pl.DataFrame:
        """One row a design and quantity, with the columns of the glossary; `term` is the design."""
        sizes = [name for name in self.frame.columns if name not in _ERRORS]
        rows: list[dict[str, Any]] = []
        for row in self.frame.iter_rows(named=True):
            term = ", ".join(f"{name} = {row[name]:g}" for name in sizes)
            for name in _ERRORS:
                if row.get(name) is None:
                    continue
                is_error = name.startswith("se_")
                rows.append(
                    {
                        "estimand": name.removeprefix("se_"),
                        "term": term,
                        "std_error" if is_error else "estimate": row[name],
                        "status": "ok",
                        "method": "projected from variance components",
                    }
                )
        return tidy_frame(rows)

    def glance(self) -> pl.DataFrame:
        """One row: what was projected."""
        return pl.DataFrame(
            {
                "n_designs": [self.frame.height],
                "contrast": [self.contrast],
                "measured": [self.measured],
                "fixed": [", ".join(self.fixed) or None],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"contrast": pl.String, "measured": pl.String, "fixed": pl.String},
        )

    def to_pandas(self) -> pd.DataFrame:
        """`frame` for pandas; needs pandas and pyarrow."""
        found: pd.DataFrame = self.frame.to_pandas()
        return found

    def to_dict(self) -> dict[str, Any]:
        """The designs and notes as plain JSON values."""
        return as_json(self, designs=self.frame)

    def __repr__(self) -> str:
        compared = "" if self.contrast is None else f", contrasts of two levels of {self.contrast}"
        lines = [f"Errors of other designs: rates{compared}"]
        names = self.frame.columns
        cells = [["" if v is None else f"{v:,.4g}" for v in row] for row in self.frame.rows()]
        widths = [max(len(name), *(len(row[p]) for row in cells)) for p, name in enumerate(names)]
        for row in [names, *cells]:
            lines.append("  " + "   ".join(value.rjust(w) for value, w in zip(row, widths, strict=True)))
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])


def design_effect(components: Sequence[Component], fixed: Iterable[str]) -> float:
    """Variance of the mean of all rows, over what it would be if as many rows were independent.

    `sum_t v_t c_t / (sum_t v_t / N)` with v_t the components, c_t the sum of squared shares of rows by
    effect, and N rows; terms of fixed factors alone count in neither.
    """
    random = [part for part in components if part.name == RESIDUAL or not set(part.parts) <= set(fixed)]
    n_rows = next(part.n_levels for part in components if part.name == RESIDUAL)
    total = sum(part.variance for part in random)
    return n_rows * sum(part.variance * part.concentration for part in random) / total


def project(
    components: Sequence[Component],
    factors: Mapping[str, FactorSize],
    sizes: Mapping[str, float],
    repetitions: float,
    *,
    fixed: frozenset[str],
    contrast: str | None,
    measured: str | None,
) -> dict[str, float | None]:
    """The errors of one design; the formulas are those of `VarianceComponents.generalisability`."""

    def spread(part: Component, apart: str | None) -> float:
        """The component over the number of its effects behind a mean for one level of `apart`."""
        if part.name == RESIDUAL:
            outer = {name for factor in factors.values() for name in factor.within}
            names: Iterable[str] = [name for name in factors if name not in outer]
        else:
            names = part.parts
        count = repetitions if part.name == RESIDUAL else 1.0
        for name in names:
            if name != apart:
                inside = apart in factors[name].within
                count *= sizes[name] / sizes[apart] if inside and apart is not None else sizes[name]
        return part.variance / count

    def varies(part: Component, apart: str | None) -> bool:
        return part.name == RESIDUAL or not set(part.parts) <= fixed | {apart}

    def touches(part: Component, apart: str) -> bool:
        return part.name == RESIDUAL or any(n == apart or apart in factors[n].within for n in part.parts)

    rate = sum(spread(part, contrast) for part in components if varies(part, contrast))
    found: dict[str, float | None] = {"se_rate": math.sqrt(rate), "se_contrast": None}
    if contrast is not None:
        apart = contrast
        sides = sum(spread(p, apart) for p in components if varies(p, apart) and touches(p, apart))
        found["se_contrast"] = math.sqrt(2 * sides)
    if measured is not None:
        own = measured
        universe = sum(spread(p, own) for p in components if touches(p, own) and not varies(p, own))
        relative = sum(spread(p, own) for p in components if touches(p, own) and varies(p, own))
        others = sum(spread(p, own) for p in components if not touches(p, own) and not set(p.parts) <= fixed)
        absolute = relative + others
        found |= {
            "relative_error": math.sqrt(relative),
            "absolute_error": math.sqrt(absolute),
            "coefficient": universe / (universe + relative) if universe + relative else None,
            "dependability": universe / (universe + absolute) if universe + absolute else None,
        }
    return found


def generalisability(
    components: Sequence[Component],
    factors: Mapping[str, FactorSize],
    observed_repetitions: float,
    *,
    numbers: Mapping[str, object],
    arguments: Mapping[str, str],
    n_repetitions: object,
    contrast: str | None,
    measured: str | None,
    fixed: Sequence[str] | str | None,
) -> Generalisability:
    """The table of designs; see `VarianceComponents.generalisability`.

    Parameters
    ----------
    numbers
        Numbers of levels that were asked for, by factor.
    arguments
        The arguments that they came by, for messages.
    """
    chosen = _known([fixed] if isinstance(fixed, str) else list(fixed or []), factors, "fixed")
    held = frozenset([*(name for name, f in factors.items() if not f.random), *chosen])
    notes: list[Note] = []
    if contrast is None:
        conditions = [name for name, factor in factors.items() if factor.role == "condition"]
        contrast = conditions[0] if len(conditions) == 1 else None
    else:
        _known([contrast], factors, "contrast")
    if contrast is None:
        notes.append(
            Note(
                "no_contrast", "No factor is compared: name one as `contrast` for the error of a difference."
            )
        )
    if measured is not None:
        _known([measured], factors, "measured")
    _known(numbers, factors, "n_levels")
    asked = {
        name: _counts(value, arguments.get(name, f"n_levels[{name!r}]"))
        for name, value in numbers.items()
        if value is not None
    }
    for name in asked:
        if not factors[name].random or name in held:
            notes.append(
                Note(
                    "fixed_size",
                    f"{name} is fixed: its number is that of the levels that a rate is averaged over.",
                )
            )
    repetitions = [observed_repetitions] if n_repetitions is None else _counts(n_repetitions, "n_repetitions")
    rows: list[dict[str, Any]] = []
    for combination in product(*asked.values(), repetitions):
        sizes = {name: float(factor.n_levels) for name, factor in factors.items()}
        sizes |= dict(zip(asked, combination[:-1], strict=True))
        errors = project(
            components, factors, sizes, combination[-1], fixed=held, contrast=contrast, measured=measured
        )
        shown = {_column(factors[name]): sizes[name] for name in factors if name != contrast}
        rows.append({**shown, "n_repetitions": combination[-1], **errors})
    if held:
        listed = ", ".join(sorted(held))
        notes.append(Note("fixed", f"Levels taken as the only ones: {listed}."))
    frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(_ERRORS[:2], pl.Float64))
    return Generalisability(frame, contrast, measured, tuple(sorted(held)), tuple(notes))


def _column(factor: FactorSize) -> str:
    """`n_scenarios`; `n_levels[pair]` for a factor without a role."""
    return f"n_levels[{factor.name}]" if factor.role is None else f"n_{factor.role}s"


def _known(names: Iterable[str], factors: Mapping[str, FactorSize], argument: str) -> list[str]:
    listed = list(names)
    unknown = [name for name in listed if name not in factors]
    if unknown:
        raise ArgumentError(
            f"`{argument}` names {', '.join(map(repr, unknown))}, which is no factor of the fit; these are "
            f"{list(factors)}"
        )
    return listed


def _counts(value: object, what: str) -> list[float]:
    """One number of levels, or several."""
    single = isinstance(value, int | float)
    numbers: list[float] = numbers_of([value] if single else value, what, dimensions=(1,)).tolist()
    if not all(number >= 1 and number == int(number) for number in numbers):
        raise ArgumentError(
            f"`{what}` must be a whole number of at least 1, or several such as [50, 100]; got {value!r}"
        )
    return numbers
