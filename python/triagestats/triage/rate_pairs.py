"""Two sets of rows: whether they are the same, their rates, and the difference of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.blocks import Block, Target
from triagestats.canonical import Factor
from triagestats.design import design_of
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.estimands import Difference
from triagestats.inference import METHODS, Family, Options, infer
from triagestats.labels import label_of, n_rows
from triagestats.plan import Plan, Row, rate_plan
from triagestats.results import tidy_frame
from triagestats.share_differences import ShareDifference, difference_of_shares
from triagestats.table import ResponseTable
from triagestats.triage.outcomes import VALUE, Kind, Pool
from triagestats.triage.selection import Rows, column_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "UNMATCHED",
    "RatePair",
    "Sides",
    "keys_of_sides",
    "names_of",
    "rate_pair",
    "refusal",
    "tidy_of_pair",
]

UNMATCHED: Final = "unmatched"
_KEY: Final = ("scenario", "model", "condition", "variant", "repetition")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Two sets of rows, each row a response or a label with its `_value`.

    Attributes
    ----------
    a, b
        The rows.
    names
        What they are called.
    on
        The columns in which they must agree.
    apart
        Columns of the key in which they have no value in common.
    only_a, only_b
        Keys that the one has more often than the other: `n_a` and `n_b` times.
    """

    a: pl.DataFrame
    b: pl.DataFrame
    names: tuple[str, str]
    on: tuple[str, ...]
    apart: tuple[str, ...]
    only_a: pl.DataFrame
    only_b: pl.DataFrame

    @property
    def matched(self) -> bool:
        """Whether both have the same keys, each as often."""
        return self.only_a.is_empty() and self.only_b.is_empty()

    @property
    def sizes(self) -> str:
        """How many rows stand against how many."""
        return f"{n_rows(self.a.height)} against {self.b.height:,}"


@dataclass(frozen=True, slots=True, eq=False)
class RatePair:
    """The rates of two sides, a first, and their difference.

    Attributes
    ----------
    sides, kind
        The rows, and what is counted.
    rates
        Both rates.
    difference
        The family of the difference where both have the same rows; else None.
    apart
        The difference where they do not; None with two cluster columns.
    """

    sides: Sides
    kind: Kind
    rates: Family
    difference: Family | None
    apart: ShareDifference | None


def keys_of_sides(
    table: ResponseTable,
    frames: Sequence[pl.DataFrame],
    names: tuple[str, str],
    on: object,
    pool: Pool,
) -> Sides:
    """The sides as responses or labels, and the keys in which they differ.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `on` is no list of columns with the scenario among them.
    """
    key: list[str] = [name for name in _KEY if name in table.frame.columns]
    key += [name for name in table.frame.columns if name.startswith("condition[")]
    a, b = (_rows(frame, key, pool) for frame in frames)
    others = [name for name in key if name != "scenario" and not name.startswith("condition[")]
    apart = tuple(name for name in others if not set(a[name].unique()) & set(b[name].unique()))
    if on is None:
        chosen = ["scenario", *(name for name in others if name not in apart)]
    elif isinstance(on, str) or not isinstance(on, Sequence):
        raise ArgumentTypeError(f"`on` must be a list of columns, such as ['scenario', 'model']; got {on!r}")
    else:
        chosen = [column_named(table, name, "on") for name in on]
        if "scenario" not in chosen:
            raise ArgumentError(
                f"`on` must hold the scenario: rates on other scenarios are unmatched; got {list(on)}"
            )
        if missing := [name for name in chosen if name not in a.columns]:
            raise ArgumentError(f"`on` names {missing}; choose from the columns of the key, {key}")
    left, right = (frame.group_by(chosen).len(name) for frame, name in ((a, "n_a"), (b, "n_b")))
    both = left.join(right, on=chosen, how="full", nulls_equal=True, coalesce=True).sort(chosen)
    both = both.with_columns(pl.col("n_a", "n_b").fill_null(0).cast(pl.Int64))
    return Sides(
        a=a,
        b=b,
        names=names,
        on=tuple(chosen),
        apart=apart,
        only_a=both.filter(pl.col("n_a") > pl.col("n_b")),
        only_b=both.filter(pl.col("n_b") > pl.col("n_a")),
    )


def _rows(frame: pl.DataFrame, key: Sequence[str], pool: Pool) -> pl.DataFrame:
    clusters = [name for name in ("cluster_1", "cluster_2") if name in frame.columns]
    if pool == "labels":
        return frame.select(*key, *clusters, VALUE)
    return frame.group_by(key, maintain_order=True).agg(pl.col(VALUE).mean(), pl.col(clusters).first())


def names_of(a: Rows, b: Rows, names: object) -> tuple[str, str]:
    """What two sides are called: as asked, else by the values that their mappings name.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `names` are not two different texts.
    """
    if names is None:
        found = tuple(_name(rows) for rows in (a, b))
        return ("a", "b") if None in found or found[0] == found[1] else (str(found[0]), str(found[1]))
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) != 2:
        raise ArgumentTypeError(f"`names` must be two names, such as ('new', 'old'); got {names!r}")
    labels = [label_of(name) if isinstance(name, str) else None for name in names]
    if None in labels or labels[0] == labels[1]:
        raise ArgumentError(f"`names` must be two different names; got {list(names)}")
    return str(labels[0]), str(labels[1])


def _name(rows: Rows) -> str | None:
    if isinstance(rows, str):
        return rows
    if not isinstance(rows, Mapping) or not all(isinstance(v, str | int | float) for v in rows.values()):
        return None
    return ", ".join(map(str, rows.values()))


def refusal(sides: Sides) -> str:
    """Why two rates are not compared, and what to do."""
    parts = []
    for own, other, frame in (("a", "b", sides.only_a), ("b", "a", sides.only_b)):
        if frame.is_empty():
            continue
        absent = frame.filter(pl.col(f"n_{other}") == 0)
        shown = absent if absent.height else frame
        alone = shown.height == 1
        keys = "1 key" if alone else f"{shown.height:,} keys"
        if absent.height:
            said = f"{keys} of `{own}` {'is' if alone else 'are'} not in `{other}`"
        else:
            said = f"{keys} {'stands' if alone else 'stand'} more often in `{own}` than in `{other}`"
        examples = "; ".join(
            ", ".join(f"{name}={row[name]!r}" for name in sides.on)
            + ("" if absent.height else f" ({row[f'n_{own}']} against {row[f'n_{other}']} times)")
            for row in shown.head(_SHOWN).iter_rows(named=True)
        )
        parts.append(f"{said}, such as {examples}")
    return (
        f"`a` and `b` rest on different rows: {sides.sizes}, by {' x '.join(sides.on)}. {'. '.join(parts)}. "
        "Choose the same rows for both; or compare the keys that both have with `analyze`; or say "
        "`unmatched=True`, and every line is labelled"
    )


def rate_pair(table: ResponseTable, sides: Sides, *, kind: Kind, options: Options) -> RatePair:
    """The rates of two sides and their difference, every row weighing the same.

    Raises
    ------
    DesignError
        If there are fewer than two clusters.
    """
    frame = pl.concat(
        [
            side.drop(name for name in side.columns if name.startswith("condition")).with_columns(
                pl.lit(name).alias("condition"),
                pl.col(VALUE).alias("score"),
                pl.lit("ok").alias("status"),
            )
            for side, name in zip((sides.a, sides.b), sides.names, strict=True)
        ]
    )
    # A name may sort either way: the order is declared, b the reference.
    factor = Factor("side", "condition", (sides.names[1], sides.names[0]), declared=True)
    design = design_of(table.with_frame(frame, factors=(factor,)))
    plan = rate_plan(design, weights="row", metric=None)
    pooled = {block.target.columns[0][0]: block.only(0) for block in plan.blocks}
    first, second = pooled[1], pooled[0]
    rows = tuple(
        Row({"estimand": f"{kind}_rate", "condition": name}, slot) for slot, name in enumerate(sides.names)
    )
    rates, _ = infer(Plan((first, second), plan.totals, rows), kind="mean", options=options)
    difference = None
    if sides.matched:
        contrast = Difference(*sides.names)
        block = Block(
            target=Target(contrast, None, ((1, 0),)),
            stratum=None,
            models=(None,),
            numerators=np.array([[first.numerators[0, 0], second.numerators[0, 0]]]),
            denominators=first.denominators,  # matched rows: both sides weigh the same in every cluster
            groups=first.groups,
            shares=first.shares,
            n_rows=first.n_rows,
            n_keys=first.n_rows,
        )
        row = Row({"estimand": f"{kind}_rate", "contrast": contrast.label}, 0)
        paired = Plan((block,), plan.totals, (row,))
        difference, _ = infer(paired, kind="contrast", options=options, compared=False)
    apart = None
    if not sides.matched and len(plan.totals.axes) == 1:
        sums = [_sums(block, plan.totals.values) for block in (first, second)]
        n_rows = min(sides.a.height, sides.b.height)
        apart = difference_of_shares(sums[0], sums[1], sides.names, n_rows)
    return RatePair(sides, kind, rates, difference, apart)


def _sums(block: Block, totals: Array) -> tuple[Array, Array]:
    """Sums by cluster of the values of a block of one estimate, and of its rows."""
    return totals[:, block.numerators[0, 0]], totals[:, block.denominators[0]]


def tidy_of_pair(pair: RatePair, conf_level: float) -> pl.DataFrame:
    """Both rates, then a minus b, at a level; every row of unmatched sides says so."""
    rates = pair.rates.read(conf_level)
    if pair.difference is not None:
        return pl.concat([rates, pair.difference.read(conf_level)])
    frame = pl.concat([rates, tidy_frame([_apart(pair, conf_level)])])
    said = pl.lit(f"{UNMATCHED}: {pair.sides.sizes}")
    return frame.with_columns(
        pl.concat_str(pl.lit(f"{UNMATCHED}; "), "method").alias("method"),
        pl.when(pl.col("status") == "ok").then(pl.lit("warning")).otherwise("status").alias("status"),
        pl.concat_str(said, "reason", separator="; ", ignore_nulls=True).alias("reason"),
    )


def _apart(pair: RatePair, conf_level: float) -> dict[str, Any]:
    """The difference of two rates on different rows."""
    names = pair.sides.names
    row = {"estimand": f"{pair.kind}_rate", "contrast": f"{names[0]} - {names[1]}"}
    if pair.apart is not None:
        return row | pair.apart.read(conf_level)[0]
    evidence = pair.rates.evidence
    return row | {
        "estimate": float(evidence.estimate[0] - evidence.estimate[1]),
        "conf_level": conf_level,
        "n_rows": min(pair.sides.a.height, pair.sides.b.height),
        "n_clusters": int(evidence.contributes.any(axis=1).sum()),
        "status": "undefined",
        "reason": "two cluster columns: the error of a difference on different rows is not known",
        "method": METHODS["none"],
    }
