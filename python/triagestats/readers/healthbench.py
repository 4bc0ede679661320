"""HealthBench results of simple-evals: the `_allresults.json` files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

from triagestats.errors import ReadError
from triagestats.readers.bounded import File
from triagestats.readers.claims import refuse_nameless
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows
from triagestats.readers.shapes import elements, mapping, mappings
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_healthbench"]

_OVERALL: Final = "overall_score"
_KEYS: Final = {"score", "metrics", "htmls"}
_STEM: Final = re.compile(
    r"(?P<task>healthbench(?:_hard|_consensus|_meta|_professional)?)_(?P<model>.+?)"
    r"(?:_\d{8}_\d{4,6})?(?:_DEBUG)?(?:_allresults)?",
    re.IGNORECASE,
)


def _recognises(file: File) -> bool:
    return file.kind == "json" and (set(file.keys) >= _KEYS or b'"example_level_metadata"' in file.head)


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "HealthBench")
    rows = Collector(ask)
    refuse_nameless({file.name: _named(file)[1] for file in files}, ask, "HealthBench")
    for file in files:
        examples = _examples(file)
        scored = [example for example in examples if isinstance(example, Mapping)]
        if not scored:
            raise ReadError(
                f"{file.name!r} has no scores of examples: `metadata.example_level_metadata` is empty. Only "
                "HealthBench fills it in; other tasks of simple-evals keep the mean alone"
            )
        if lost := len(examples) - len(scored):
            message = f"{file.name!r}: {lost:,} of {len(examples):,} examples have no data, not even an id."
            rows.notes.append(Note("no_data", message, "caution"))
        task, model = _named(file)
        for example in scored:
            _add(rows, file, example, task, ask.model or model)
    return rows.done()


def _companion(file: File) -> str | None:
    if file.kind == "json" and "score" in file.keys and any(k.endswith(":bootstrap_std") for k in file.keys):
        return (
            "holds means of simple-evals over all examples; the examples are in the file of the same name "
            "that ends in `_allresults.json`"
        )
    return None


READER: Final = Reader("healthbench", "HealthBench (simple-evals)", _recognises, _read, _companion)


def read_healthbench(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Examples and rubric items of HealthBench, as simple-evals writes them to `..._allresults.json`.

    Parameters
    ----------
    path
        A result file, a folder, or a list of them.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`. The model is in the name of the file alone; `model=`
        gives it where a file was renamed.

    Returns
    -------
    ResponseTable
        The metric `overall_score` is that of an example; `rubric_0/points=8` says whether the first criterion
        of 8 points was met. Columns `tags.axis` and `tags.level` and `criterion` describe the criteria.

    Raises
    ------
    ReadError
        If a file is damaged, or holds means alone.

    Notes
    -----
    Scores of an example may be negative, and stay so: HealthBench clips means, never examples. Repeats are
    counted in order of occurrence, as `completion_id` is equal for equal completions. The `bootstrap_std` of
    the file takes repeats for independent examples.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> example = {"score": -0.5, "prompt_id": "hb-1",
    ...            "completion": [{"role": "assistant", "content": "Wait."}],
    ...            "rubric_items": [{"criterion": "Advises help", "points": 8, "criteria_met": False,
    ...                              "tags": ["level:example", "axis:accuracy"]}]}
    >>> run = {"score": 0, "metrics": {}, "htmls": [], "convos": [],
    ...        "metadata": {"example_level_metadata": [example]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "healthbench_acme-7b_allresults.json")
    ...     _ = path.write_text(json.dumps(run))
    ...     table = ts.read_healthbench(path)
    >>> table.frame.select("scenario", "model", "metric", "score").rows()
    [('hb-1', 'acme-7b', 'overall_score', -0.5), ('hb-1', 'acme-7b', 'rubric_0/points=8', 0.0)]
    """
    return read_as(READER, path, **options)


def _examples(file: File) -> list[Any]:
    for key, value in file.stream("htmls", "convos"):
        if key == "metadata":
            return elements(mapping(value).get("example_level_metadata"))
    return []


def _named(file: File) -> tuple[str, str | None]:
    stem = re.sub(r"\.json(\.gz)?$", "", file.path.name, flags=re.IGNORECASE)
    found = _STEM.fullmatch(stem)
    return ("healthbench", None) if found is None else (found["task"], found["model"])


def _add(rows: Collector, file: File, example: Mapping[str, Any], task: str, model: str | None) -> None:
    item = example.get("prompt_id")
    if item is None:
        raise ReadError(f"{file.name!r} has an example without a `prompt_id`, which names the item")
    turns = mappings(example.get("completion"))
    said = [turn.get("content") for turn in turns if turn.get("role", "assistant") == "assistant"]
    common: dict[str, Any] = {
        "source": file.name,
        "task": task,
        "model": model,
        "scenario": item,
        "null": "unscored",
        "response": said[-1] if said else None,
    }
    rows.add(**common, scorer=_OVERALL, value=example.get("score"))
    for position, rubric in enumerate(mappings(example.get("rubric_items"))):
        rows.add(
            **common,
            scorer=f"rubric_{position}",
            measure=f"points={rubric.get('points')}",
            value=rubric.get("criteria_met"),
            extra={"criterion": rubric.get("criterion"), "tags": _tags(rubric.get("tags"))},
        )


def _tags(tags: object) -> dict[str, object]:
    """`axis:accuracy` under `axis`."""
    parts = [tag.partition(":") for tag in elements(tags) if isinstance(tag, str)]
    return {kind: value for kind, colon, value in parts if colon}
