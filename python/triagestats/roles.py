"""Which column plays which role: given by the caller, or recognised by its usual spellings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from triagestats.errors import ArgumentTypeError, RoleError
from triagestats.labels import listed
from triagestats.schema import ROLES

__all__ = ["ROLE_ARGUMENTS", "Assignment", "RoleArgument", "assign_roles", "column_names", "role_spelled"]

RoleArgument = str | Sequence[str] | Literal[False] | None
"""A column, several columns where the role takes several, False for none, None to recognise it."""

_MANY: Final = {"condition": None, "gold": 2, "cluster": 2, "metric": 2}
_HALVES: Final = ("gold_low", "gold_high")
# They group rows that other roles describe, so their columns may be those of another role.
_GROUPING: Final = ("cluster", "stratum")
ROLE_ARGUMENTS: Final = tuple(role for role in ROLES if role not in _HALVES)
"""The roles that `ResponseTable` and `analyze` have an argument for."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The columns of a table by the role that they play.

    Attributes
    ----------
    columns
        Role to columns; most roles have one.
    metric
        The value of the metric column to keep, if the caller named one.
    """

    columns: Mapping[str, tuple[str, ...]]
    metric: str | None = None

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def one(self, role: str) -> str | None:
        """The first column of a role, or None."""
        found = self.columns.get(role)
        return found[0] if found else None

    @property
    def used(self) -> frozenset[str]:
        """All columns that play a role."""
        return frozenset(column for columns in self.columns.values() for column in columns)


def assign_roles(columns: Sequence[str], given: Mapping[str, RoleArgument]) -> Assignment:
    """Columns by role, from what the caller said and from the spellings in `schema.ROLES`.

    Parameters
    ----------
    columns
        Names of the columns of the table.
    given
        Role to what the caller said of it. `cluster` may name a role as well as a column, and
        `metric` may name a value of the metric column. `cluster` and `stratum` may share the column of
        another role; no two others share one.

    Raises
    ------
    RoleError
        If a named column is absent or named for two roles, or if two columns could play one role.
    ArgumentTypeError
        If a role is given as something that is no column name.
    """
    explicit: dict[str, tuple[str, ...]] = {}
    metric: str | None = None
    for role, value in given.items():
        if role not in ROLES:
            raise ArgumentTypeError(f"`{role}` is no role of a column; the roles are {', '.join(ROLES)}")
        if value is None or value is False:
            continue
        names = column_names(role, value)
        if role == "metric":
            names, metric = _metric(columns, names)
            if not names:
                continue
        if role != "cluster":
            _present(columns, role, names)
        explicit[role] = names
    _one_role_each(explicit)
    taken = {name for role, names in explicit.items() if role != "cluster" for name in names}
    assigned = dict(explicit)
    for role in ROLES:
        if role in given and given[role] is False:
            continue
        if role not in explicit and not (role in _HALVES and given.get("gold") is not None):
            found = _recognise(columns, role, taken)
            if found is not None:
                assigned[role] = (found,)
    _join_halves(assigned, explicit)
    if "cluster" in explicit:
        assigned["cluster"] = tuple(_cluster(columns, name, assigned) for name in explicit["cluster"])
    return Assignment(assigned, metric)


def role_spelled(name: str) -> str | None:
    """The role that a column of this name is recognised for."""
    return next((role for role, known in ROLES.items() if _plain(name) in known.spellings), None)


def column_names(role: str, value: RoleArgument) -> tuple[str, ...]:
    """The columns that an argument names.

    Raises
    ------
    ArgumentTypeError
        If it names none, or more than the role takes.
    """
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else None
    most = _MANY.get(role, 1)
    if names is None or not names or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            f"`{role}` must be the name of a column, or False where none plays it; got {value!r}"
        )
    if most is not None and len(names) > most:
        columns = "one column" if most == 1 else f"at most {most} columns"
        raise ArgumentTypeError(f"`{role}` takes {columns}; got {list(names)}")
    if len(set(names)) != len(names):
        raise ArgumentTypeError(f"`{role}` names a column twice, {list(names)}; name each once")
    return names


def _present(columns: Sequence[str], role: str, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in columns]
    if absent:
        raise RoleError(
            f"`{role}` names {', '.join(map(repr, absent))}, which the table does not have; "
            f"choose from its columns {listed(columns)}"
        )


def _one_role_each(explicit: Mapping[str, tuple[str, ...]]) -> None:
    plays: dict[str, str] = {}
    for role, names in explicit.items():
        for name in names if role not in _GROUPING else ():
            if name in plays:
                raise RoleError(
                    f"`{plays[name]}` and `{role}` both name column {name!r}; give it to one of them, and "
                    f"another column to the other, or none with `{role}=False`"
                )
            plays[name] = role


def _metric(columns: Sequence[str], names: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """`metric=` is a column, a column with the value to keep, or a value of the recognised column."""
    if len(names) == 2:
        return names[:1], names[1]
    if names[0] in columns:
        return names, None
    found = _recognise(columns, "metric", set())
    if found is None:
        raise RoleError(
            f"`metric` names {names[0]!r}, but the table has neither a column of that name nor a metric "
            f"column; choose from its columns {listed(columns)}"
        )
    return (), names[0]


def _recognise(columns: Sequence[str], role: str, taken: set[str]) -> str | None:
    spellings = ROLES[role].spellings
    found = [name for name in columns if name not in taken and _plain(name) in spellings]
    if len(found) > 1:
        argument = "gold" if role in _HALVES else role
        others = {
            "scenario": "",
            "condition": f", or `condition={found}` to compare both",
        }
        raise RoleError(
            f"`{argument}` could be column {' or '.join(map(repr, found))}; say which one, for instance "
            f"`{argument}={found[0]!r}`" + others.get(role, f", or `{argument}=False` for none")
        )
    return found[0] if found else None


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_")


def _join_halves(assigned: dict[str, tuple[str, ...]], explicit: Mapping[str, tuple[str, ...]]) -> None:
    """The two ends of a gold range become the role `gold`, with two columns."""
    halves = [assigned.pop(role)[0] for role in _HALVES if role in assigned]
    if not halves:
        return
    if "gold" in explicit:
        return
    if "gold" in assigned:
        raise RoleError(
            f"`gold` could be column {assigned['gold'][0]!r} or {' and '.join(map(repr, halves))}; say "
            f"which, for instance `gold={assigned['gold'][0]!r}`"
        )
    if len(halves) == 1:
        raise RoleError(
            f"`gold` has one end of its range in column {halves[0]!r}, and no column holds the other; name "
            "both with `gold=('low', 'high')`, or use `gold=False` for none"
        )
    assigned["gold"] = (halves[0], halves[1])


def _cluster(columns: Sequence[str], name: str, assigned: Mapping[str, tuple[str, ...]]) -> str:
    if name in columns:
        return name
    if name in assigned and name in ROLES:
        return assigned[name][0]
    raise RoleError(
        f"`cluster` names {name!r}, which is neither a column of the table nor a role that it has; "
        f"choose from its columns {listed(columns)}"
    )
