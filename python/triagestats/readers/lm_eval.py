"""Samples of lm-evaluation-harness: `samples_<task>_<date>.jsonl`, with the results beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from triagestats.readers.bounded import File, laid_out
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows, text_of
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_lm_eval"]

_NAME: Final = re.compile(
    r"(?:samples_)?(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?))?"
)
_OWN: Final = frozenset(
    {
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
        "doc_hash",
        "prompt_hash",
        "target_hash",
        "task_name",
    }
)
_HARNESS: Final = "lm-evaluation-harness"
_INVALID: Final = "[invalid]"
_SETTINGS: Final = (
    "n-shot",
    "chat_template_sha",
    "system_instruction_sha",
    "fewshot_as_multiturn",
    "gen_kwargs",
)


def read_lm_eval(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Samples of lm-evaluation-harness as a response table, one row a metric of one filter of one document.

    Parameters
    ----------
    path
        A samples file (written with `--log_samples`), a folder of them, or a list.
    **options
        `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`, `higher_is_better`,
        `unparsed` and `max_bytes`, as in `read`.

    Returns
    -------
    ResponseTable
        With the roles scenario (doc_id), task, model (its true name, from the results file), metric (`acc`;
        with a filter `exact_match,strict-match`, as the harness writes it), response (the filtered one; of
        multiple choice the text of the likeliest), gold (the target), score, status, reason and source.
        Fields of the documents are carried as `doc.<key>`.

    Raises
    ------
    ReadError
        If a file is damaged, or there are results without samples.
    DataError
        If two files are copies.

    Notes
    -----
    Repeats stand in `resps`, and the metric is of the filtered response: there is no score of each repeat,
    which a note says. Files of one model and task with different dates are runs, numbered as repetitions in
    their order; where they differ in shots, chat template, system instruction or generation arguments,
    these are the condition. `[invalid]` is a filter that found nothing: scored as wrong, with the reason.
    Lists (`brier_score`, `word_perplexity`, pairs of f1) are not one number a row and have the status
    `non_scalar`. The harness has no field for errors. The model of a folder without a results file is the
    name of the folder, with `__` as `/`.

    References
    ----------
    Gao, L. et al. (2024), The language model evaluation harness, version 0.4.3, Zenodo,
    doi:10.5281/zenodo.12608602.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import triagestats as ts
    >>> line = {"doc_id": 0, "doc": {"passage_id": "p1"}, "target": "5", "resps": [["#### 5"]],
    ...         "filtered_resps": ["5"], "filter": "strict-match", "metrics": ["exact_match"],
    ...         "exact_match": 1.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "samples_sums_2026-11-30T05-51-00.876340.jsonl")
    ...     _ = path.write_text(json.dumps(line))
    ...     table = ts.read_lm_eval(path, model="acme/mock-7b", cluster="doc.passage_id")
    >>> table.frame.select("scenario", "task", "metric", "score", "cluster_1").rows()
    [('0', 'sums', 'exact_match,strict-match', 1.0, 'p1')]
    """
    return read_as(READER, path, **options)


@dataclass(slots=True)
class _Samples:
    """A samples file with the results that were written beside it."""

    file: File
    task: str
    date: str
    results: Mapping[str, Any]
    condition: str | None = None
    repeats: int = 1
    docs: set[str] = field(default_factory=set)

    @property
    def model(self) -> str | None:
        """The true name, as far as the results say it."""
        named = self.results.get("model_name") or _pretrained(_mapping(self.results.get("config")))
        return str(named) if named else None

    @property
    def settings(self) -> dict[str, Any]:
        """What makes two files of one model and task different conditions rather than runs."""
        config = _mapping(self.results.get("config"))
        every = {**self.results, "gen_kwargs": config.get("gen_kwargs")}
        every["n-shot"] = _mapping(self.results.get("n-shot")).get(self.task)
        return {name: every.get(name) for name in _SETTINGS}


def _recognises(file: File) -> bool:
    return file.kind == "jsonl" and {"doc_id", "resps", "filtered_resps"} <= set(file.keys)


def _companion(file: File) -> str | None:
    if file.kind == "json" and {"results", "configs"} <= set(file.keys):
        return (
            "holds averages of lm-evaluation-harness and no samples; run it with --log_samples, and give the "
            "folder that it writes"
        )
    return None


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "lm-evaluation-harness")
    rows = Collector(ask)
    found = sorted((_samples(file) for file in files), key=lambda one: (one.date, one.file.name))
    _set_conditions(found, ask)
    for samples in found:
        with laid_out(repr(samples.file.name), _HARNESS):
            _add(samples, ask, rows)
    _say(found, rows)
    return rows.done()


READER: Final = Reader("lm_eval", _HARNESS, _recognises, _read, _companion)


def _samples(file: File) -> _Samples:
    stem = file.path.name.removesuffix(".gz").rpartition(".")[0]
    name = _NAME.fullmatch(stem)
    task, date = (name["task"], name["date"] or "") if name else (stem, "")
    results = file.beside(f"results_{date}.json") if date else None
    if results is None:
        others = file.siblings("results*.json")
        results = others[0] if len(others) == 1 else None
    document = results.json() if results is not None else {}
    return _Samples(file, task, date, _mapping(document))


def _set_conditions(found: Sequence[_Samples], ask: Ask) -> None:
    """Settings in which files of one model and task differ become their condition."""
    alike: dict[tuple[str | None, str], list[_Samples]] = {}
    for samples in found:
        alike.setdefault((_model(samples, ask), samples.task), []).append(samples)
    for group in alike.values():
        every = [samples.settings for samples in group]
        differ = [name for name in _SETTINGS if any(one[name] != every[0][name] for one in every)]
        for samples, settings in zip(group, every, strict=True) if differ else ():
            chosen = {name: settings[name] for name in differ}
            samples.condition = json.dumps(chosen, ensure_ascii=False, default=str)


def _model(samples: _Samples, ask: Ask) -> str | None:
    """The model of the results, else what the caller says, else the name of the folder."""
    folder = samples.file.path.absolute().parent.name
    return samples.model or ask.model or (folder.replace("__", "/") if "__" in folder else None)


def _add(samples: _Samples, ask: Ask, rows: Collector) -> None:
    model = _model(samples, ask)
    if samples.date:
        rows.run_ids[samples.file.name] = samples.date
    higher = _mapping(_mapping(samples.results.get("higher_is_better")).get(samples.task))
    filters = _filters(samples)
    occurrences: dict[str, int] = {}
    for _, line in samples.file.lines():
        document = str(line.get("doc_id"))
        occurrence = occurrences.get(document, 0)
        occurrences[document] = occurrence + 1
        used = line.get("filter")
        if used is None:  # versions that do not say: a block of lines a filter
            used = filters[occurrence] if occurrence < len(filters) else f"filter {occurrence + 1}"
        samples.docs.add(document)
        samples.repeats = max(samples.repeats, _repeats(line))
        response, unread = _response(line)
        for metric in _metrics(line):
            scorer = metric if used == "none" else f"{metric},{used}"
            if higher.get(metric) is False:
                rows.lower.add(scorer)
            value = line.get(metric)
            rows.add(
                source=samples.file.name,
                scenario=line.get("doc_id"),
                task=samples.task,
                model=model,
                condition=samples.condition,
                scorer=scorer,
                value=value,
                null="unscored",
                reason=unread,
                unread=unread is not None and value in (0, False),
                response=response,
                gold=line.get("target"),
                extra={"doc": line.get("doc")},
            )


def _filters(samples: _Samples) -> list[str]:
    config = _mapping(_mapping(samples.results.get("configs")).get(samples.task))
    named = [_mapping(one).get("name") for one in config.get("filter_list") or ()]
    return [str(name) for name in named if name] or ["none"]


def _metrics(line: Mapping[str, Any]) -> list[str]:
    stated = line.get("metrics")
    names = stated if isinstance(stated, list) else [name for name in line if name not in _OWN]
    return [str(name) for name in names if name in line]


def _repeats(line: Mapping[str, Any]) -> int:
    """Answers to one request; the requests of multiple choice have one each."""
    return max((len(request) for request in line.get("resps") or () if isinstance(request, list)), default=1)


def _response(line: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The answer that was scored, and why it counts as not read."""
    filtered = line.get("filtered_resps")
    answers = filtered if isinstance(filtered, list) else [filtered]
    requests = list(_requests(line.get("arguments")))
    if _likelihoods(answers):
        return _likeliest(answers, [request[1] for request in requests if len(request) > 1]), None
    if requests and all(len(request) == 1 for request in requests):
        return None, None  # the likelihood of a text, not an answer
    response = text_of(answers[0] if len(answers) == 1 else answers)
    if any(answer == _INVALID for answer in answers):
        return response, _INVALID
    raw = [
        text for request in line.get("resps") or () for text in (request if isinstance(request, list) else ())
    ]
    return response, "empty response" if raw and not any(str(text).strip() for text in raw) else None


def _requests(arguments: object) -> Iterator[list[Any]]:
    """Arguments of each request: `{"gen_args_0": {"arg_0": ...}}`, or lists in older versions."""
    every = arguments.values() if isinstance(arguments, Mapping) else arguments
    for request in every if isinstance(every, Iterable) else ():
        yield list(request.values()) if isinstance(request, Mapping) else list(request)


def _likelihoods(answers: Sequence[object]) -> bool:
    return bool(answers) and all(
        isinstance(answer, list) and len(answer) == 2 and str(answer[1]) in ("True", "False", "0", "1")
        for answer in answers
    )


def _likeliest(answers: Sequence[Any], choices: Sequence[Any]) -> str | None:
    """The text of the likeliest choice; its number where the texts do not tell the choices apart."""
    if len(answers) < 2:
        return None  # how likely one continuation is, not a choice
    half = len(choices) // 2
    if half > 1 and choices[:half] == choices[half:]:  # each choice again without its question
        answers, choices = answers[:half], choices[:half]
    best = max(range(len(answers)), key=lambda choice: float(answers[choice][0]))
    told_apart = len(choices) == len(answers) == len({str(choice) for choice in choices})
    return str(choices[best]).strip() if told_apart else str(best)


def _say(found: Sequence[_Samples], rows: Collector) -> None:
    for samples in found:
        name = samples.file.name
        if samples.repeats > 1:
            text = (
                f"{name!r} has {samples.repeats} answers to each request, and one score of what the filter "
                "made of them: the harness writes no score of each, so that repetitions cannot be recovered. "
                "One file a seed has them."
            )
            rows.notes.append(Note("repeats", text, "caution"))
        planned = _mapping(_mapping(samples.results.get("n-samples")).get(samples.task)).get("effective")
        if isinstance(planned, int) and planned > len(samples.docs):
            text = f"{name!r} has {len(samples.docs):,} of the {planned:,} documents that its results count."
            rows.notes.append(Note("incomplete", text, "caution"))


def _pretrained(config: Mapping[str, Any]) -> str | None:
    """The model among the arguments of the model, which are text or a mapping."""
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(part.split("=", 1) for part in arguments.split(",") if "=" in part)
    named = _mapping(arguments)
    return named.get("pretrained") or named.get("model")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
