"""The scenarios of a study: read from a file or from the study, checked, and drawn from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from triagestats.collect.contract import Misfit, Scenario
from triagestats.collect.study_models import Draw, ScenarioSource
from triagestats.errors import ReadError, RoleError
from triagestats.files import read_table
from triagestats.labels import label_of, listed
from triagestats.roles import Assignment, RoleArgument, assign_roles
from triagestats.schema import ROLES

__all__ = ["Scenarios", "drawn", "read_scenarios"]

_ROLES: Final = ("scenario", "gold", "stratum", "cluster")


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The scenarios of a study.

    Attributes
    ----------
    items
        Those that are asked, in the order of their file.
    reading
        Columns that say how answers are read and grouped: gold, stratum, cluster.
    """

    items: tuple[Scenario, ...]
    reading: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Row:
    """One row as it was read, and where it stands, in words."""

    fields: Mapping[str, Any]
    where: str


def read_scenarios(
    source: ScenarioSource, *, folder: Path, levels: tuple[str, ...] | None, seed: int
) -> Scenarios:
    """The scenarios that are asked.

    Parameters
    ----------
    source
        The table `scenarios` of the study file.
    folder
        Where its paths start.
    levels
        The response scale, on which gold labels must lie.
    seed
        Of the draw, where it has none of its own.

    Raises
    ------
    Misfit
        If a file cannot be read, a column is absent, an id is blank or repeats, or a gold label is not on
        the scale.
    """
    rows = _rows(source, folder)
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    roles = _roles(source, columns)
    for name in source.carry:
        _present("carry", name, columns)
    scenarios = []
    seen: dict[str, str] = {}
    for row in rows:
        scenario = _scenario(row, roles)
        if scenario.id in seen:
            raise Misfit(
                ("id",),
                f"scenario {scenario.id!r} is there twice, {seen[scenario.id]} and {row.where}; give each "
                "an id of its own",
            )
        seen[scenario.id] = row.where
        _check_gold(scenario, levels, row.where)
        scenarios.append(scenario)
    reading = frozenset(name for role in _ROLES[1:] for name in roles.columns.get(role, ()))
    if source.draw is None:
        return Scenarios(tuple(scenarios), reading)
    for name in source.draw.by:
        _present("draw", name, columns, "by")
    return Scenarios(drawn(scenarios, source.draw, seed=seed), reading)


def drawn(scenarios: Sequence[Scenario], draw: Draw, *, seed: int) -> tuple[Scenario, ...]:
    """A seeded part of the scenarios, in their order.

    Each stratum is ordered by the SHA-256 of seed and id, and its first ones are taken: the draw depends
    neither on the order of the scenarios nor on those of other strata, and a larger draw with the same seed
    holds the smaller one where the allocation does.

    Raises
    ------
    Misfit
        If there are fewer than asked for.
    """
    strata: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        key = json.dumps([label_of(scenario.fields.get(name)) for name in draw.by])
        strata.setdefault(key, []).append(scenario)
    wanted = _allocation({key: len(members) for key, members in strata.items()}, draw)
    chosen: set[str] = set()
    salt = seed if draw.seed is None else draw.seed
    for key, members in strata.items():
        ranked = sorted(members, key=lambda one: hashlib.sha256(f"{salt}\n{one.id}".encode()).digest())
        chosen |= {one.id for one in ranked[: wanted[key]]}
    return tuple(scenario for scenario in scenarios if scenario.id in chosen)


def _allocation(sizes: Mapping[str, int], draw: Draw) -> dict[str, int]:
    """How many to take of each stratum; what proportion leaves over goes to the largest remainders."""
    total = sum(sizes.values())
    if draw.allocation == "equal":
        small = {key: size for key, size in sizes.items() if size < draw.n}
        if small:
            key = min(small)
            raise Misfit(("draw", "n"), f"asks for {draw.n:,} of each stratum, and {key} has {small[key]:,}")
        return dict.fromkeys(sizes, draw.n)
    if draw.n > total:
        raise Misfit(("draw", "n"), f"asks for {draw.n:,} scenarios, and there are {total:,}")
    wanted = {key: draw.n * size // total for key, size in sizes.items()}
    remainders = sorted(sizes, key=lambda key: (-(draw.n * sizes[key] % total), key))
    for key in remainders[: draw.n - sum(wanted.values())]:
        wanted[key] += 1
    return wanted


def _rows(source: ScenarioSource, folder: Path) -> list[_Row]:
    if source.rows is not None:
        for number, fields in enumerate(source.rows):
            _sendable(fields, number)
        rows = [
            _Row(fields, f"as number {number:,} of `rows`") for number, fields in enumerate(source.rows, 1)
        ]
    else:
        path = folder / (source.file or "")
        rows = _jsonl(path) if path.suffix.lower() in (".jsonl", ".ndjson") else _table(path)
    if not rows:
        raise Misfit(("file" if source.rows is None else "rows",), "holds no scenario")
    return rows


def _sendable(fields: Mapping[str, Any], number: int) -> None:
    """Refuse a lone half of a character, which no request can hold."""
    try:
        json.dumps(fields, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise Misfit(("rows", number), f"holds text that is not Unicode: {error.reason}") from None


def _jsonl(path: Path) -> list[_Row]:
    """One object a line, nested values as they are."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Misfit(("file",), f"{str(path)!r} cannot be read: {reason}") from None
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            json.dumps(fields, ensure_ascii=False).encode()  # a lone half of a character cannot be sent
        except (ValueError, UnicodeEncodeError) as error:
            raise Misfit(("file",), f"line {number:,} of {path.name!r} is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise Misfit(("file",), f"line {number:,} of {path.name!r} must be an object; got {line[:40]!r}")
        rows.append(_Row(fields, f"on line {number:,} of {path.name!r}"))
    return rows


def _table(path: Path) -> list[_Row]:
    try:
        frame = read_table(path).frame
    except ReadError as error:
        raise Misfit(("file",), str(error)) from None
    return [
        _Row(fields, f"in row {number:,} of {path.name!r}")
        for number, fields in enumerate(frame.iter_rows(named=True), 1)
    ]


def _roles(source: ScenarioSource, columns: Sequence[str]) -> Assignment:
    """The columns that play a role; one called `id` is the scenario where no other is recognised."""
    given: dict[str, RoleArgument] = {role: False for role in ROLES if role not in _ROLES}
    named = {"scenario": source.id, "gold": source.gold, "stratum": source.stratum, "cluster": source.cluster}
    for role, key in zip(_ROLES, ("id", "gold", "stratum", "cluster"), strict=True):
        value = named[role]
        for name in (value,) if isinstance(value, str) else value or ():
            _present(key, name, columns)
        given[role] = value
    if source.id is None and "id" in columns:
        given["scenario"] = "id"
    halves = {"gold_low", "gold_high"}
    try:
        roles = assign_roles(columns, {role: v for role, v in given.items() if role not in halves})
    except RoleError as error:
        role = str(error).split("`")[1]
        raise Misfit(("id" if role == "scenario" else role,), str(error)) from None
    if "scenario" not in roles:
        raise Misfit(("id",), f"must name the column of the scenario; the columns are {listed(columns)}")
    return roles


def _present(key: str, name: str, columns: Sequence[str], *more: str) -> None:
    if name not in columns:
        raise Misfit((key, *more), f"names {name!r}; the columns are {listed(columns)}")


def _scenario(row: _Row, roles: Assignment) -> Scenario:
    found: dict[str, str | None] = {}
    for role in _ROLES:
        parts = [_label(row, name) for name in roles.columns.get(role, ())]
        same = len(set(parts)) < 2
        found[role] = (parts or [None])[0] if same or None in parts else "/".join(map(str, parts))
    name = found.pop("scenario")
    if name is None:
        raise Misfit(("id",), f"the scenario {row.where} has no id; give each one of its own")
    return Scenario(id=name, fields=row.fields, **found)


def _label(row: _Row, name: str) -> str | None:
    value = row.fields.get(name)
    if isinstance(value, dict | list | tuple):
        raise Misfit(("id",), f"column {name!r} {row.where} must hold text or a number; got {value!r}")
    return label_of(value)


def _check_gold(scenario: Scenario, levels: tuple[str, ...] | None, where: str) -> None:
    """Gold is a level, or two with a slash between them."""
    if levels is None or scenario.gold is None or scenario.gold in levels:
        return
    ends = [part.strip() for part in scenario.gold.split("/")]
    if len(ends) != 2 or any(end not in levels for end in ends):
        raise Misfit(
            ("gold",),
            f"the gold label {scenario.gold!r} of scenario {scenario.id!r} {where} is not on the scale "
            f"`levels`, {list(levels)}",
        )
