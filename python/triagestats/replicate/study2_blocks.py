"""Reference values of the folder of study 2: clustered differences, and the files of its snapshot."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from triagestats.estimands import Difference
from triagestats.replicate.differences import clustered_block, signed_ranks
from triagestats.replicate.entry import Found
from triagestats.replicate.published import Published
from triagestats.replicate.study2_tables import FORMATS, JUDGED, KEY, Formats

__all__ = ["FormatBlocks"]


@dataclass(frozen=True, slots=True)
class FormatBlocks:
    """Recipes for reference values.

    Attributes
    ----------
    tables
        Tables of the study.
    """

    tables: Formats

    def block(self, published: Published, match: re.Match[str]) -> Found:
        table = self.tables.table().with_cluster(match[3])
        difference = Difference(FORMATS[match[1]], FORMATS[match[2]])
        return clustered_block(published, table, difference, match[3])

    def released(self, published: Published, match: re.Match[str]) -> Found:
        """The comparison file that was released with the snapshot."""
        first, second = match[1], match[2]
        cells = self.tables.cells(first, second)
        found, test = signed_ranks(cells, "first", "second", clusters="scenario")
        value: dict[str, Any] = {"wilcoxon_p": test.p_value, "W": found["W"], "n_cells": cells.height}
        judged = self.tables.is_judged(first, second)
        of_key = dict(zip(("mcnemar_first", "mcnemar_second"), self.tables.judges, strict=False))
        for key, said in (published.recomputed or {}).items():
            if not key.startswith("mcnemar"):
                continue
            p, b, c = self.tables.exact(first, second, of_key.get(key) if judged else None)
            sides = {name: b if _side_of(name, first, second) == first else c for name in said if name != "p"}
            value[key] = sides | {"p": p}
        pairs = self.tables.pairs(first, second, self.tables.judges[0] if judged else None)
        value["n_rows"] = pairs.height
        if judged:
            word = next(word for word in (first, second) if word in JUDGED)
            wide, judges = self.tables.judged(word)
            both = wide.join(pairs.select(KEY), on=KEY)
            value["judge_disagreements"] = int((both[judges[0]] != both[judges[1]]).sum())
        return Found(value, clustered=self.tables.difference(first, second, "scenario"))


def _side_of(name: str, first: str, second: str) -> str:
    """Which of two formats a name such as `b_structured_only` is about."""
    words = {"structured": "exact", "forced": "forced"}
    named = next((word for part, word in words.items() if part in name), None)
    if named in (first, second):
        return str(named)
    return next(word for word in (first, second) if word in JUDGED)
