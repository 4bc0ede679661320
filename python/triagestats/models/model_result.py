"""What the results of all models share: a pandas frame, JSON values, and text for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from triagestats.results import Note, plain, preformatted
from triagestats.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["ModelResult", "result_as_json"]


class _Tabular(Protocol):
    @property
    def notes(self) -> tuple[Note, ...]: ...
    def glance(self) -> pl.DataFrame: ...


class ModelResult:
    """A result with `tidy()`, of which the repr is what a notebook shows."""

    __slots__ = ()

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """`tidy()` as a pandas frame; needs pandas and pyarrow."""
        frame: pd.DataFrame = self.tidy().to_pandas()
        return frame

    def _repr_html_(self) -> str:
        return preformatted(self)


def result_as_json(result: _Tabular, **parts: object) -> dict[str, Any]:
    """Parts of a result as plain JSON values, with the schema, the settings of `glance()`, and the notes."""
    notes = [{"code": note.code, "level": note.level, "message": note.message} for note in result.notes]
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": plain(result.glance())[0],
        **parts,
        "notes": notes,
    }
