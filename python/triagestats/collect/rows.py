"""From outcomes to rows: one row an answer, or a judgment of it, with everything known of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from triagestats.collect.asking import Made, NotAsked, Outcome, Verdict
from triagestats.collect.calls import canonical, prompt_hash
from triagestats.collect.contract import CallFailed, Parsed
from triagestats.collect.study import COLUMNS, Study
from triagestats.errors import DataError
from triagestats.labels import label_of
from triagestats.roles import role_spelled

__all__ = ["LABEL_METRIC", "rows_of"]

LABEL_METRIC: Final = "correct"
"""What is measured by a label against the gold label, where other things are measured beside it."""
_HELPERS: Final = ("audit", "match", "filter")
"""Steps of a protocol in which another model, or the same in another part, says something of the answer."""
_UNSCORED: Final = "the condition is not compared with gold labels"


def rows_of(outcome: Outcome, study: Study) -> Iterator[dict[str, Any]]:
    """The rows of an answer: one a judge and metric, or one a metric where nobody judges.

    Raises
    ------
    DataError
        If a feature has the name of another column, or one that the table reads as a role.
    """
    base = _base(outcome, study)
    scored = outcome.unit.condition.scored
    if outcome.trace is None:
        judged = [
            {"judge": judge.name, "metric": metric}
            for judge in study.judges_of(outcome.unit.condition)
            for metric in judge.measures(outcome.unit.scenario)
        ]
        for which in judged or [{}]:
            yield base | which | _failed(outcome.failure)
        return
    features = dict(outcome.trace.features)
    if not outcome.verdicts:
        for parsed in outcome.trace.parsed:
            yield _with(base | _read(parsed, scored=scored), features | dict(parsed.features))
        return
    own = outcome.trace.parsed[0] if outcome.trace.parsed else None
    if own is not None:
        features |= dict(own.features)
        base |= {"own_label": own.label, "confidence": own.confidence}
    for verdict in outcome.verdicts:
        row = base | _calls_of_judge(verdict)
        if verdict.failure is not None:
            for metric in study.judges[verdict.judge].measures(outcome.unit.scenario):
                yield _with(row | {"metric": metric} | _failed(verdict.failure), features)
        for parsed in verdict.parsed:
            read = _read(parsed, scored=scored) | {"confidence": base["confidence"]}
            yield _with(row | read, features | dict(parsed.features))


def _base(outcome: Outcome, study: Study) -> dict[str, Any]:
    unit = outcome.unit
    scenario = unit.scenario
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "scenario": scenario.id,
        "model": unit.model,
        "condition": unit.condition.name,
        "repetition": unit.repetition,
        "gold": scenario.gold if unit.condition.scored else None,
        "cluster": scenario.cluster,
        "stratum": scenario.stratum,
    }
    row |= _calls(outcome.calls)
    if outcome.trace is not None:
        row["text"] = outcome.trace.text
        row["transcript"] = canonical(list(outcome.trace.transcript)) if outcome.trace.transcript else None
    row |= {name: label_of(scenario.fields.get(name)) for name in study.carry}
    for name, level in unit.condition.factors.items():
        row[f"factor_{name}" if name in row or role_spelled(name) else name] = level
    return row


def _calls(calls: Sequence[Made]) -> dict[str, Any]:
    """Sums over the calls of an answer, and what is known of the last one that is not of a helper."""
    if not calls:
        return {}
    last = next((made for made in reversed(calls) if made.call.role not in _HELPERS), calls[-1])
    return {
        "n_calls": len(calls),
        "prompt_tokens": _total(made.answer.prompt_tokens for made in calls),
        "completion_tokens": _total(made.answer.completion_tokens for made in calls),
        "latency": sum(made.answer.latency for made in calls),
        "refusal": last.answer.refusal,
        "finish_reason": last.answer.finish_reason,
        "returned_model": last.answer.returned_model,
        "prompt_hash": prompt_hash(last.call.body["messages"]),
        "call": last.call.key,
    }


def _calls_of_judge(verdict: Verdict) -> dict[str, Any]:
    return {
        "judge": verdict.judge,
        "judge_text": verdict.calls[-1].answer.text if verdict.calls else None,
        "judge_prompt_tokens": _total(made.answer.prompt_tokens for made in verdict.calls),
        "judge_completion_tokens": _total(made.answer.completion_tokens for made in verdict.calls),
    }


def _total(counts: Iterator[int | None]) -> int | None:
    """A sum, or None where an endpoint counted nothing."""
    found = list(counts)
    known = [count for count in found if count is not None]
    return sum(known) if found and len(known) == len(found) else None


def _read(parsed: Parsed, *, scored: bool) -> dict[str, Any]:
    outside = parsed.status == "ok" and parsed.score is None and not scored
    return {
        "metric": parsed.metric,
        "response": parsed.label,
        "score": parsed.score,
        "status": "unscored" if outside else parsed.status,
        "reason": parsed.reason or (_UNSCORED if outside else None),
        "confidence": parsed.confidence,
    }


def _failed(failure: CallFailed | None) -> dict[str, Any]:
    """No answer: an error where the call was tried, missing where it was not."""
    status = "missing" if failure is None or isinstance(failure, NotAsked) else "error"
    return {"status": status, "reason": str(failure)}


def _with(row: dict[str, Any], features: Mapping[str, Any]) -> dict[str, Any]:
    for name in features:
        if name in row or role_spelled(name):
            raise DataError(f"the feature {name!r} has the name of another column of the response table")
    return row | dict(features)
