"""factorial: main effects, simple effects and interactions of condition factors on complete cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level, valid_margin
from triagestats.design import Reference, design_of
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.inference import Family, Options
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json
from triagestats.schema import Interval, Match, Weights
from triagestats.table import ResponseTable
from triagestats.triage.contrasts import family_of
from triagestats.triage.effects import Others, effects_of
from triagestats.triage.factorial_plan import MEANS, factorial_plan
from triagestats.triage.factors import FactorArgument, read_factors
from triagestats.triage.frames import contrasts_frame, intervals_frame, smallest_p_notes, withheld_notes
from triagestats.triage.text import aligned, glanced

__all__ = ["Factorial", "factorial"]

_SIDED: Final = ("main_effect", "simple_effect")
_SHOWN: Final = (
    "estimand",
    "term",
    "condition",
    "contrast",
    "stratum",
    "judge",
    "estimate",
    "conf_low",
    "conf_high",
    "p_value",
    "n_rows",
    "n_clusters",
)
_FLIPS: Final = Note(
    "sign_flips",
    "p-values flip the sign of what a cluster adds to a contrast. For main and simple effects they are exact "
    "where the two sides are exchangeable within clusters; for interactions where the clusters' deviations "
    "from additive effects are symmetric about 0, whatever the main effects.",
)
_HOLM: Final = Note(
    "families",
    "p_adjusted is Holm's within main effects, within simple effects and within interactions, of one judge "
    "and stratum; those of all models are one family, those of single models another.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Factorial(Shown):
    """Effects of condition factors.

    Attributes
    ----------
    effects
        One row an effect, model (null: pooled), judge (null: averaged) and stratum (null: all):
        `main_effect`, `simple_effect` and `interaction`. Interactions have no better side and no verdict.
    means
        Mean scores of the combinations on the same cells.
    intervals
        Effects under every interval that applies: cluster jackknife t, bootstrap percentile, BCa.
    factors
        Levels of each factor, the reference first.
    n_cells, n_planned
        Cells scored in all combinations, and cells of a complete crossing; all models.
    cluster, match, weights, interval, conf_level, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = [(s, x, y, int(s + 2 * x + y > 3)) for s in range(6) for x in (0, 1) for y in (0, 1)]
    >>> columns = dict(zip(["scenario", "x", "y", "score"], zip(*rows)))
    >>> found = ts.factorial(ts.ResponseTable(columns, condition=["x", "y"]), a="x", b="y", n_resamples=999)
    >>> isinstance(found, ts.Factorial), found.n_cells, found.with_level(0.9).conf_level
    (True, 6, 0.9)
    """

    effects: pl.DataFrame
    means: pl.DataFrame
    intervals: pl.DataFrame
    factors: dict[str, tuple[str, ...]]
    n_cells: int
    n_planned: int
    cluster: str
    match: Match
    weights: Weights
    interval: Interval
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _family: Family

    def tidy(self) -> pl.DataFrame:
        """Effects, then means, with the columns of the glossary."""
        return pl.concat([self.effects, self.means])

    def glance(self) -> pl.DataFrame:
        """One row: sizes and settings."""
        names = (
            "n_cells",
            "n_planned",
            "cluster",
            "match",
            "weights",
            "interval",
            "conf_level",
            "n_resamples",
        )
        return glanced(self, {"factors": " x ".join(self.factors)}, names)

    def with_level(self, conf_level: float) -> Factorial:
        """The same replicates read at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        level = valid_level(conf_level)
        return replace(self, **_frames(self._family, level), conf_level=level)

    def to_dict(self) -> dict[str, Any]:
        """Frames, notes and settings as plain JSON values."""
        return as_json(
            self,
            factors={name: list(levels) for name, levels in self.factors.items()},
            effects=self.effects,
            means=self.means,
            intervals=self.intervals,
        )

    def __repr__(self) -> str:
        shown = pl.col("model").is_null()
        said = f"{self.n_cells:,} of {self.n_planned:,} cells scored in all combinations"
        lines = [f"Factorial of {' x '.join(self.factors)}: {said}, by {self.cluster}, models pooled"]
        for frame in (self.means.filter(pl.col("judge").is_null()), self.effects):
            lines += aligned(frame.filter(shown), _SHOWN)
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def factorial(
    data: object,
    *,
    a: FactorArgument = None,
    b: FactorArgument = None,
    c: FactorArgument = None,
    d: FactorArgument = None,
    order: int = 2,
    others: Others = "marginal",
    reference: Reference = None,
    match: Match = "cell",
    weights: Weights = "row",
    interval: Interval = "auto",
    margin: float | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Factorial:
    """Main effects, simple effects and interactions of condition factors.

    On the cells (scenario x model x variant) that are scored in all combinations, judges averaged first, then
    repetitions; with y[i, j] the mean of such a cell at level i of one factor and j of the other, the levels
    0 being the references and bars means over the other factors,

        main effect    y[i, .] - y[0, .]
        simple effect  y[i, j] - y[0, j]
        interaction    (y[i, j] - y[i, 0]) - (y[0, j] - y[0, 0])

    averaged over cells. The interaction of wording (source, natural) and output (letter, free) is (natural
    free - natural letter) - (source free - source letter). Every level is compared with the reference.

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, its columns under usual names.
    a, b, c, d
        The factors: a condition column each; or a mapping from levels of a factor to condition levels, the
        reference first, such as `{"source": ["exact", "stripped"], "natural": ["free", "letter"]}`, or from a
        name of the factor to such a mapping, for designs whose one condition column holds the combinations.
        Condition levels that share a combination are averaged. Default: all condition columns, however many.
        With one factor there are main effects alone. Condition columns that are not named are averaged over.
    order
        1 for main effects alone, 2 for simple effects and two-way interactions, 3 for three-way ones as well.
    others
        Factors that an effect does not name are averaged over, each level with the same weight (`marginal`),
        or held at their reference level (`reference`). With `order=1` the latter needs no full grid: single
        changes from a base.
    reference
        The reference level of factors that are columns, as in `analyze`; of a mapping it is the first level.
    match
        `cell` (scenario x model x variant), `row` (also the same repetition), or `scenario` (scenario x
        model).
    weights
        `row` (default): every complete cell weighs the same, over all models. `scenario`: a model's estimate
        is the mean over its scenarios, and that of all models the plain mean of the models', as in `analyze`.
    interval, margin, conf_level, n_resamples, seed, n_threads
        As in `analyze`.

    Returns
    -------
    Factorial
        Effects for all models, by model, by judge where there are several, and by stratum; one set of draws
        of clusters serves all.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
    DataError, RoleError
        If the table cannot be read.
    DesignError
        If the factors do not cross, a combination has no score, or no cell is scored in all of them.

    Notes
    -----
    A model without a complete cell has a row with the status `no_data`, and a note names the levels that it
    lacks. With two crossed cluster columns the p-value is that of the t test.

    The p-value flips signs by cluster, exact by enumeration or convolution where that is possible. With e the
    errors of an additive model and d[g] what cluster g adds to the interaction, all additive parts cancel, so
    that d[g] is a contrast of errors alone; where these are exchangeable between the two levels of either
    factor within a cluster, d[g] and -d[g] are equally likely. Scores of 0 and 1 whose means lie near a bound
    fulfil this only nearly: an interaction is one on the scale of the scores.

    References
    ----------
    Anderson, M. J. and ter Braak, C. J. F. (2003), Permutation tests for multi-factorial analysis of
    variance, Journal of Statistical Computation and Simulation 73(2):85-113, doi:10.1080/00949650215733.

    Examples
    --------
    >>> import triagestats as ts
    >>> score = {"exact": [1, 1, 0, 1, 1, 0], "letter": [1, 1, 1, 1, 1, 0],
    ...          "free": [0, 1, 0, 1, 0, 0], "stripped": [1, 1, 0, 1, 1, 0]}
    >>> rows = [(s, name, value) for name, values in score.items() for s, value in enumerate(values)]
    >>> table = ts.ResponseTable(dict(zip(["scenario", "format", "score"], zip(*rows))))
    >>> found = ts.factorial(
    ...     table,
    ...     a={"wording": {"source": ["exact", "stripped"], "natural": ["letter", "free"]}},
    ...     b={"output": {"letter": ["exact", "letter"], "free": ["stripped", "free"]}},
    ... )
    >>> row = found.effects.filter(estimand="interaction").row(0, named=True)
    >>> row["contrast"], round(row["estimate"], 6), row["p_value"]
    ('(natural - source) x (free - letter)', -0.5, 0.25)
    """
    valid_choice("others", others, Others)
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    if isinstance(order, bool) or not isinstance(order, int):
        raise ArgumentTypeError(f"`order` must be a whole number; got {order!r}")
    if order < 1:
        raise ArgumentError(f"`order` must be at least 1; got {order}")
    level = valid_level(conf_level)
    drawn: dict[str, Any] = {"n_resamples": valid_resamples(n_resamples), "seed": valid_seed(seed)}
    table = data if isinstance(data, ResponseTable) else ResponseTable(data)
    options = Options(
        interval=interval,
        n_threads=thread_count(n_threads),
        margin=valid_margin(margin),
        higher_is_better=table.higher_is_better,
        **drawn,
    )
    design = design_of(table, reference=reference)
    factors = read_factors(design, {"a": a, "b": b, "c": c, "d": d})
    effects = effects_of(design, factors, order=order, others=others)
    found = factorial_plan(table, design, factors, effects, match=match, weights=weights)
    valid_resamples(options.n_resamples, len(found.plan.rows))
    family, notes = family_of(found.plan, options, untested=MEANS)
    frames = _frames(family, level)
    return Factorial(
        **frames,
        factors=dict(zip(factors.names[: factors.n_shown], factors.levels, strict=False)),
        n_cells=found.n_cells,
        n_planned=found.n_planned,
        cluster=design.cluster_name,
        match=match,
        weights=weights,
        interval=interval,
        conf_level=level,
        **drawn,
        notes=(
            *table.notes,
            *found.notes,
            *notes,
            *withheld_notes(frames["effects"]),
            *smallest_p_notes(family, level),
            *((_FLIPS,) if len(design.axes) == 1 else ()),
            _HOLM,
        ),
        _family=family,
    )


def _frames(family: Family, conf_level: float) -> dict[str, Any]:
    frame = contrasts_frame(family, conf_level, sided=_SIDED)
    is_mean = pl.col("estimand").is_in(list(MEANS))
    effects = frame.filter(~is_mean)
    return {
        "effects": effects,
        "means": frame.filter(is_mean),
        "intervals": intervals_frame(family, conf_level, effects),
    }
