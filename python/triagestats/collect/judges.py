"""From a table of the study file to its judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from triagestats.collect.contract import Judge, Misfit, Setting
from triagestats.collect.judge_scores import CountsJudge, EquivalenceJudge, RecallJudge
from triagestats.collect.judging import DispositionJudge, RubricJudge

__all__ = ["build_judges"]

_KINDS: Final[dict[str, type[RubricJudge]]] = {
    kind.kind: kind for kind in (DispositionJudge, EquivalenceJudge, CountsJudge, RecallJudge)
}


def build_judges(table: Mapping[str, Any], setting: Setting) -> tuple[Judge, ...]:
    """The judge of one table `[[judges]]`, by its `kind`.

    Raises
    ------
    Misfit, pydantic.ValidationError
        If a key does not fit.
    """
    name = table.get("kind", "disposition")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Misfit(("kind",), f"must be one of {', '.join(_KINDS)}; got {name!r}")
    rest = {key: value for key, value in table.items() if key != "kind"}
    return (kind.model_validate(rest, context={"setting": setting}),)
