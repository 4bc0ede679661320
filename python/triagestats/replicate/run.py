"""replicate_study: a published study re-run from its released tables."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import polars as pl

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentTypeError, ReadError
from triagestats.replicate import medsafe, narrativeshield, study1, study2
from triagestats.replicate.entry import Entry, Verdict, judged
from triagestats.replicate.published import Expected, Study, read_expected
from triagestats.replicate.tables import Folder, Recipes
from triagestats.replicate.text import report_text
from triagestats.results import Shown, plain, tidy_frame
from triagestats.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Replication", "replicate_study"]

_ENTRIES: Final = pl.Schema(
    {"id": pl.String, "kind": pl.String, "claim": pl.String}
    | dict.fromkeys(("published", "value", "match", "mark", "reason", "clustered"), pl.String)
    | {"marked": pl.Boolean, "recomputed_agrees": pl.Boolean}
)
_STUDIES: Final[Mapping[Study, tuple[Mapping[str, int], Callable[[Folder, Expected], Recipes]]]] = {
    "study1": (study1.BLOCKS, study1.recipes),
    "study2": (study2.BLOCKS, study2.recipes),
    "narrativeshield": (narrativeshield.BLOCKS, narrativeshield.recipes),
    "medsafe": (medsafe.BLOCKS, medsafe.recipes),
}


@dataclass(frozen=True, slots=True, eq=False)
class Replication(Shown):
    """A published study beside what the library finds in its tables.

    Attributes
    ----------
    study
        Which one.
    folder
        Where its tables are.
    entries
        Everything in its expected.json: what was printed, then reference values that only the folder has.
    not_derivable
        What the folder itself says cannot be recomputed.

    Examples
    --------
    A folder with two discordant counts, and what was printed of them:

    >>> import json, pathlib, tempfile
    >>> import triagestats as ts
    >>> entry = {"id": "s2_mcnemar_check_32_13", "published": {"b": 32, "c": 13, "p": 0.0066}, "match": "yes"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "expected.json")
    ...     _ = path.write_text(json.dumps({"published": [entry]}))
    ...     found = ts.replicate_study("study2", folder)
    >>> isinstance(found, ts.Replication), found.entries[0].match, found.failed
    (True, 'yes', ())
    """

    study: Study
    folder: str
    entries: tuple[Entry, ...]
    not_derivable: tuple[str, ...]

    @property
    def failed(self) -> tuple[Entry, ...]:
        """Entries that the folder marks as matching and that do not match."""
        return tuple(entry for entry in self.entries if entry.failed)

    @property
    def frame(self) -> pl.DataFrame:
        """One row an entry, values as JSON text and clustered answers as text."""
        rows = [
            {
                "id": entry.id,
                "kind": entry.kind,
                "claim": entry.claim or None,
                "published": _text(entry.published),
                "value": _text(entry.value),
                "match": entry.match,
                "marked": entry.marked,
                "mark": entry.mark,
                "recomputed_agrees": entry.recomputed_agrees,
                "reason": entry.reason or None,
                "clustered": "; ".join(map(str, entry.clustered)) or None,
            }
            for entry in self.entries
        ]
        return pl.DataFrame(rows, schema=_ENTRIES)

    def tidy(self) -> pl.DataFrame:
        """The clustered answers, one row each, with the columns of the glossary.

        `term` is the id of the entry, `contrast` what is estimated, `reason` how the entry was judged.
        """
        return tidy_frame(
            {
                "estimand": "clustered_answer",
                "term": entry.id,
                "contrast": answer.about,
                "estimate": answer.estimate,
                "conf_low": answer.conf_low,
                "conf_high": answer.conf_high,
                "p_value": answer.p_value,
                "n_clusters": answer.n_clusters,
                "method": answer.method or None,
                "status": "ok" if answer.estimate is not None or answer.p_value is not None else "undefined",
                "reason": answer.note or None,
            }
            for entry in self.entries
            for answer in entry.clustered
        )

    def glance(self) -> pl.DataFrame:
        """One row: how many entries match."""
        printed = [entry for entry in self.entries if entry.kind == "published"]
        kept = [entry for entry in self.entries if entry.kind == "reference"]
        counts = Counter(entry.match for entry in printed)
        agreeing = sum(entry.match in ("yes", "within Monte Carlo error") for entry in kept)
        return pl.DataFrame(
            {"study": [self.study], "n_published": [len(printed)]}
            | {f"n_{verdict.replace(' ', '_').lower()}": [counts[verdict]] for verdict in get_args(Verdict)}
            | {
                "n_marked": [sum(entry.marked for entry in printed)],
                "n_marked_not_derivable": [
                    sum(entry.marked and entry.match == "not derivable" for entry in printed)
                ],
                "n_failed": [len(self.failed)],
                "n_reference": [len(kept)],
                "n_reference_agree": [agreeing],
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """`frame` as a pandas frame; needs pandas and pyarrow."""
        frame: pd.DataFrame = self.frame.to_pandas()
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Entries and counts as plain JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "study": self.study,
            "data": self.folder,
            "summary": plain(self.glance())[0],
            "failed": [entry.id for entry in self.failed],
            "entries": [_plain(entry.to_dict()) for entry in self.entries],
            "not_derivable": list(self.not_derivable),
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1)

    def __repr__(self) -> str:
        return report_text(self.study, self.folder, self.entries, self.not_derivable)


def replicate_study(study: Study, data: str | os.PathLike[str]) -> Replication:
    """Re-run a published study: what was printed, what the library finds, whether they match.

    Parameters
    ----------
    study
        `study1` and `study2`: formats of triage questions. `narrativeshield`: exam questions in three voices.
        `medsafe`: a board of escalation decisions.
    data
        The folder of its tables and its expected.json, from which every published number is read.

    Returns
    -------
    Replication
        `entries`, `failed`, `frame`, `tidy()` with the clustered answers.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no such study, or `data` is no path.
    ReadError, DataError
        If the folder or its expected.json cannot be read.

    Notes
    -----
    A printed number matches where that of the library rounds to it, or lies within the tolerance that the
    folder states. A number that the source resampled matches within Monte Carlo error where it lies in the
    band that four standard errors of both sets of replicates leave. An entry whose table is not in the
    folder, or which needs an extra that is not installed, is not derivable.

    Examples
    --------
    >>> import triagestats as ts
    >>> try:
    ...     ts.replicate_study("study3", ".")
    ... except ts.TriagestatsError as error:
    ...     print(str(error).partition(";")[0])
    `study` must be one of 'study1', 'study2', 'narrativeshield', 'medsafe'
    """
    valid_choice("study", study, Study)
    if not isinstance(data, str | os.PathLike):
        raise ArgumentTypeError(f"`data` must be the path of a folder; got {type(data).__name__}")
    path = Path(data)
    if not path.is_dir():
        raise ReadError(f"`data` must be a folder with the tables of {study}; {str(path)!r} is none")
    blocks, make = _STUDIES[study]
    expected = read_expected(path, blocks)
    found = make(Folder(path), expected)
    return Replication(
        study=study,
        folder=str(path),
        entries=tuple(judged(published, found.found(published)) for published in expected.entries),
        not_derivable=expected.not_derivable,
    )


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A JSON value without numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
