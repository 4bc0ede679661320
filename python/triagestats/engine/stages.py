"""From rows to cells to clusters, as group-bys that the engine makes: sums, and counts of what was summed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from triagestats.engine.table import HeldTable
from triagestats.schema import Match, Weights

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]

__all__ = ["Group", "Stages", "denominator", "numerator"]


@dataclass(frozen=True, slots=True)
class Group:
    """Levels whose keys are summed together: those scored at all of them.

    Attributes
    ----------
    levels
        Codes of joint levels.
    by_count
        Whether, with weights by row, a key weighs as much as it has responses.
    contrasts
        Coefficients over the levels of the linear contrasts whose values are described.
    """

    levels: tuple[int, ...]
    by_count: bool = False
    contrasts: tuple[tuple[float, ...], ...] = ()


def numerator(group: int, place: int, model: int) -> str:
    """The column of the sums of one level of a group and a model."""
    return f"y_{group}_{place}_{model}"


def denominator(group: int, model: int) -> str:
    """The column of the weights of a group and a model."""
    return f"w_{group}_{model}"


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The steps of an analysis on the rows of a table.

    Attributes
    ----------
    frame
        Rows under role names.
    unit, cluster
        The columns that name the unit (a scenario, or a cluster of the only one), and the cluster.
    levels
        For each joint level the values of the condition columns.
    models
        The values of the column of models; empty where there is none.
    """

    frame: Frame
    unit: tuple[str, ...]
    cluster: tuple[str, ...]
    levels: tuple[Mapping[str, Any], ...]
    models: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        table: HeldTable,
        unit: Sequence[str],
        cluster: Sequence[str],
        levels: Sequence[Mapping[str, Any]],
        models: Sequence[Any],
    ) -> Stages:
        """The steps on a table."""
        return cls(table.held.frame, tuple(unit), tuple(cluster), tuple(levels), tuple(models))

    def within(self, frame: Frame) -> Stages:
        """The same steps on other rows."""
        return Stages(frame, self.unit, self.cluster, self.levels, self.models)

    def _has(self, name: str) -> bool:
        return name in self.frame.collect_schema()

    def _key(self, *parts: str) -> list[str]:
        """Cluster, unit, and those of some columns that are there."""
        return list(dict.fromkeys([*self.cluster, *self.unit, *(part for part in parts if self._has(part))]))

    @property
    def factors(self) -> list[str]:
        """The condition columns."""
        return [name for name in self.frame.collect_schema().names() if name.startswith("factor_")]

    def n_clusters(self) -> Frame:
        """The number of clusters, one row."""
        import narwhals as nw

        each = self.frame.group_by(*self.cluster).agg(nw.len().alias("rows"))
        everyone = each.with_columns(everything=nw.lit(0)).group_by("everything")
        return everyone.agg(nw.len().alias("n"))

    def judgments(self) -> Frame:
        """How many rows each key has, with its judge."""
        import narwhals as nw

        key = self._key("model", *self.factors, "variant", "repetition", "judge")
        return self.frame.group_by(*key).agg(nw.len().alias("n"))

    def responses(self) -> Stages:
        """One row a response: judges are averaged."""
        import narwhals as nw

        if not self._has("judge"):
            return self
        key = self._key("model", *self.factors, "variant", "repetition", "stratum")
        frame = (
            self.frame.group_by(*key)
            .agg(nw.col("value", "scored").sum(), nw.col("status").min())
            .with_columns(
                judges=nw.col("scored"),
                value=_ratio("value", "scored"),
                status=nw.when(nw.col("scored") > 0).then(nw.lit("ok")).otherwise(nw.col("status")),
            )
        )
        return self.within(frame.with_columns(scored=_flag(nw.col("scored") > 0)))

    def counts(self) -> Frame:
        """Responses, and the moments of their scores, by model, conditions, stratum, status and judges."""
        import narwhals as nw

        by = [name for name in ("model", *self.factors, "stratum", "judges") if self._has(name)]
        score = nw.when(nw.col("scored") == 1).then(nw.col("value"))
        frame = self.frame.select(*by, "status", "scored", "value", score=score)
        return frame.group_by(*by, "status", "scored").agg(
            nw.len().alias("responses"),
            nw.col("value").sum().alias("total"),
            nw.col("score").mean().alias("mean"),
            nw.col("score").var(ddof=1).alias("var"),
            nw.col("score").min().alias("least"),
            nw.col("score").max().alias("most"),
        )

    def base(self) -> Frame:
        """One row a key of `row`, or a cell where nothing repeats, with its sums side by side by level.

        At each level `s` is the sum of the scores, `c` the number of them, and `n` that of the responses.
        """
        import narwhals as nw

        key = self._key("model", "variant", "repetition")
        columns: dict[str, nw.Expr] = {}
        for code, values in enumerate(self.levels):
            here = nw.lit(1)
            if values:
                here = _flag(_every(nw.col(name) == value for name, value in values.items()))
            columns |= {f"n_{code}": here, f"c_{code}": here * nw.col("scored")}
            columns[f"s_{code}"] = nw.col("value") if not values else here * nw.col("value")
        frame = self.frame.select(*key, **columns)
        return frame.group_by(*key).agg(nw.col(*columns).sum())

    def keys(self, base: Frame, match: Match) -> Frame:
        """One row a key, made from `base`: its values `v` beside `c` and `n`, 0 where nothing is scored."""
        import narwhals as nw

        if match == "scenario":
            return self._over_variants(base)
        codes = range(len(self.levels))
        if match == "cell" and "repetition" in base.collect_schema():
            sums = [f"{part}_{code}" for part in "scn" for code in codes]
            base = base.group_by(*self._key("model", "variant")).agg(nw.col(*sums).sum())
        return base.with_columns(**{f"v_{code}": _ratio(f"s_{code}", f"c_{code}") for code in codes})

    def _over_variants(self, base: Frame) -> Frame:
        """Keys of units: cells are averaged over variants."""
        import narwhals as nw

        cells = self.keys(base, "cell")
        codes = range(len(self.levels))
        cells = cells.with_columns(**{f"h_{code}": _flag(nw.col(f"c_{code}") > 0) for code in codes})
        sums = [f"{part}_{code}" for part in "vhcn" for code in codes]
        pairs = cells.group_by(*self._key("model")).agg(nw.col(*sums).sum())
        return pairs.with_columns(**{f"v_{code}": _ratio(f"v_{code}", f"h_{code}") for code in codes})

    def described(self, keys: Frame, groups: Sequence[Group]) -> Frame:
        """By model and variant: what is there at each level, and how many keys each group matches.

        `n` is the most rows of a key, `h` the keys scored at a level; `m` the keys of a group, `r` their
        responses at each of its levels, and for each contrast its mean and variance, and the largest value.
        """
        import narwhals as nw

        present = keys.collect_schema()
        by = [name for name in ("model", "variant") if name in present]
        codes = range(len(self.levels))
        keys = keys.with_columns(**{f"h_{code}": _flag(nw.col(f"c_{code}") > 0) for code in codes})
        matches = {f"m_{g}": _matched(group) for g, group in enumerate(groups)}
        keys = keys.with_columns(everything=nw.lit(0), **matches)
        columns: dict[str, nw.Expr] = {}
        for g, group in enumerate(groups):
            matched = nw.col(f"m_{g}") == 1
            for place, level in enumerate(group.levels):
                columns[f"r_{g}_{place}"] = nw.col(f"m_{g}") * nw.col(f"c_{level}")
                if group.contrasts:
                    size = nw.col(f"v_{level}").abs()
                    columns[f"a_{g}_{place}"] = nw.col(f"m_{g}") * size
            for number, coefficients in enumerate(group.contrasts):
                terms = [
                    nw.col(f"v_{level}") * c for level, c in zip(group.levels, coefficients, strict=True)
                ]
                columns[f"d_{g}_{number}"] = nw.when(matched).then(reduce(lambda a, b: a + b, terms))
        sums = [*(f"h_{code}" for code in codes), *matches]
        sums += [name for name in columns if name.startswith("r_")]
        largest = [f"n_{code}" for code in codes] + [name for name in columns if name.startswith("a_")]
        values = [name for name in columns if name.startswith("d_")]
        return (
            (keys.with_columns(**columns) if columns else keys)
            .group_by("everything", *by)
            .agg(
                *(nw.col(name).sum() for name in sums),
                *(nw.col(name).max() for name in largest),
                *(nw.col(name).mean().alias(f"mean_{name}") for name in values),
                *(nw.col(name).var(ddof=1).alias(f"var_{name}") for name in values),
            )
        )

    def clusters(self, keys: Frame, groups: Sequence[Group], weights: Weights) -> Frame:
        """One row a cluster: for each group and model the sums of its levels, and of the weights."""
        import narwhals as nw

        columns: dict[str, nw.Expr] = {}
        for g, group in enumerate(groups):
            weight = _every_scored(group)
            if group.by_count and weights == "row":
                weight = nw.col(f"c_{group.levels[0]}")
            columns[f"w_{g}"] = weight
            for place, level in enumerate(group.levels):
                columns[f"y_{g}_{place}"] = weight * nw.col(f"v_{level}")
        present = set(keys.collect_schema().names())
        key = [name for name in self._key("model", "variant") if name in present]
        frame = keys.select(*key, **columns)
        if weights == "scenario":
            if "repetition" in present:
                frame = _averaged(frame, key, groups)
            if "variant" in key:
                frame = _averaged(frame, [name for name in key if name != "variant"], groups)
        by_model: dict[str, nw.Expr] = {}
        for code in range(max(len(self.models), 1)):
            own = _flag(nw.col("model") == self.models[code]) if self.models else nw.lit(1)
            for g, group in enumerate(groups):
                by_model[denominator(g, code)] = own * nw.col(f"w_{g}")
                for place in range(len(group.levels)):
                    by_model[numerator(g, place, code)] = own * nw.col(f"y_{g}_{place}")
        return frame.select(*self.cluster, **by_model).group_by(*self.cluster).agg(nw.col(*by_model).sum())


def _averaged(frame: Frame, key: Sequence[str], groups: Sequence[Group]) -> Frame:
    """Means of matched keys within a coarser key, each of which then weighs 1."""
    import narwhals as nw

    weights = [f"w_{g}" for g in range(len(groups))]
    sums = [f"y_{g}_{place}" for g, group in enumerate(groups) for place in range(len(group.levels))]
    frame = frame.group_by(*key).agg(nw.col(*weights, *sums).sum())
    frame = frame.with_columns(
        **{
            f"y_{g}_{place}": _ratio(f"y_{g}_{place}", f"w_{g}")
            for g, group in enumerate(groups)
            for place in range(len(group.levels))
        }
    )
    return frame.with_columns(**{name: _flag(nw.col(name) > 0) for name in weights})


def _matched(group: Group) -> nw.Expr:
    import narwhals as nw

    return reduce(lambda one, other: one * other, [nw.col(f"h_{level}") for level in group.levels])


def _every_scored(group: Group) -> nw.Expr:
    import narwhals as nw

    return _flag(_every(nw.col(f"c_{level}") > 0 for level in group.levels))


def _every(conditions: Iterable[nw.Expr]) -> nw.Expr:
    return reduce(lambda one, other: one & other, conditions)


def _flag(condition: nw.Expr) -> nw.Expr:
    """1 where a condition holds, else 0."""
    import narwhals as nw

    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def _ratio(total: str, size: str) -> nw.Expr:
    """A mean, 0 where there is nothing to average."""
    import narwhals as nw

    return nw.when(nw.col(size) > 0).then(nw.col(total) / nw.col(size)).otherwise(nw.lit(0.0))
