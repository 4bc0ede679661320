"""Results of promptfoo, of any version of its JSON, as answers with what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from triagestats.errors import ReadError
from triagestats.readers.bounded import File
from triagestats.readers.items import shortened
from triagestats.readers.rows import text_of
from triagestats.readers.shapes import elements, mapping, mappings

__all__ = ["OVERALL", "Answer", "Evaluation", "evaluation"]

OVERALL: Final = "__overall__"
"""The weighted mean of all assertions of a result."""

_ERROR: Final = 2
_NOTHING_ASKED: Final = "No assertions"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is kept of one result: little, because results come in no order and are sorted first.

    Attributes
    ----------
    source
        The file.
    own_id
        Of the result, the same in every file that it was written to.
    test, column
        `testIdx` and `promptIdx`; version 2 has neither.
    model, prompt
        Labels of the provider and of the prompt.
    vars, fields
        Variables, and all that is known of the test.
    scores, overall
        Scores by their metric; the weighted mean of all.
    failed
        Why graders failed, by their metric.
    error
        Why there is no answer, or None.
    cached, response
        Whether the answer came from the cache, and the answer.
    """

    source: str
    own_id: str | None
    test: int | None
    column: int | None
    model: str | None
    prompt: str | None
    vars: Mapping[str, object]
    fields: Mapping[str, object]
    scores: Mapping[str, object]
    overall: object
    failed: Mapping[str, str]
    error: str | None
    cached: bool
    response: object


@dataclass(slots=True)
class Evaluation:
    """The results of one file, and the description of its configuration."""

    file: File
    description: str | None = None
    answers: list[Answer] = field(default_factory=list)
    tests: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    known: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def once(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Equal variables, which stand in the results of every prompt and provider, in memory once."""
        return self.known.setdefault(text_of(fields) or "", fields)


def evaluation(file: File) -> Evaluation:
    """The results of a file.

    Raises
    ------
    ReadError
        If it is damaged, or holds something that is no result.
    """
    found = Evaluation(file)
    if file.kind == "jsonl":
        found.answers += [_answer(result, found) for _, result in file.lines()]
        return found
    whole: Mapping[str, Any] = {}
    results: list[Any] = []
    for key, value in file.stream("results"):
        if key == "results" and "results" in mapping(value):
            whole = value
        elif key == "results":
            results.append(value)
        elif key == "config":
            found.description = text_of(mapping(value).get("description"))
    _remember_tests(found, mapping(whole.get("table")))
    found.answers += [_answer(result, found) for result in elements(whole.get("results")) or results]
    return found


def _remember_tests(found: Evaluation, table: Mapping[str, Any]) -> None:
    """Version 2: only its table has the tests, one a row, with variables in the order of the head."""
    names = elements(mapping(table.get("head")).get("vars"))
    for row in mappings(table.get("body")):
        test = mapping(row.get("test"))
        values = test.get("vars") or dict(zip(names, elements(row.get("vars")), strict=False))
        if "description" in row:
            test = {"description": row["description"], **test}
        found.tests.setdefault(_key(mapping(values)), test)


def _key(variables: Mapping[str, Any]) -> str:
    """Variables as text, whatever their order."""
    return text_of(dict(sorted(variables.items()))) or ""


def _answer(result: object, found: Evaluation) -> Answer:
    if not isinstance(result, Mapping) or "provider" not in result:
        raise ReadError(
            f"{found.file.name!r} has a result without a `provider`, so that it is no result of promptfoo; "
            "write it again with `promptfoo eval -o results.json`"
        )
    variables = found.once(mapping(result.get("vars")))
    test = mapping(result.get("testCase")) or found.tests.get(_key(variables), {})
    grading, response = mapping(result.get("gradingResult")), mapping(result.get("response"))
    components = mappings(grading.get("componentResults"))
    error = _error(result, grading, response)
    metadata = mapping(test.get("metadata")) or mapping(result.get("metadata"))
    metadata = {key: value for key, value in metadata.items() if not key.startswith("_promptfoo")}
    named = mapping(result.get("namedScores")) or mapping(grading.get("namedScores"))
    scores = {**named, **_unnamed(components)}
    if error is not None:
        planned = _metrics(mappings(test.get("assert")))
        scores |= {name: None for name in planned if name not in scores}
    return Answer(
        source=found.file.name,
        own_id=text_of(result.get("id")),
        test=_index(result.get("testIdx")),
        column=_index(result.get("promptIdx")),
        model=_label(result["provider"], "label", "id"),
        prompt=_label(result.get("prompt"), "label", "display", "raw"),
        vars=variables,
        fields=found.once({"vars": variables, "metadata": metadata, "description": test.get("description")}),
        scores=scores,
        overall=None if grading.get("reason") == _NOTHING_ASKED else result.get("score"),
        failed=_failed(components),
        error=error,
        cached=response.get("cached") is True,
        response=response.get("output"),
    )


def _error(result: Mapping[str, Any], grading: Mapping[str, Any], response: Mapping[str, Any]) -> str | None:
    """Why there is no answer; a failed assertion is written as an error too, and is none."""
    reason = result.get("failureReason")
    if reason is not None:
        failed = reason == _ERROR
    else:
        failed = bool(response.get("error")) or (bool(result.get("error")) and not grading)
    if not failed:
        return None
    return text_of(result.get("error") or response.get("error")) or "error without a message"


def _unnamed(components: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Scores of assertions without a metric, by their type; that of the only assertion is the overall."""
    names = _types([mapping(part.get("assertion")) for part in components])
    return {name: part.get("score") for name, part in zip(names, components, strict=True) if name}


def _metrics(planned: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names of the scores that assertions would have given; those filled in by templates are not known."""
    for part, name in zip(planned, _types(planned), strict=True):
        metric = part.get("metric") or name
        if isinstance(metric, str) and "{{" not in metric:
            yield metric


def _types(assertions: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Types of assertions without a metric where there are several; equal ones by number, `equals #2`."""
    seen: Counter[str] = Counter()
    names: list[str | None] = []
    for assertion in assertions:
        kind = str(assertion.get("type") or "")
        if len(assertions) == 1 or not kind or assertion.get("metric"):
            names.append(None)
        else:
            seen[kind] += 1
            names.append(kind if seen[kind] == 1 else f"{kind} #{seen[kind]}")
    return names


def _failed(components: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Reasons of graders that failed, by their metric; under `__overall__` that of any."""
    failed: dict[str, str] = {}
    assertions = [mapping(part.get("assertion")) for part in components]
    for part, assertion, name in zip(components, assertions, _types(assertions), strict=True):
        if mapping(part.get("metadata")).get("graderError"):
            reason = text_of(part.get("reason")) or "the grader failed"
            failed |= {str(assertion.get("metric") or name): reason, OVERALL: reason}
    return failed


def _label(value: object, *names: str) -> str | None:
    """The first of some fields of a provider or prompt that is not empty, or the text that stands for it."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in names if value.get(name)), None)
    text = text_of(value)
    return None if text is None else shortened(text)


def _index(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
