"""What collecting leaves: the response table, its file, and a manifest."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import polars as pl

from triagestats.collect.plan import planned_calls
from triagestats.collect.rows import LABEL_METRIC
from triagestats.collect.store import Store
from triagestats.collect.study import COLUMNS, Study
from triagestats.errors import ArgumentError, ReadError
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["MANIFEST", "check_output", "frame_of", "scored_frame", "table_of", "write_output"]

MANIFEST: Final = "manifest.json"
_INT64: Final = 2**63
_OPTIONAL: Final = ("judge", "metric", "cluster", "stratum", "own_label", "transcript", "refusal")
_KINDS: Final = {
    "repetition": pl.Int64,
    "score": pl.Float64,
    "confidence": pl.Float64,
    "n_calls": pl.Int64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "latency": pl.Float64,
    "judge_prompt_tokens": pl.Int64,
    "judge_completion_tokens": pl.Int64,
}


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a frame, without the optional columns that nothing fills.

    A metric is named for each row where any has one.
    """
    schema = {name: _KINDS.get(name, pl.String) for name in COLUMNS}
    names = dict.fromkeys(name for row in rows for name in row)
    others = [name for name in names if name not in schema]
    frame = pl.DataFrame(
        [pl.Series(name, [row[name] for row in rows], dtype=kind) for name, kind in schema.items()]
        + [_series(name, [row.get(name) for row in rows]) for name in others]
    )
    if frame["metric"].count():
        frame = frame.with_columns(pl.col("metric").fill_null(LABEL_METRIC))
    judged = frame["judge"].count() > 0
    empty = [name for name in _OPTIONAL if not frame[name].count()]
    if not judged:
        empty += ["judge_text", "judge_prompt_tokens", "judge_completion_tokens"]
    return frame.drop(empty)


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of plain values; as text where its values are of kinds that no other column holds together."""
    kinds = {type(value) for value in values if value is not None}
    long = int in kinds and any(isinstance(value, int) and abs(value) >= _INT64 for value in values)
    if long or (bool in kinds and len(kinds) > 1):
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, values, strict=False)


def table_of(
    frame: pl.DataFrame, study: Study, notes: Sequence[Note], *, metric: str | None = None
) -> ResponseTable:
    """The response table of one metric: the label against the gold label where that is measured.

    Raises
    ------
    ArgumentError
        If there is no such metric.
    """
    has: dict[str, Any] = {
        name: name if name in frame.columns else False for name in ("judge", "cluster", "stratum")
    }
    metrics = frame["metric"].unique().sort().to_list() if "metric" in frame.columns else []
    if metric is not None and metric not in metrics:
        raise ArgumentError(f"`metric` must be one of {metrics or 'none: nothing is scored'}; got {metric!r}")
    chosen = metric or (LABEL_METRIC if LABEL_METRIC in metrics else metrics[0] if metrics else None)
    if "cluster" in frame.columns and frame["cluster"].null_count():
        # A scenario that names no cluster is one of its own.
        own = pl.concat_str(pl.lit("scenario "), pl.col("scenario"))
        frame = frame.with_columns(pl.col("cluster").fill_null(own))
    table = ResponseTable(
        frame,
        scenario="scenario",
        model="model",
        condition="condition",
        repetition="repetition",
        response="response",
        gold="gold",
        score="score",
        status="status",
        reason="reason",
        metric=("metric", chosen) if chosen else False,
        variant=False,
        task=False,
        source=False,
        levels=study.levels,
        **has,
    )
    return table.with_notes(*notes)


def scored_frame(frame: pl.DataFrame, study: Study) -> pl.DataFrame:
    """The rows of every metric as the response table has them: sorted, and labels scored."""
    metrics = frame["metric"].unique().sort().to_list() if "metric" in frame.columns else [None]
    frames = [table_of(frame, study, (), metric=metric).frame for metric in metrics]
    return pl.concat(frames, how="diagonal_relaxed")


def check_output(output: Path, store: Path | None, scenarios: Path | None) -> None:
    """Refuse before anything is asked what could not be written, or would destroy something.

    Raises
    ------
    ArgumentError
        If so.
    """
    if output.suffix.lower() != ".parquet":
        raise ArgumentError(f"`output` must end in .parquet; got {str(output)!r}")
    if not output.parent.is_dir():
        raise ArgumentError(f"`output`: there is no folder {str(output.parent)!r}; make it first")
    if store is not None and output.absolute() == store.absolute():
        raise ArgumentError(f"`output` and `store` are both {str(output)!r}; choose two names")
    if scenarios is not None and output.resolve() == scenarios.resolve():
        raise ArgumentError(f"`output` is the file of the scenarios, {str(output)!r}; choose another name")
    if output.is_dir():
        raise ArgumentError(f"`output`: {str(output)!r} is a folder; name a file in it")
    _outputs(output.parent / MANIFEST)


def _outputs(manifest: Path) -> dict[str, Any]:
    """What a manifest says of the outputs of its folder, by their names."""
    if not manifest.exists():
        return {}
    try:
        found = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        found = None
    outputs = found.get("outputs") if isinstance(found, dict) else None
    if not isinstance(outputs, dict):
        raise ArgumentError(
            f"`output`: {str(manifest)!r} is there and is no manifest of this program; choose another folder"
        )
    return outputs


def write_output(
    output: Path, frame: pl.DataFrame, study: Study, store: Store, reasons: Sequence[str]
) -> None:
    """Write the table, and beside it a manifest that says what it was made of.

    The manifest of a folder has an entry for each output in it.

    Raises
    ------
    ReadError
        If a file cannot be written.
    """
    manifest = output.parent / MANIFEST
    try:
        frame.write_parquet(output)
        entry = _entry(output, frame, study, store, reasons)
        outputs = {**_outputs(manifest), output.name: entry}
        text = json.dumps({"outputs": outputs}, indent=2, ensure_ascii=False) + "\n"
        manifest.write_text(text, encoding="utf-8")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ReadError(f"`output`: {str(output)!r} cannot be written: {error}") from error


def _entry(
    output: Path, frame: pl.DataFrame, study: Study, store: Store, reasons: Sequence[str]
) -> dict[str, Any]:
    """Everything that says where a table came from, as plain values; never a key."""
    stored = store.calls_by_model()
    statuses = frame["status"].value_counts().sort("count", "status", descending=[True, False])
    return {
        "sha256": hashlib.sha256(output.read_bytes()).hexdigest(),
        "rows": frame.height,
        "statuses": dict(statuses.iter_rows()),
        "calls": {
            one.model: {
                "at_least": one.at_least,
                "at_most": one.at_most,
                "stored": stored.get(one.model, 0),
            }
            for one in planned_calls(study)
        },
        "tokens": store.totals().tokens,
        "stopped": list(reasons),
        "study": {"name": study.name, "seed": study.seed, **study.record()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("triagestats", "openai", "jinja2", "pydantic", "polars")},
        },
    }
