"""compare_rates: two rates, which must rest on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_flag, valid_level
from triagestats.errors import DesignError
from triagestats.inference import Options
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json
from triagestats.triage.outcomes import VALUE, Kind, Pool, unit_values
from triagestats.triage.rate_pairs import (
    UNMATCHED,
    RatePair,
    keys_of_sides,
    names_of,
    rate_pair,
    refusal,
    tidy_of_pair,
)
from triagestats.triage.selection import Rows, rows_where, table_of
from triagestats.triage.text import aligned

__all__ = ["RateComparison", "compare_rates"]


@dataclass(frozen=True, slots=True, eq=False)
class RateComparison(Shown):
    """Two rates and their difference.

    Attributes
    ----------
    names
        What the two are called.
    on
        The columns in which their rows must agree.
    matched
        Whether the two rest on the same rows; where not, every line says `unmatched`.
    only_a, only_b
        Keys of `on` that the one side has more often than the other: `n_a` and `n_b` times.
    kind, pool, conf_level, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> free, letter = {"condition": "free_text"}, {"condition": "letter"}
    >>> found = ts.compare_rates(ts.demo_table(), free, letter, unmatched=True, n_resamples=999)
    >>> isinstance(found, ts.RateComparison), found.matched
    (True, False)
    >>> found.tidy()["method"].str.starts_with("unmatched").all()
    True
    """

    names: tuple[str, str]
    on: tuple[str, ...]
    matched: bool
    only_a: pl.DataFrame
    only_b: pl.DataFrame
    kind: Kind
    pool: Pool
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _pair: RatePair
    _frame: pl.DataFrame

    def tidy(self) -> pl.DataFrame:
        """The two rates, then a minus b, with the columns of the glossary."""
        return self._frame

    def glance(self) -> pl.DataFrame:
        """One row: sizes and settings."""
        return pl.DataFrame(
            {
                "matched": [self.matched],
                "n_a": [self._pair.sides.a.height],
                "n_b": [self._pair.sides.b.height],
                "keys_only_a": [self.only_a.height],
                "keys_only_b": [self.only_b.height],
                "kind": [self.kind],
                "pool": [self.pool],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"seed": pl.UInt64},
        )

    def with_level(self, conf_level: float) -> RateComparison:
        """The same estimates at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        level = valid_level(conf_level)
        return replace(self, conf_level=level, _frame=tidy_of_pair(self._pair, level))

    def to_dict(self) -> dict[str, Any]:
        """Rows, keys, notes and settings as plain JSON values."""
        return as_json(
            self,
            names=list(self.names),
            on=list(self.on),
            estimates=self._frame,
            only_a=self.only_a,
            only_b=self.only_b,
        )

    def __repr__(self) -> str:
        label = None if self.matched else UNMATCHED
        frame = self._frame.with_columns(pl.lit(label, pl.String).alias("rows"))
        numbers = ("estimate", "conf_low", "conf_high", "p_value", "n_rows", "n_clusters")
        head = "Two rates on the same rows" if self.matched else "Two rates, unmatched: their rows differ"
        names = pl.coalesce("contrast", "condition")
        none = frame.filter(pl.col("conf_low").is_null()).select(names, "reason").iter_rows()
        return "\n".join(
            [
                f"{head}; {self.conf_level:.4g} intervals",
                *aligned(frame, ("rows", "condition", "contrast", *numbers)),
                *(f"  no interval, {name}: {reason}" for name, reason in none),
                *(f"note: {note}" for note in self.notes),
            ]
        )


def compare_rates(
    data: object,
    a: Rows,
    b: Rows,
    *,
    levels: Sequence[str] | None = None,
    kind: Kind = "correct",
    on: Sequence[str] | None = None,
    unmatched: bool = False,
    names: tuple[str, str] | None = None,
    pool: Pool = "responses",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> RateComparison:
    """Two rates and their difference, refused where they rest on different rows.

    Unless both sides have the same scenarios, models, variants and repetitions, each as often, a difference
    of rates mixes what is compared with what the rows hold. Every row weighs the same:

        difference = sum_a value / n_a - sum_b value / n_b

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, its columns under usual names.
    a, b
        The rows of each side: a polars expression, a mapping from column to value(s), a stratum, or a
        function from the frame to an expression or booleans.
    levels
        The scale from least to most urgent, where `data` is no ResponseTable.
    kind
        `correct` (the score), `wrong` (1 - score), or `under` or `over` the gold range.
    on
        Columns in which the rows of both sides must agree, the scenario among them. Default: the scenario,
        and those of model, condition, variant and repetition in which the sides have a value in common.
    unmatched
        Whether rates on different rows may be compared; every line of the result is then labelled.
    names
        What the two sides are called. Default: the values that mappings name, else `a` and `b`.
    pool
        `responses`: the judges of a response are averaged first; `labels`: each judge's label is a row.
    conf_level, n_resamples, seed, n_threads
        As in `analyze`.

    Returns
    -------
    RateComparison
        Both rates, then a minus b.

    Raises
    ------
    DesignError
        If the two rest on different rows and `unmatched` is False, or there are fewer than two clusters.
    ArgumentError, ArgumentTypeError, DataError
        If an argument or the table cannot be used.

    Notes
    -----
    A row that does not count, such as one without a score, is in neither set. `analyze` compares over the
    keys that both sides share, with repetitions averaged.

    Matched rates have the cluster jackknife with t(G - 1) of their difference, and the permutation of sides
    within clusters. Unmatched ones have the jackknife over the clusters of both sides and its t test with
    Welch's degrees of freedom: no permutation holds where the sides have other rows. With fewer than 5
    clusters on either side they have neither interval nor p-value. A side in which all clusters agree, such
    as one at 0 or 1, adds the variance that it has with one all-right and one all-wrong cluster more.

    References
    ----------
    Agresti, A. and Caffo, B. (2000), Simple and effective confidence intervals for proportions and
    differences of proportions result from adding two successes and two failures, The American Statistician
    54(4):280-288, doi:10.1080/00031305.2000.10474560.

    Welch, B. L. (1947), The generalization of Student's problem when several different population variances
    are involved, Biometrika 34(1-2):28-35, doi:10.1093/biomet/34.1-2.28.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.ResponseTable(
    ...     {"scenario": list("abcdef") * 2, "condition": ["x"] * 6 + ["y"] * 6,
    ...      "score": [1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0]}
    ... )
    >>> found = ts.compare_rates(table, {"condition": "x"}, {"condition": "y"})
    >>> found.tidy().select("contrast", "estimate", "n_rows").row(2)
    ('x - y', 0.5, 6)
    >>> few = {"condition": "x", "scenario": ["a", "b"]}
    >>> try:
    ...     ts.compare_rates(table, few, {"condition": "y"})
    ... except ts.TriagestatsError as error:
    ...     print(str(error).partition(".")[0])
    `a` and `b` rest on different rows: 2 rows against 6, by scenario
    """
    valid_choice("kind", kind, Kind)
    valid_choice("pool", pool, Pool)
    level = valid_level(conf_level)
    valid_flag("unmatched", unmatched)
    options = Options(
        interval="auto",
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
        margin=None,
        higher_is_better=kind == "correct",
    )
    whole = table_of(data, levels)
    called = names_of(a, b, names)
    table = whole.with_frame(unit_values(whole, kind))
    counts = pl.col(VALUE).is_not_null()
    frames = [rows_where(table, rows, name).frame.filter(counts) for rows, name in ((a, "a"), (b, "b"))]
    for frame, name in zip(frames, ("a", "b"), strict=True):
        if frame.is_empty():
            raise DesignError(f"`{name}` has no row that counts: none of its rows has what {kind!r} needs")
    sides = keys_of_sides(table, frames, called, on, pool)
    if not (sides.matched or unmatched):
        raise DesignError(refusal(sides))
    notes = list(whole.notes)
    if len(sides.apart) > 1:
        said = f"The sides differ in {' and '.join(sides.apart)}: the difference is that of all of these."
        notes.append(Note("confounded", said, "caution"))
    if not sides.matched:
        said = f"The rows differ ({sides.sizes}, by {' x '.join(sides.on)}): the difference is also theirs."
        notes.append(Note(UNMATCHED, said, "caution"))
    pair = rate_pair(table, sides, kind=kind, options=options)
    return RateComparison(
        names=called,
        on=sides.on,
        matched=sides.matched,
        only_a=sides.only_a,
        only_b=sides.only_b,
        kind=kind,
        pool=pool,
        conf_level=level,
        n_resamples=options.n_resamples,
        seed=options.seed,
        notes=tuple(notes),
        _pair=pair,
        _frame=tidy_of_pair(pair, level),
    )
