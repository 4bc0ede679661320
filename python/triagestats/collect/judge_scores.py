"""Judges that bring scores: equivalence to a gold answer, counts of facts, recall of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from triagestats.collect.answer_text import visible_text
from triagestats.collect.contract import Answer, Misfit, Parsed, Scenario
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.judging import UNREAD, RubricJudge
from triagestats.collect.protocols.common import list_field, packaged, text_field
from triagestats.collect.protocols.yes_no import as_bool, as_texts
from triagestats.collect.templates import PromptText

__all__ = ["CountsJudge", "EquivalenceJudge", "RecallJudge"]

_MOST: Final = 10_000
"""No count of facts in a text is larger."""


class EquivalenceJudge(RubricJudge):
    """Says whether an answer is the same as a gold answer, without seeing the question.

    Attributes
    ----------
    gold_field
        Column of the scenario with the gold answer in words.
    template
        What the judge is asked; it may use `answer`, `gold` and `rubric`, and nothing of the scenario.

    Notes
    -----
    The score is 1 where the answers are the same and 0 where not; the metric is `equivalent`.
    """

    kind: ClassVar[str] = "equivalence"
    provides: ClassVar[frozenset[str]] = frozenset({"answer", "rubric", "gold"})

    gold_field: str = "gold_answer"
    template: PromptText = Field(default_factory=packaged("judge_equivalence"))

    @model_validator(mode="after")
    def _blind(self) -> Self:
        for key, slot in self.slots().items():
            if seen := sorted(slot.template.names - self.provides):
                raise ValueError(
                    f"`{key}` uses {seen[0]!r}; this judge must not see the question: its prompts may use "
                    f"{', '.join(sorted(self.provides))} only"
                )
        return self

    def measures(self, scenario: Scenario) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        return ("equivalent",)

    def _visible(self, scenario: Scenario) -> Mapping[str, Any]:  # noqa: ARG002 - that is the point
        return {}

    def _given(self, scenario: Scenario) -> dict[str, Any]:
        return {"gold": text_field(scenario, self.gold_field, "gold_field")}

    def _read(self, verdict: Answer, given: Mapping[str, Any]) -> tuple[Parsed, ...]:  # noqa: ARG002
        found = find_object(visible_text(verdict.text), "equivalent")
        same = None if found is None else as_bool(value_at(found, "equivalent"))
        if same is None:
            return (Parsed(None, "unparsed", UNREAD, metric="equivalent"),)
        return (Parsed(None, score=float(same), metric="equivalent"),)


class CountsJudge(RubricJudge):
    """Counts the facts that an answer keeps, adds and invents.

    Attributes
    ----------
    facts_field
        Column of the scenario with the list of facts.
    template
        What the judge is asked; it may use `answer`, `facts`, `rubric` and the fields of the scenario.

    Notes
    -----
    The metrics are `facts_kept`, `facts_added` and `facts_invented`; the feature `n_facts` is how many there
    are to keep.
    """

    kind: ClassVar[str] = "counts"
    provides: ClassVar[frozenset[str]] = frozenset({"answer", "rubric", "facts"})
    metrics: ClassVar[tuple[str, ...]] = ("facts_kept", "facts_added", "facts_invented")

    facts_field: str = "facts"
    template: PromptText = Field(default_factory=packaged("judge_counts"))

    def measures(self, scenario: Scenario) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        return self.metrics

    def _given(self, scenario: Scenario) -> dict[str, Any]:
        return {"facts": list(list_field(scenario, self.facts_field, "facts_field"))}

    def _read(self, verdict: Answer, given: Mapping[str, Any]) -> tuple[Parsed, ...]:
        facts = given["facts"]
        found = find_object(visible_text(verdict.text), "kept")
        counts: list[float | None] = [None, None, None]
        if found is not None:
            counts = [
                _numbered(value_at(found, "kept"), len(facts)),
                _counted(value_at(found, "added")),
                _counted(value_at(found, "invented")),
            ]
        features = {"n_facts": len(facts)}
        return tuple(
            Parsed(None, "unparsed", UNREAD, metric=metric, features=features)
            if count is None
            else Parsed(None, score=count, metric=metric, features=features)
            for metric, count in zip(self.metrics, counts, strict=True)
        )


class RecallJudge(RubricJudge):
    """Says for each item of a list whether an answer contains it.

    Attributes
    ----------
    items_field
        Column of the scenario with the list of items.
    per_item
        Whether each item is a metric of its own, `recall 1` and so on, beside their share `recall`.
    template
        What the judge is asked; it may use `answer`, `items`, `example`, `rubric` and the fields of the
        scenario.

    Notes
    -----
    The share is read only where every item has a verdict.
    """

    kind: ClassVar[str] = "recall"
    provides: ClassVar[frozenset[str]] = frozenset({"answer", "rubric", "items", "example"})

    items_field: str = "items"
    per_item: bool = True
    template: PromptText = Field(default_factory=packaged("judge_recall"))

    def measures(self, scenario: Scenario) -> tuple[str, ...]:
        try:
            n_items = len(self._given(scenario)["items"]) if self.per_item else 0
        except Misfit:
            n_items = 0
        return ("recall", *(f"recall {number}" for number in range(1, n_items + 1)))

    def _given(self, scenario: Scenario) -> dict[str, Any]:
        items = list(list_field(scenario, self.items_field, "items_field"))
        numbers = ", ".join(f'"{number}": true or false' for number in range(1, len(items) + 1))
        return {"items": items, "example": f"{{{numbers}}}"}

    def _read(self, verdict: Answer, given: Mapping[str, Any]) -> tuple[Parsed, ...]:
        numbers = [str(number) for number in range(1, len(given["items"]) + 1)]
        whole = find_object(visible_text(verdict.text)) or {}
        parts = (one for one in whole.values() if isinstance(one, Mapping))
        found: Mapping[str, Any] = next((one for one in parts if "1" in one), whole)
        present = {number: as_bool(found[number]) for number in numbers if number in found}
        features = {"n_items": len(numbers)}
        unread = [number for number in numbers if present.get(number) is None]
        if unread:
            reason = f"{UNREAD}: nothing on {len(unread)} of {len(numbers)} items"
            share = Parsed(None, "unparsed", reason, metric="recall", features=features)
        else:
            score = sum(map(bool, present.values())) / len(numbers)
            share = Parsed(None, score=score, metric="recall", features=features)
        if not self.per_item:
            return (share,)
        return (share, *(self._item(number, present.get(number), features) for number in numbers))

    @staticmethod
    def _item(number: str, present: bool | None, features: Mapping[str, Any]) -> Parsed:
        metric = f"recall {number}"
        if present is None:
            return Parsed(None, "unparsed", UNREAD, metric=metric, features=features)
        return Parsed(None, score=float(present), metric=metric, features=features)


def _numbered(value: object, n_facts: int) -> float | None:
    """How many different facts a list of their numbers names; a bare count is taken as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if 0 <= value <= n_facts else None
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    numbers = {str(item).strip().rstrip(".") for item in value}
    known = {str(number) for number in range(1, n_facts + 1)}
    if not numbers <= known:
        return None
    return float(len(numbers))


def _counted(value: object) -> float | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if 0 <= value <= _MOST else None
    texts = as_texts(value)
    return None if texts is None else float(len(texts))
