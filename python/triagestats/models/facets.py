"""The factors of a variance study, read from a table: outcome, codes of levels, covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.ingest import to_polars
from triagestats.labels import listed, n_rows
from triagestats.models.formula import unknown_names
from triagestats.results import Note
from triagestats.roles import role_spelled
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import drop_missing, labels_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Facet", "Facets", "joint_codes", "name_list", "read_facets"]

_DEFAULT_ROLES: Final = ("scenario", "model", "condition")


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """One factor: its levels, and whether they are a sample of more or the only ones.

    Attributes
    ----------
    name
        The name of its column.
    codes
        Level of each row, shape (n,).
    levels
        Labels in order; those of a nested factor are `outer/inner`.
    random
        Whether the levels are a sample from a population of levels.
    within
        The factors that it is nested in, outermost first.
    role
        The role that its name stands for, such as `scenario`; None where it stands for none.
    """

    name: str
    codes: Codes
    levels: tuple[str, ...]
    random: bool
    within: tuple[str, ...]
    role: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Facets:
    """What was read.

    Attributes
    ----------
    outcome
        Its name.
    y
        The outcome, shape (n,).
    facets
        By name, random ones in the order of the call, then the fixed ones.
    covariates
        Numeric columns by name, each of shape (n,).
    by_default
        Whether the factors were recognised, not named.
    n_missing
        Rows left out since the outcome or a covariate is missing.
    notes
        Choices made while reading.
    """

    outcome: str
    y: Array
    facets: dict[str, Facet]
    covariates: dict[str, Array]
    by_default: bool
    n_missing: int
    notes: tuple[Note, ...]


def joint_codes(*codes: Codes) -> Codes:
    """One code a row for every combination that occurs, numbered in the order of the given codes."""
    found = np.unique(codes[0], return_inverse=True)[1].reshape(-1)
    for other in codes[1:]:
        found = np.unique(found * (int(other.max(initial=0)) + 1) + other, return_inverse=True)[1].reshape(-1)
    return found.astype(np.int64)


def name_list(value: object, argument: str) -> tuple[str, ...]:
    """One name or several.

    Raises
    ------
    ArgumentTypeError
        If the value is neither.
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ArgumentTypeError(f"`{argument}` must be a name or a list of names; got {value!r}")
    if len(set(value)) < len(value):
        raise ArgumentError(f"`{argument}` names something twice: {list(value)}")
    return tuple(value)


def read_facets(
    data: object,
    *,
    factors: object,
    fixed: object,
    nested: object,
    covariates: object,
    outcome: str | None,
) -> Facets:
    """The factors of a table; see `variance_components` for the arguments.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument names something that the table does not have, or names do not go together.
    DataError
        If a label is missing, or no row has an outcome.
    """
    held, frame = _Names(data), _frame(data)
    fixed_names = [held.column(name, "fixed") for name in name_list(fixed, "fixed")]
    chains = [_chain(text, held) for text in name_list(nested, "nested")]
    covariate_names = [held.column(name, "covariates") for name in name_list(covariates, "covariates")]
    if factors is None:
        names = held.defaults()
    else:
        names = [held.column(name, "factors") for name in name_list(factors, "factors")]
    names = list(dict.fromkeys([*(name for chain in chains for name in chain), *names]))
    both = sorted({*names, *fixed_names} & set(covariate_names))
    if both:
        raise ArgumentError(f"`covariates` and the factors share {both}; a column can be only one of them")
    scored = held.outcome(outcome)
    if scored in {*names, *fixed_names, *covariate_names}:
        raise ArgumentError(f"`outcome` is {scored!r}, which is also a factor or covariate")
    used = [*dict.fromkeys([*names, *fixed_names, *covariate_names])]
    frame, notes = _without_judges(data, frame, scored, used)
    if isinstance(data, ResponseTable) and "variant" in frame.columns and "variant" not in used:
        notes = (*notes, *_variants(frame))
    y = numbers_of(frame[scored], scored, dimensions=(1,))
    numbers = {name: numbers_of(frame[name], name, dimensions=(1,)) for name in covariate_names}
    kept, dropped = drop_missing([y, *numbers.values()], [scored, *numbers], "omit")
    frame = frame.filter(pl.Series(kept))
    facets = {
        name: _facet(frame, held, name, random=name not in fixed_names)
        for name in dict.fromkeys([*(n for n in names if n not in fixed_names), *fixed_names])
    }
    for chain in chains:
        _nest(facets, chain)
    return Facets(
        outcome=scored,
        y=y[kept],
        facets={facet.name: facet for facet in facets.values()},
        covariates={name: values[kept] for name, values in numbers.items()},
        by_default=factors is None,
        n_missing=int((~kept).sum()),
        notes=(*notes, *dropped),
    )


def _frame(data: object) -> pl.DataFrame:
    return data.frame if isinstance(data, ResponseTable) else to_polars(data).frame


class _Names:
    """Columns by the names that a caller may use: own names, and those before a table named the roles."""

    __slots__ = ("_alias", "_columns", "_shown", "_table")

    def __init__(self, data: object) -> None:
        self._table = data if isinstance(data, ResponseTable) else None
        self._columns = _frame(data).columns
        self._alias: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        if self._table is not None:
            many = len(self._table.factors) > 1
            came_from = {
                names[0]: role for role, names in self._table.roles.columns.items() if len(names) == 1
            }
            came_from |= {factor.name: factor.column for factor in self._table.factors}
            self._alias = {name: column for name, column in came_from.items() if column in self._columns}
            self._shown = {factor.column: factor.name for factor in self._table.factors if many}

    def column(self, name: str, argument: str) -> str:
        """The column of a name."""
        unknown_names([name], [*self._columns, *self._alias], argument)
        return name if name in self._columns else self._alias[name]

    def shown(self, column: str) -> str:
        """How a factor is called in results."""
        return self._shown.get(column, column)

    def levels(self, column: str) -> tuple[str, ...] | None:
        """The declared order of the levels of a condition; None where labels are sorted."""
        if self._table is None:
            return None
        return next((f.levels for f in self._table.factors if f.column == column), None)

    def role(self, column: str) -> str | None:
        """The role that a column plays."""
        return "condition" if column.startswith("condition[") else role_spelled(column)

    def defaults(self) -> list[str]:
        """The columns of scenario, model and condition."""
        if self._table is not None and len(self._table.factors) > 1:
            own = [name for name in _DEFAULT_ROLES[:2] if name in self._columns]
            return own + [factor.column for factor in self._table.factors]
        found = []
        for role in _DEFAULT_ROLES:
            named = [name for name in self._columns if role_spelled(name) == role]
            if len(named) > 1:
                raise ArgumentError(
                    f"`factors` must be named: the columns {named} could all be the {role}; for instance "
                    f"factors=({named[0]!r}, ...)"
                )
            found += named
        if not found:
            raise ArgumentError(
                "`factors` must be named: no column is recognised as scenario, model or condition; the "
                f"columns are {listed(self._columns)}"
            )
        return found

    def outcome(self, name: str | None) -> str:
        """The column of the outcome."""
        if name is not None:
            if not isinstance(name, str):
                raise ArgumentTypeError(f"`outcome` must be the name of a column; got {name!r}")
            return self.column(name, "outcome")
        if "score" in self._columns:
            return "score"
        found = [column for column in self._columns if role_spelled(column) == "score"]
        if len(found) != 1:
            raise ArgumentError(
                f"`outcome` must be named: {f'{found} could all be it' if found else 'no column is a score'}"
                f"; the columns are {listed(self._columns)}"
            )
        return found[0]


def _chain(text: str, held: _Names) -> tuple[str, ...]:
    """`pair/scenario` as the columns from the outermost to the innermost."""
    parts = [part.strip() for part in text.split("/")]
    if len(parts) < 2 or not all(parts) or len(set(parts)) < len(parts):
        raise ArgumentError(f"`nested` must be like 'pair/scenario', the outer factor first; got {text!r}")
    return tuple(held.column(part, "nested") for part in parts)


def _facet(frame: pl.DataFrame, held: _Names, column: str, *, random: bool) -> Facet:
    labels = labels_of(frame[column], column)
    if gaps := int((labels.codes < 0).sum()):
        raise DataError(
            f"`{column}` is blank in {gaps:,} of {n_rows(frame.height)}; fill it in, or drop these rows"
        )
    codes, levels = labels.codes, labels.levels
    if declared := held.levels(column):
        order = [levels.index(level) for level in declared if level in levels]
        place = np.empty(len(levels), dtype=np.int64)
        place[order] = np.arange(len(levels))
        codes, levels = place[codes], tuple(levels[old] for old in order)
    return Facet(held.shown(column), codes, levels, random, (), held.role(column))


def _nest(facets: dict[str, Facet], chain: tuple[str, ...]) -> None:
    """Give the inner factors of a chain levels of their own in every level of the outer ones."""
    for depth in range(1, len(chain)):
        outer, inner = facets[chain[depth - 1]], facets[chain[depth]]
        if inner.within:
            raise ArgumentError(f"`nested` says twice what {inner.name!r} is nested in")
        codes = joint_codes(outer.codes, inner.codes)
        first = np.unique(codes, return_index=True)[1]
        levels = tuple(f"{outer.levels[outer.codes[row]]}/{inner.levels[inner.codes[row]]}" for row in first)
        facets[chain[depth]] = Facet(
            inner.name, codes, levels, inner.random, (*outer.within, outer.name), inner.role
        )


def _variants(frame: pl.DataFrame) -> tuple[Note, ...]:
    """That variants count as repetitions, where there are several."""
    variants = frame["variant"].n_unique()
    if variants < 2:
        return ()
    message = (
        f"{variants} variants of a request count as repetitions of it; with 'variant' among the factors they "
        "have a variance of their own."
    )
    return (Note("variants", message),)


def _without_judges(
    data: object, frame: pl.DataFrame, scored: str, used: Sequence[str]
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """A response table with one row a response: the mean of the judges that scored it."""
    if not isinstance(data, ResponseTable) or len(data.judges) < 2 or "judge" in used:
        return frame, ()
    key = [role for role in KEY_ROLES if role in frame.columns and role != "judge"]
    carried = [name for name in used if name not in key]
    varying = [name for name in carried if frame.select(pl.col(name).n_unique().over(key).max()).item() > 1]
    if varying:
        raise DataError(
            f"`{varying[0]}` differs between judges of a response, so that their scores cannot be averaged; "
            "add 'judge' to `factors`, or keep one judge with table.with_judge(...)"
        )
    means = frame.group_by(key, maintain_order=True).agg(
        pl.col(scored).cast(pl.Float64).fill_nan(None).mean(), *(pl.col(name).first() for name in carried)
    )
    note = Note(
        "judges",
        f"{len(data.judges)} judges are averaged first, those who scored a response; with 'judge' among the "
        "factors they have a variance of their own.",
    )
    return means, (note,)
