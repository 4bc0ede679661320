"""A table under its own column names as a frame under the names of the roles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from triagestats.errors import DataError
from triagestats.labels import as_text, n_rows
from triagestats.roles import Assignment, RoleArgument, assign_roles, column_names, role_spelled
from triagestats.schema import IDENTIFIER_ROLES, KEY_ROLES, ROLES

__all__ = [
    "Factor",
    "blank_identifier",
    "canonical_frame",
    "check_key",
    "joined_conditions",
    "joint_condition",
    "ordered_levels",
    "recluster",
]

_NUMBER: Final = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_RESERVED: Final = (
    "cluster_1",
    "cluster_2",
    "own_response",
    "own_score",
    "own_status",
    "_response",
    "_judgment",
)
_CARRIED: Final = "carried."
_NAMED: Final = 3
_OPTIONS: Final = (
    "the role that it plays (a condition is compared, a variant is kept apart without being compared, a "
    "repetition is one more answer to the same request, a judge is averaged), or keep the rows of one of its "
    "values"
)


@dataclass(frozen=True, slots=True)
class Factor:
    """One condition column: its name, its column in the canonical frame, and its levels in order.

    `declared` says that the order is that of an Enum, not the sorted one.
    """

    name: str
    column: str
    levels: tuple[str, ...]
    declared: bool


def ordered_levels(series: pl.Series) -> tuple[tuple[str, ...], bool]:
    """Levels that occur, and whether their order was declared: by an Enum, else sorted (numbers by value)."""
    present = set(as_text(series, "condition").drop_nulls())
    if isinstance(series.dtype, pl.Enum):
        order = dict.fromkeys(level.strip() for level in series.dtype.categories)
        return tuple(level for level in order if level in present), True
    return tuple(sorted(present, key=_sort_key)), False


def _sort_key(level: str) -> tuple[int, float, str]:
    if re.fullmatch(_NUMBER, level, re.ASCII):
        return (0, float(level), level)
    return (1, 0.0, level)


def canonical_frame(frame: pl.DataFrame, roles: Assignment) -> tuple[pl.DataFrame, tuple[Factor, ...]]:
    """Rename columns to their roles and make identifiers text; other columns are carried along.

    A carried column whose name is that of a role gets the prefix `carried.`. Several condition
    columns stay apart as `condition[name]`, beside the joint label `condition`.

    Raises
    ------
    DataError
        If a scenario, model, condition or cluster is blank.
    """
    columns: list[pl.Series] = []
    for role in IDENTIFIER_ROLES:
        if (name := roles.one(role)) is not None:
            columns.append(as_text(frame[name], role).alias(role))
    factors = _factors(frame, roles)
    parts = [as_text(frame[factor.name], "condition").alias(factor.column) for factor in factors]
    columns += parts
    if len(factors) > 1:
        columns.append(joint_condition(factors, parts))
    gold = roles.columns.get("gold", ())
    columns += [
        as_text(frame[name], "gold").alias(f"gold_{end}")
        for name, end in zip(gold, ("low", "high"), strict=False)
    ]
    for role in ("response", "stratum"):
        if (name := roles.one(role)) is not None:
            columns.append(as_text(frame[name], role).alias(role))
    for position, name in enumerate(roles.columns.get("cluster", ())):
        columns.append(as_text(frame[name], "cluster").alias(f"cluster_{position + 1}"))
    columns += [
        _stated(frame[name], role).alias(role)
        for role in ("score", "status", "reason")
        if (name := roles.one(role)) is not None
    ]
    taken = {column.name for column in columns} | set(ROLES) | set(_RESERVED)
    for name in frame.columns:
        if name not in roles.used:
            own = name
            while own in taken:
                own = _CARRIED + own
            taken.add(own)
            columns.append(frame[name].alias(own))
    result = pl.DataFrame(columns)
    _no_blanks(result, roles)
    return result, factors


def recluster(
    frame: pl.DataFrame, roles: Assignment, cluster: RoleArgument
) -> tuple[pl.DataFrame, Assignment]:
    """A canonical frame with other cluster columns.

    Raises
    ------
    RoleError
        If a name is neither a column of the frame nor a column that one of its roles came from.
    DataError
        If a cluster is blank.
    """
    came_from = {name: role for role, names in roles.columns.items() for name in names if len(names) == 1}
    wanted = () if cluster is None or cluster is False else column_names("cluster", cluster)
    columns = [came_from.get(name, name) if name not in frame.columns else name for name in wanted]
    unassigned: dict[str, RoleArgument] = dict.fromkeys(ROLES, False)
    assigned = assign_roles(frame.columns, unassigned | {"cluster": columns or False})
    result = frame.drop("cluster_1", "cluster_2", strict=False).with_columns(
        as_text(frame[column], "cluster").alias(f"cluster_{position + 1}")
        for position, column in enumerate(assigned.columns.get("cluster", ()))
    )
    others = {role: names for role, names in roles.columns.items() if role != "cluster"}
    changed = Assignment(others | ({"cluster": wanted} if wanted else {}), roles.metric)
    _no_blanks(result, changed)
    return result, changed


def _stated(series: pl.Series, role: str) -> pl.Series:
    """Numeric scores as they are; other scores, statuses and reasons as text, an object as its JSON."""
    if role == "score" and (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        return series
    if role != "score" and isinstance(series.dtype, pl.Struct):
        written = series.struct.json_encode()
        return written.set(series.is_null(), None)
    return as_text(series, role)


def _factors(frame: pl.DataFrame, roles: Assignment) -> tuple[Factor, ...]:
    names = roles.columns.get("condition", ())
    factors = []
    for name in names:
        levels, declared = ordered_levels(frame[name])
        column = "condition" if len(names) == 1 else f"condition[{name}]"
        factors.append(Factor(name, column, levels, declared))
    return tuple(factors)


def joint_condition(factors: Sequence[Factor], parts: Sequence[pl.Series]) -> pl.Series:
    """The joint label of several condition columns, `name=level` of each.

    Raises
    ------
    DataError
        If two combinations have one label.
    """
    label = pl.concat_str([pl.lit(f"{f.name}=") + pl.col(f.column) for f in factors], separator=", ")
    frame = pl.DataFrame(parts)
    joint = frame.select(label.alias("condition")).to_series()
    if joint.n_unique() < frame.n_unique():
        raise joined_conditions()
    return joint


def _no_blanks(frame: pl.DataFrame, roles: Assignment) -> None:
    several_tasks = "task" in frame.columns and frame["task"].n_unique() > 1
    must = ("scenario", "model", "condition", "cluster_1", "cluster_2", *(["task"] if several_tasks else []))
    for column in must:
        if column not in frame.columns or not (blank := frame[column].null_count()):
            continue
        role = column.split("_")[0]
        name = roles.columns["cluster"][int(column[-1]) - 1] if role == "cluster" else roles.one(role)
        raise blank_identifier(role, name, blank, frame.height)


def blank_identifier(role: str, name: str | None, blank: int, height: int) -> DataError:
    """The refusal of an identifier that some rows do not have."""
    return DataError(
        f"`{role}` is column {name!r}, which is blank in {blank:,} of {n_rows(height)}; "
        "fill it in, or drop these rows"
    )


def joined_conditions() -> DataError:
    """The refusal of conditions whose joint labels are one."""
    return DataError(
        "`condition` has levels that are one when joined, as 'a, b' with 'c' and 'a' with 'b, c' would "
        "be; rename the levels that hold a comma"
    )


def check_key(frame: pl.DataFrame, roles: Assignment, carried: Sequence[str]) -> None:
    """Every row must have a key of its own.

    Raises
    ------
    DataError
        If not; the message names the columns without a part in the key that tell the rows apart.
    """
    key = [role for role in KEY_ROLES if role in frame.columns]
    repeated = frame.filter(pl.struct(key).is_duplicated())
    if repeated.is_empty():
        return
    keys = repeated.select(key).n_unique()
    example = ", ".join(
        f"{role}={value!r}" for role, value in repeated.select(key).row(0, named=True).items()
    )
    raise DataError(
        f"`data` has {'one key' if keys == 1 else f'{keys:,} keys'} ({' x '.join(key)}) in more than one "
        f"row, {n_rows(repeated.height)} in all, such as {example}; "
        f"{_separating(repeated, key, roles, carried)}"
    )


def _separating(repeated: pl.DataFrame, key: Sequence[str], roles: Assignment, carried: Sequence[str]) -> str:
    """What to do about rows of one key.

    Columns whose name or values say what they are come first, then those of few values, and measurements
    last.
    """
    names = {name: name.removeprefix(_CARRIED) for name in carried}
    if (source := roles.one("source")) is not None:
        names["source"] = source
    plain = [
        name for name in names if not repeated[name].dtype.is_nested() and repeated[name].dtype != pl.Object
    ]
    plain.sort(key=lambda name: (repeated[name].dtype.is_float(), repeated[name].n_unique()))
    alone, together = (
        [
            group
            for group in combinations(plain, size)
            if not repeated.select(pl.struct([*key, *group]).is_duplicated().any()).item()
        ]
        for size in (1, 2)
    )
    if alone:
        most = repeated.group_by(key).len()["len"].max()
        advice = {names[name]: _advice(names[name], repeated[name], most, roles) for (name,) in alone}
        ordered = sorted(advice, key=lambda name: advice[name] is None)[:_NAMED]
        which = " or ".join(map(repr, ordered))
        return f"column {which} tells them apart: {advice[ordered[0]] or f'give it {_OPTIONS}'}"
    if together:
        first, second = (names[name] for name in together[0])
        return f"columns {first!r} and {second!r} together tell them apart: give each {_OPTIONS}"
    return "no other column tells them apart: drop the copies, or number them in a column 'repetition'"


def _advice(name: str, values: pl.Series, most: object, roles: Assignment) -> str | None:
    """The role that the name of a column, or its values, speak for; None where nothing does."""
    role = role_spelled(name)
    if role == "condition" and role in roles:
        both = [*roles.columns[role], name]
        return f"compare both with `condition={both}`, or keep the rows of one value of {name!r}"
    if role in (*KEY_ROLES, "task") and role not in roles:
        return f"give it its role with `{role}={name!r}`"
    if role is None and "repetition" not in roles and _counts(values, most):
        return f"if it counts answers to the same request, say `repetition={name!r}`; else give it {_OPTIONS}"
    return None


def _counts(values: pl.Series, most: object) -> bool:
    """Whether values number the rows of a key from 1 or from 0; 0 and 1 alone may be a flag."""
    numbers = as_text(values, "repetition").cast(pl.Int64, strict=False)
    if numbers.null_count():
        return False
    found = numbers.unique().sort().to_list()
    return found in (list(range(1, len(found) + 1)), list(range(max(len(found), 3)))) and len(found) == most
