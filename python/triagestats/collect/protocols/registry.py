"""From a table of the study file to its conditions: one, a full grid, or one factor at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from pydantic import Field, ValidationError

from triagestats.collect.contract import Condition, Misfit, Setting, Strict
from triagestats.collect.protocols.conversation import Conversation
from triagestats.collect.protocols.free_response import FreeResponse
from triagestats.collect.protocols.prompted import Prompted
from triagestats.collect.protocols.rewriting import Rewriting
from triagestats.collect.protocols.styles import Style
from triagestats.collect.protocols.two_step import TwoStep
from triagestats.collect.protocols.wording_output import WordingOutput

__all__ = ["PROTOCOLS", "build_conditions"]

PROTOCOLS: Final[dict[str, type[Any]]] = {
    kind.kind: kind
    for kind in (Prompted, WordingOutput, Style, TwoStep, FreeResponse, Rewriting, Conversation)
}
_DESIGNS: Final = ("grid", "one_at_a_time")


class _Common(Strict):
    """Keys that the tables of all protocols have."""

    name: str = Field(min_length=1)
    protocol: str = "prompt"
    scored: bool | None = None
    judges: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    design: str = "grid"
    factors: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of a factor: its label in the table, and the value of the key that it sets."""

    label: str
    value: Any
    path: tuple[str | int, ...]


def build_conditions(table: Mapping[str, Any], setting: Setting) -> tuple[Condition, ...]:
    """The conditions of one table `[[conditions]]`.

    Parameters
    ----------
    table
        `name`, `protocol`, `scored`, `judges`, `models`, `factors` and `design`, and the keys of the
        protocol. `factors` gives levels for keys of the protocol: a list of values, or a table from labels to
        values. With `design = "grid"` all combinations are conditions, and the factors are columns of the
        response table. With `one_at_a_time`, the first levels are the base, and each other condition
        differs from it in one factor. `judges` are by default all of the study for answers in free text, and
        none for answers that state a label, or are rewrites; in a grid with answers of both kinds, the judges
        that are named judge the free text.
    setting
        What the study file is read in.

    Raises
    ------
    Misfit, pydantic.ValidationError
        If a key does not fit.
    """
    own = {key: value for key, value in table.items() if key in _Common.model_fields}
    common = _Common.model_validate(own)
    kind = PROTOCOLS.get(common.protocol)
    if kind is None:
        raise Misfit(("protocol",), f"must be one of {', '.join(PROTOCOLS)}; got {common.protocol!r}")
    if common.design not in _DESIGNS:
        raise Misfit(("design",), f"must be one of {', '.join(_DESIGNS)}; got {common.design!r}")
    rest = {key: value for key, value in table.items() if key not in own}
    factors = {key: _levels(key, value, kind, rest, common.protocol) for key, value in common.factors.items()}
    if not factors and "design" in common.model_fields_set:
        raise Misfit(("design",), "needs `factors`: levels for keys of the protocol")
    cells = [
        (name, levels if is_cell else {}, _protocol(kind, rest, levels, setting))
        for name, levels, is_cell in _cells(common, factors)
    ]
    all_labels = all(protocol.reads_labels for _, _, protocol in cells)
    found = []
    for name, levels, protocol in cells:
        labels = {key: level.label for key, level in levels.items()}
        judges = _judges(common.judges, protocol, all_labels=all_labels)
        scored = _scored(common.scored, judges, protocol, setting)
        found.append(Condition(name, protocol, labels, scored, judges, common.models))
    return tuple(found)


def _levels(
    key: str, value: Any, kind: type[Any], rest: Mapping[str, Any], protocol: str
) -> tuple[_Level, ...]:
    path = ("factors", key)
    keys = {field.alias or name for name, field in kind.model_fields.items()}
    if key not in keys:
        raise Misfit(path, f"is no key of the protocol {protocol!r}; its keys are {', '.join(sorted(keys))}")
    if key in rest:
        raise Misfit(path, f"gives levels for {key!r}, which the condition sets, too; drop one of them")
    if isinstance(value, Mapping):
        levels = tuple(_Level(str(label), item, (*path, label)) for label, item in value.items())
    elif isinstance(value, list | tuple):
        levels = tuple(_Level(_label(item, path), item, (*path, at)) for at, item in enumerate(value))
    else:
        raise Misfit(
            path, f"must be a list of values, or a table from labels to values; got {type(value).__name__}"
        )
    labels = [level.label for level in levels]
    if len(levels) < 2 or len(set(labels)) < len(labels):
        raise Misfit(path, f"must have two or more different levels; got {labels}")
    return levels


def _label(value: Any, path: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float) and str(value).strip():
        return str(value)
    raise Misfit(
        path, f"has a level that needs a label: write the levels as a table, {{ label = {value!r} }}"
    )


def _cells(
    common: _Common, factors: Mapping[str, tuple[_Level, ...]]
) -> Iterator[tuple[str, dict[str, _Level], bool]]:
    """Name, levels and whether it is a cell of a full grid, of each condition."""
    if common.design == "grid":
        for combination in product(*factors.values()):
            levels = dict(zip(factors, combination, strict=True))
            parts = [f"{key}={level.label}" for key, level in levels.items()]
            yield (f"{common.name}: {', '.join(parts)}" if parts else common.name), levels, bool(parts)
        return
    base = {key: of_key[0] for key, of_key in factors.items()}
    yield common.name, base, False
    for key, of_key in factors.items():
        for level in of_key[1:]:
            yield f"{common.name}, {key}={level.label}", {**base, key: level}, False


def _protocol(
    kind: type[Any], rest: Mapping[str, Any], levels: Mapping[str, _Level], setting: Setting
) -> Any:
    values = {**rest, **{key: level.value for key, level in levels.items()}}
    try:
        return kind.model_validate(values, context={"setting": setting})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["loc"] and first["loc"][0] in levels:
            said = first["msg"].removeprefix("Value error, ")
            raise Misfit(levels[str(first["loc"][0])].path, said) from None
        raise


def _judges(named: tuple[str, ...] | None, protocol: Any, *, all_labels: bool) -> tuple[str, ...] | None:
    """Who judges: an answer that states its label is judged only where the table asks for nothing else."""
    if protocol.reads_labels and (named is None or not all_labels):
        return ()
    return () if named is None and isinstance(protocol, Rewriting) else named


def _scored(said: bool | None, judges: tuple[str, ...] | None, protocol: Any, setting: Setting) -> bool:
    """Whether labels are compared with gold: what the table says, else where labels come out."""
    if said is not None:
        return said
    if isinstance(protocol, Rewriting):
        return False
    names = setting.label_judges if judges is None else judges
    return bool(protocol.reads_labels or set(names) & set(setting.label_judges))
