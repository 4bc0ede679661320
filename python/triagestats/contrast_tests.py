"""Classical tests of every contrast of a table: McNemar, signed rank, equivalence; by judge and by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.blocks import Target, contrast_targets
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.design import Design, Reference, design_of
from triagestats.equivalence_sides import MeanError
from triagestats.errors import DesignError
from triagestats.evidence import gather_evidence
from triagestats.matching import keys_of
from triagestats.mcnemar_tests import mcnemar
from triagestats.permutation import Permuted, block_tests
from triagestats.plan import contrast_plan
from triagestats.results import Note, Test
from triagestats.schema import Match, Weights
from triagestats.signed_ranks import wilcoxon_signed_rank
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ClusterTest", "ContrastTests", "PairedTests", "Reader", "contrast_tests", "readers_of"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Scores as one judge gave them, or the mean of the judges.

    Attributes
    ----------
    judge
        The judge; None for the mean of all.
    design
        The responses with these scores.
    binary
        The responses whose scores are 0 and 1: those of the judge, or those on which all judges agree.
    judged
        The joint levels that have judges. Contrasts of other levels are the same whoever reads them.
    """

    judge: str | None
    design: Design
    binary: Design
    judged: frozenset[str] = frozenset()

    def reads(self, target: Target) -> bool:
        """Whether a judge has a say in a contrast."""
        levels = {self.design.levels[code].label for columns in target.columns for code in columns}
        return bool(levels & self.judged)


@dataclass(frozen=True, slots=True)
class ClusterTest:
    """A contrast by cluster: estimate, jackknife error, and the permutation of labels."""

    error: MeanError
    permuted: Permuted | None
    n_rows: int
    n_clusters: int


@dataclass(frozen=True, slots=True)
class PairedTests:
    """The tests that take rows, or cells, as pairs.

    Attributes
    ----------
    b, c, n
        Pairs of which the level alone, and the reference alone, is right; all pairs. None where scores are
        not 0 and 1.
    mcnemar, mcnemar_by_cluster, signed_rank, signed_rank_by_cluster
        The tests; None where one does not apply.
    n_cells, mean_difference
        Cells behind the signed rank test, and the mean of their differences.
    n_clusters
        Clusters that the pairs share.
    """

    b: int | None
    c: int | None
    n: int
    mcnemar: Test | None
    mcnemar_by_cluster: Test | None
    signed_rank: Test | None
    signed_rank_by_cluster: Test | None
    n_cells: int
    mean_difference: float
    n_clusters: int


@dataclass(frozen=True, slots=True)
class ContrastTests:
    """All tests of one contrast, of one model or all, as one judge scored it or the mean of all.

    Attributes
    ----------
    identity
        The columns that say which.
    unanimous
        Whether McNemar's test leaves out the responses on which judges differ.
    by_cluster, paired
        The tests; None where nothing is matched for them.
    """

    identity: dict[str, Any]
    unanimous: bool
    by_cluster: ClusterTest | None
    paired: PairedTests | None


def readers_of(
    table: ResponseTable, design: Design, reference: Reference
) -> tuple[tuple[Reader, ...], tuple[Note, ...]]:
    """The mean of the judges, then each judge where there are several."""
    if len(table.judges) < 2:
        return (Reader(None, design, design),), ()
    notes: list[Note] = []
    readers = []
    agreed = _design(table.with_unanimous_judges(), reference)
    judged: frozenset[str] = frozenset()
    if design.factors:
        judged = frozenset(table.frame.filter(pl.col("judge").is_not_null())["condition"])
    readers.append(Reader(None, design, agreed or design, judged))
    for judge in table.judges:
        own = _design(table.with_judge(judge), reference)
        if own is None:
            message = f"The scores of judge {judge!r} alone cannot be compared: they are too few."
            notes.append(Note("judge_left_out", message, "caution"))
        else:
            readers.append(Reader(judge, own, own, judged))
    return tuple(readers), tuple(notes)


def _design(table: ResponseTable, reference: Reference) -> Design | None:
    """The design of some of the rows of a table; None where nothing is scored, or in one cluster only."""
    try:
        return design_of(table, reference=reference)
    except DesignError:
        return None


def contrast_tests(
    readers: Sequence[Reader],
    *,
    weights: Weights,
    match: Match,
    metric: str | None,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> tuple[ContrastTests, ...]:
    """The tests of every difference of two levels, pooled and by model, by each reader of the scores."""
    found: list[ContrastTests] = []
    for reader in readers:
        for target in contrast_targets(reader.design):
            if reader.judge is not None and not reader.reads(target):
                continue
            clusters = _cluster_tests(
                reader.design,
                target,
                weights=weights,
                match=match,
                n_resamples=n_resamples,
                seed=seed,
                n_threads=n_threads,
            )
            paired = _paired_tests(reader, target)
            models = [None, *(reader.design.models if reader.design.has_models else ())]
            for model in models:
                identity = {
                    "estimand": target.estimand.name,
                    "term": target.term,
                    "model": model,
                    "contrast": target.estimand.label,
                    "judge": reader.judge,
                    "metric": metric,
                }
                of_clusters, of_pairs = clusters.get(model), paired.get(model)
                if of_clusters is not None or of_pairs is not None:
                    unanimous = reader.judge is None and reader.reads(target)
                    found.append(ContrastTests(identity, unanimous, of_clusters, of_pairs))
    return tuple(found)


def _cluster_tests(
    design: Design,
    target: Target,
    *,
    weights: Weights,
    match: Match,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> dict[str | None, ClusterTest]:
    if not any(len(keys_of(design, match).matched(list(columns)).unit) for columns in target.columns):
        return {}
    plan = contrast_plan(design, (target,), match=match, weights=weights, metric=None, strata=False)
    if plan is None:
        return {}
    (block,) = plan.blocks
    evidence = gather_evidence((block,), plan.totals, n_resamples=0, seed=seed)
    tests: Sequence[Permuted | None] = [None] * len(block.models)
    if len(plan.totals.axes) == 1:
        tests = block_tests(
            block, plan.totals.values, n_resamples=n_resamples, seed=seed, n_threads=n_threads
        )
    return {
        None if model is None else design.models[model]: ClusterTest(
            MeanError(
                float(evidence.estimate[e]),
                float(evidence.std_error[e]) if evidence.varies[e] else 0.0,
                float(evidence.df[e]),
            ),
            tests[e],
            block.n_rows[e],
            int(evidence.n_clusters[e]),
        )
        for e, model in enumerate(block.models)
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Matched:
    """Keys matched for a contrast: level and reference, model and cluster of each, shape (n,)."""

    level: Array
    reference: Array
    model: NDArray[np.int64]
    cluster: NDArray[np.int64]
    models: tuple[str, ...]

    def of(self, model: str | None) -> _Matched:
        """The keys of one model, or all."""
        if model is None:
            return self
        code = self.models.index(model) if model in self.models else -1
        kept = self.model == code
        return _Matched(
            self.level[kept], self.reference[kept], self.model[kept], self.cluster[kept], self.models
        )


def _matched(design: Design, match: Match, target: Target) -> _Matched:
    """The keys scored at level and reference of a target, by its label in the design at hand."""
    own = [t for t in contrast_targets(design) if (t.term, t.estimand) == (target.term, target.estimand)]
    keys = keys_of(design, match)
    parts = [keys.matched(list(columns)) for t in own for columns in t.columns]
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return _Matched(np.empty(0), np.empty(0), nothing, nothing, design.models)
    axis = design.axes[0]
    unit = np.concatenate([part.unit for part in parts])
    model = np.concatenate([part.model for part in parts])
    values = np.concatenate([part.values for part in parts])
    cluster = axis.codes[unit if axis.by == "unit" else model]
    return _Matched(values[:, 0], values[:, 1], model, cluster, design.models)


def _paired_tests(reader: Reader, target: Target) -> dict[str | None, PairedTests]:
    rows = _matched(reader.binary, "row", target)
    cells = _matched(reader.design, "cell", target)
    one_axis = len(reader.design.axes) == 1
    models: list[str | None] = [None]
    if reader.design.has_models:
        models += [reader.design.models[code] for code in np.unique(cells.model)]
    return {model: _tests_of(rows.of(model), cells.of(model), one_axis=one_axis) for model in models}


def _tests_of(rows: _Matched, cells: _Matched, *, one_axis: bool) -> PairedTests:
    both = np.concatenate([rows.level, rows.reference])
    binary = len(both) > 0 and bool(((both == 0) | (both == 1)).all())
    differences = cells.level - cells.reference
    shared = len(np.unique(rows.cluster))
    enough = one_axis and shared >= FEWEST_CLUSTERS
    b = int((rows.level > rows.reference).sum()) if binary else None
    c = int((rows.level < rows.reference).sum()) if binary else None
    by_cluster: dict[str, Test | None] = {"mcnemar": None, "signed_rank": None}
    if enough and binary and shared < len(rows.level):
        by_cluster["mcnemar"] = mcnemar(
            rows.level, rows.reference, clusters=rows.cluster, method="obuchowski"
        )
    if enough and len(differences) and len(np.unique(cells.cluster)) < len(differences):
        by_cluster["signed_rank"] = wilcoxon_signed_rank(differences, clusters=cells.cluster, conf_level=None)
    return PairedTests(
        b=b,
        c=c,
        n=len(rows.level),
        mcnemar=None if b is None or c is None else mcnemar(b, c),
        mcnemar_by_cluster=by_cluster["mcnemar"],
        signed_rank=wilcoxon_signed_rank(differences, conf_level=None) if len(differences) else None,
        signed_rank_by_cluster=by_cluster["signed_rank"],
        n_cells=len(differences),
        mean_difference=float(differences.mean()) if len(differences) else float("nan"),
        n_clusters=len(np.unique(cells.cluster)),
    )
