"""The random terms and fixed columns of a variance study, from its factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.models.facets import Facet, Facets, joint_codes, name_list
from triagestats.models.formula import INTERCEPT
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["FixedPart", "RandomEffect", "VarianceDesign", "variance_design"]


@dataclass(frozen=True, slots=True, eq=False)
class RandomEffect:
    """One set of effects that are drawn from one distribution.

    Attributes
    ----------
    name
        `scenario`, or `scenario:model`.
    parts
        The factors whose combinations have an effect each.
    codes
        Effect of each row, shape (n,).
    n_levels
        Their number.
    """

    name: str
    parts: tuple[str, ...]
    codes: Codes
    n_levels: int


@dataclass(frozen=True, slots=True, eq=False)
class FixedPart:
    """Columns of the fixed effects: dummies of levels without the first, their products, covariates.

    Attributes
    ----------
    x
        Shape (n, p), of full column rank.
    names
        Their names: `(Intercept)`, `condition[T.B]`, `condition[T.B]:format[T.text]`, `length`.
    terms
        The factors of each fixed term.
    levels
        Levels of each fixed factor.
    centres
        Mean of each covariate over the rows.
    dropped
        Names of columns that the others determine.
    combination
        The dropped columns as combinations of the others, shape (p, dropped).
    """

    x: Array
    names: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    levels: dict[str, tuple[str, ...]]
    centres: dict[str, float]
    dropped: tuple[str, ...]
    combination: Array

    def marginal(self, factor: str) -> Array:
        """Weights of the coefficients in the mean of each level, shape (levels, p); NaN if not estimable.

        The other fixed factors have equal weight on their levels, covariates are at their means.
        """
        grid = list(product(*(range(len(levels)) for levels in self.levels.values())))
        codes = {name: np.array([g[place] for g in grid]) for place, name in enumerate(self.levels)}
        covariates = {name: np.full(len(grid), centre) for name, centre in self.centres.items()}
        values, names = _columns(codes, self.levels, self.terms, covariates)
        order = [names.index(name) for name in (*self.names, *self.dropped)]
        own = codes[factor]
        means = [values[own == level].mean(axis=0) for level in range(len(self.levels[factor]))]
        weights: Array = np.array(means)[:, order]
        kept, rest = weights[:, : len(self.names)], weights[:, len(self.names) :]
        off = np.abs(rest - kept @ self.combination).max(axis=1, initial=0.0) > 1e-8
        kept[off] = np.nan
        return kept


@dataclass(frozen=True, slots=True, eq=False)
class VarianceDesign:
    """What variance components are estimated from.

    Attributes
    ----------
    y
        The outcome, shape (n,).
    effects
        The random terms.
    fixed
        The fixed part.
    facets
        The factors by name.
    cells
        Code of each row's combination of all factors, shape (n,).
    notes
        Choices made and doubts.
    """

    y: Array
    effects: tuple[RandomEffect, ...]
    fixed: FixedPart
    facets: dict[str, Facet]
    cells: Codes
    notes: tuple[Note, ...]


def variance_design(read: Facets, interactions: object) -> VarianceDesign:
    """Terms and columns for the rows that were read.

    Parameters
    ----------
    read
        The factors.
    interactions
        The largest number of factors in an interaction, or a list of interactions such as
        `scenario:model`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `interactions` cannot be read.
    DesignError
        If nothing is random, a factor that was named has one level, or a term that was named cannot be
        told from another or from the residual.
    """
    facets, notes = _with_levels(read)
    if not any(facet.random for facet in facets.values()):
        raise DesignError(
            "no factor is random, so there is no variance to divide; name one in `factors` and not in `fixed`"
        )
    mains = [(name,) for name in facets]
    crossings, asked = _crossings(facets, interactions)
    effects: list[RandomEffect] = []
    fixed_terms: list[tuple[str, ...]] = []
    left_out: list[str] = []
    cells = joint_codes(*(facet.codes for facet in facets.values()))
    for parts in [*mains, *crossings]:
        codes = joint_codes(*(facets[name].codes for name in parts))
        if not any(facets[name].random for name in parts):
            fixed_terms.append(parts)
            continue
        effect = RandomEffect(":".join(parts), parts, codes, int(codes.max()) + 1)
        why = _confounded(effect, effects)
        if why is None:
            effects.append(effect)
        elif len(parts) > 1 and not asked:
            left_out.append(f"{effect.name} ({why})")
        else:
            raise DesignError(f"the variance of {effect.name} cannot be estimated: {why}")
    if not effects:
        raise DesignError(f"no variance can be estimated: {'; '.join(left_out)}")
    if left_out:
        notes.append(
            Note(
                "confounded", f"Left out, since the data cannot show them: {', '.join(left_out)}.", "caution"
            )
        )
    fixed = _fixed_part(facets, fixed_terms, read.covariates, len(read.y))
    if fixed.dropped:
        listed = ", ".join(fixed.dropped)
        notes.append(
            Note("collinear", f"Dropped, since other fixed effects determine them: {listed}.", "caution")
        )
    return VarianceDesign(read.y, tuple(effects), fixed, facets, cells, (*read.notes, *notes))


def _with_levels(read: Facets) -> tuple[dict[str, Facet], list[Note]]:
    """The factors that vary; one that was named must."""
    single = [facet.name for facet in read.facets.values() if len(facet.levels) < 2]
    if single and not read.by_default:
        named = read.facets[single[0]]
        raise DesignError(
            f"{named.name!r} has one level, {named.levels[0]!r}: nothing shows how levels differ. Leave it "
            "out"
        )
    facets = {name: facet for name, facet in read.facets.items() if name not in single}
    notes = []
    if single:
        what = ", ".join(single)
        notes.append(Note("one_level", f"Left out, since it has one level: {what}."))
    if not facets:
        raise DesignError("every factor has one level, so that no variance can be divided")
    return facets, notes


def _crossings(facets: dict[str, Facet], interactions: object) -> tuple[list[tuple[str, ...]], bool]:
    """The interactions, and whether each was named."""
    if isinstance(interactions, bool) or not isinstance(interactions, int | str | Sequence):
        raise ArgumentTypeError(
            "`interactions` must be the largest number of factors in one, such as 2, or a list such as "
            f"['scenario:model']; got {interactions!r}"
        )
    if isinstance(interactions, int):
        if interactions < 0:
            raise ArgumentError(f"`interactions` must be at least 0; got {interactions}")
        orders = range(2, min(interactions, len(facets)) + 1)
        found = [parts for order in orders for parts in combinations(facets, order)]
        return [parts for parts in found if not _nests(facets, parts)], False
    found = []
    for text in name_list(interactions, "interactions"):
        parts = tuple(part.strip() for part in text.split(":"))
        unknown = [part for part in parts if part not in facets]
        if unknown or len(parts) < 2 or len(set(parts)) < len(parts):
            raise ArgumentError(
                f"`interactions` must join two or more of the factors {list(facets)} with a colon, such as "
                f"'scenario:model'; got {text!r}"
            )
        if _nests(facets, parts):
            raise ArgumentError(f"`interactions` has {text!r}, but one of these is nested in another")
        found.append(tuple(name for name in facets if name in parts))
    if len(set(found)) < len(found):
        raise ArgumentError(f"`interactions` names something twice: {list(name_list(interactions, ''))}")
    return found, True


def _nests(facets: dict[str, Facet], parts: Iterable[str]) -> bool:
    """Whether one of the factors is nested in another of them."""
    names = set(parts)
    return any(names & set(facets[name].within) for name in names)


def _confounded(effect: RandomEffect, others: Sequence[RandomEffect]) -> str | None:
    """Why the data cannot show a term; None where they may."""
    if effect.n_levels == len(effect.codes):
        return "each of its levels has one row, which is the residual"
    for other in others:
        if other.n_levels == effect.n_levels:
            joint = joint_codes(effect.codes, other.codes)
            if int(joint.max()) + 1 == effect.n_levels:
                return f"its levels are those of {other.name}"
    return None


def _fixed_part(
    facets: dict[str, Facet], terms: list[tuple[str, ...]], covariates: dict[str, Array], n: int
) -> FixedPart:
    levels = {name: facet.levels for name, facet in facets.items() if not facet.random}
    codes = {name: facets[name].codes for name in levels}
    x, names = (
        _columns(codes, levels, terms, covariates) if levels or covariates else (np.ones((n, 1)), [INTERCEPT])
    )
    kept = _independent(x)
    combination = np.linalg.lstsq(x[:, kept], x[:, ~kept], rcond=None)[0].astype(np.float64)
    return FixedPart(
        x=np.ascontiguousarray(x[:, kept]),
        names=tuple(name for name, k in zip(names, kept, strict=True) if k),
        terms=tuple(terms),
        levels=levels,
        centres={name: float(values.mean()) for name, values in covariates.items()},
        dropped=tuple(name for name, k in zip(names, kept, strict=True) if not k),
        combination=combination,
    )


def _columns(
    codes: dict[str, Codes],
    levels: dict[str, tuple[str, ...]],
    terms: Sequence[tuple[str, ...]],
    covariates: dict[str, Array],
) -> tuple[Array, list[str]]:
    """Columns with treatment coding, and their names."""
    n = len(next(iter((*codes.values(), *covariates.values()))))
    columns, names = [np.ones(n)], [INTERCEPT]
    for parts in terms:
        for places in product(*(range(1, len(levels[name])) for name in parts)):
            column = np.ones(n)
            for name, place in zip(parts, places, strict=True):
                column = column * (codes[name] == place)
            columns.append(column)
            names.append(
                ":".join(
                    f"{name}[T.{levels[name][place]}]" for name, place in zip(parts, places, strict=True)
                )
            )
    columns += covariates.values()
    names += covariates
    return np.column_stack(columns), names


def _independent(x: Array) -> NDArray[np.bool_]:
    """Columns that those before them do not determine, by Gram-Schmidt on columns of length 1."""
    tolerance = 1e-7  # of the length that is left: far above rounding, below any column of use
    kept = np.zeros(x.shape[1], dtype=bool)
    basis = np.empty((len(x), 0))
    for place in range(x.shape[1]):
        size = float(np.linalg.norm(x[:, place]))
        if size == 0:
            continue
        rest = x[:, place] / size
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            rest = rest - basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        if left > tolerance:
            kept[place] = True
            basis = np.column_stack([basis, rest / left])
    return kept
