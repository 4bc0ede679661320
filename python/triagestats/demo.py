"""The bundled study as a response table."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Final

from triagestats.table import ResponseTable

__all__ = ["demo_table"]

LEVELS: Final = ("self_care", "routine", "urgent", "emergency")


def demo_table() -> ResponseTable:
    """The bundled triage study: letters against free text with two judges.

    Made by `triagestats.simulate` with a known truth; the codebook stands beside the data files.

    Returns
    -------
    ResponseTable
        17 scenarios x 5 models x 3 variants x 5 repetitions in each of two conditions, some answers
        unparsed and some missing.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.demo_table().frame["scenario"].n_unique()
    17
    """
    with as_file(files("triagestats") / "data") as folder:
        table = ResponseTable(folder / "demo_responses.csv", levels=LEVELS)
        return table.with_judgments(folder / "demo_judgments.csv")
