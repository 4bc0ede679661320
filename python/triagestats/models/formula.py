"""The formulas that all models share: an outcome, regressors, absorbed fixed effects, random terms."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from triagestats.errors import ArgumentError, ArgumentTypeError, TriagestatsError
from triagestats.labels import listed
from triagestats.models.formula_names import CodedTerms, coded_terms

__all__ = [
    "INTERCEPT",
    "Formula",
    "RandomTerm",
    "need_extra",
    "nested_groups",
    "parse_formula",
    "refuse_random",
    "unknown_names",
    "with_regressors",
]

INTERCEPT: Final = "(Intercept)"
"""Name of the constant among the terms."""

_EXAMPLE: Final = "such as 'correct ~ condition | scenario^model'"


@dataclass(frozen=True, slots=True)
class RandomTerm:
    """Effects that are drawn: `(terms | group)` of a formula, both as text."""

    terms: str
    group: str
    correlated: bool


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in its parts.

    Attributes
    ----------
    text
        As it was written, with single spaces.
    outcome
        The column on the left.
    fixed
        The regressors as text, `1` where there are none.
    absorbed
        The fixed effects behind `|`; `a^b` is one effect of two columns.
    random
        The terms `(1 | group)`.
    coded
        The regressors with codes for their columns.
    names
        Every column that is named, sorted.
    """

    text: str
    outcome: str
    fixed: str
    absorbed: tuple[tuple[str, ...], ...]
    random: tuple[RandomTerm, ...]
    coded: CodedTerms
    names: tuple[str, ...]

    @property
    def regressors(self) -> tuple[str, ...]:
        """The columns that the regressors are made of, sorted."""
        return self.coded.columns

    @property
    def absorbed_names(self) -> tuple[str, ...]:
        """The fixed effects as they were written."""
        return tuple("^".join(parts) for parts in self.absorbed)


def parse_formula(text: object) -> Formula:
    """The parts of a formula.

    The subset that every model reads:

    | written | meaning |
    |---|---|
    | `y ~ a + b` | outcome and regressors; text, Enum and categorical columns become dummies of their \
levels without the first, numbers and true/false stay one column |
    | `a:b`, `a*b` | an interaction, and one with its main effects |
    | `C(x)` | a column of numbers as a category |
    | `i(a, x)`, `i(a, ref='u')` | pyfixest's: x by level of a, every level (or all but `ref`); \
without x and ref, all but the first |
    | `0 + a` | without a constant |
    | `... | f + g + h^k` | fixed effects that are absorbed; `h^k` is one for each pair of levels |
    | `(1 | g)`, `(x | g)` | random terms, for mixed models |

    A name that is no Python name stands between backticks. A name is that of a function where a bracket
    follows, so that columns may have the names of functions; other functions and Python are not run.

    Parameters
    ----------
    text
        The formula.

    Raises
    ------
    ArgumentTypeError
        If it is no text.
    ArgumentError
        If it cannot be read.

    Notes
    -----
    The regressors are read by formulaic, whose syntax is that of R's `model.matrix`. Instruments (a third
    part), several outcomes, and slopes that vary by fixed effect (`f[x]`) are not read.

    Examples
    --------
    >>> from triagestats.models.formula import parse_formula
    >>> formula = parse_formula("correct ~ condition*step | scenario^model")
    >>> formula.outcome, formula.fixed, formula.absorbed, formula.regressors
    ('correct', 'condition*step', (('scenario', 'model'),), ('condition', 'step'))
    >>> parse_formula("score ~ condition + (1 | scenario)").random
    (RandomTerm(terms='1', group='scenario', correlated=True),)
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"`formula` must be text, {_EXAMPLE}; got {type(text).__name__}")
    text = " ".join(text.split())
    sides = _split(text, "~")
    if len(sides) != 2 or not all(sides):
        raise ArgumentError(f"`formula` must be an outcome, a ~ and regressors, {_EXAMPLE}; got {text!r}")
    outcome = sides[0].strip("`")
    if not (sides[0] == f"`{outcome}`" or re.fullmatch(r"[^\W\d][\w.]*", sides[0])):
        raise ArgumentError(
            f"`formula` must have one column on the left of ~; got {sides[0]!r}. Put what you want to "
            "explain into a column, or a name that is no plain word between backticks"
        )
    right, *effects = _split(sides[1], "|")
    if len(effects) > 1 or "" in (right, *effects):
        raise ArgumentError(
            f"`formula` must have regressors, and fixed effects after one |, {_EXAMPLE}; got {text!r}. "
            "Instruments are not read"
        )
    fixed, random = _random(right)
    absorbed = tuple(_effect(effect, text) for effect in _split(effects[0], "+")) if effects else ()
    coded = _coded(fixed, text)
    names = {*coded.columns, *(name for parts in absorbed for name in parts)}
    for term in random:
        names |= {*_coded(term.terms, text).columns, *_coded(term.group, text).columns}
    if outcome in names:
        raise ArgumentError(f"`formula` has the outcome {outcome!r} on both sides of ~; it is {text!r}")
    return Formula(text, outcome, fixed, absorbed, random, coded, tuple(sorted({outcome, *names})))


def with_regressors(formula: Formula, added: Iterable[str]) -> Formula:
    """The formula with columns added to its regressors."""
    fixed = " + ".join([formula.fixed, *map(_quoted, added)])
    effects = " + ".join("^".join(map(_quoted, parts)) for parts in formula.absorbed)
    return parse_formula(f"{_quoted(formula.outcome)} ~ {fixed}" + (f" | {effects}" if effects else ""))


def nested_groups(term: RandomTerm) -> tuple[tuple[str, ...], ...]:
    """The groupings of a random term, each as the columns whose combinations are its levels.

    `pair/scenario` is `pair` and, within it, `pair:scenario`.

    Raises
    ------
    ArgumentError
        If the text behind | is no names with : or / between them.

    Examples
    --------
    >>> from triagestats.models.formula import RandomTerm, nested_groups
    >>> nested_groups(RandomTerm("1", "pair/scenario:model", True))
    (('pair',), ('pair', 'scenario', 'model'))
    """
    groups: list[tuple[str, ...]] = []
    for level in _split(term.group, "/"):
        names = [part.strip("`") for part in _split(level, ":")]
        if not all(names) or any(sign in level for sign in "()+*^"):
            raise ArgumentError(
                f"`formula` must have columns behind | in a random term, with : between those of one "
                f"grouping and / for nested ones, such as (1 | pair/scenario); got {term.group!r}"
            )
        within = groups[-1] if groups else ()
        groups.append(tuple(dict.fromkeys([*within, *names])))
    return tuple(groups)


def refuse_random(formula: Formula, model: str, instead: str) -> None:
    """Refuse random terms.

    Parameters
    ----------
    formula
        What was asked for.
    model
        What has none, such as `a linear probability model`.
    instead
        What to do.

    Raises
    ------
    ArgumentError
        If there is one.
    """
    if formula.random:
        term = formula.random[0]
        raise ArgumentError(
            f"`formula` has the random term ({term.terms} | {term.group}), which {model} does not have: "
            f"{instead}"
        )


def unknown_names(
    names: Iterable[str],
    known: Collection[str],
    argument: str = "formula",
    owner: str = "the data do",
    what: str = "columns",
) -> None:
    """Refuse names that the data (or another owner) do not have, with those that are near.

    Raises
    ------
    ArgumentError
        If a name is not known.
    """
    absent = [name for name in names if name not in known]
    if not absent:
        return
    near = [match for name in absent for match in difflib.get_close_matches(name, known, n=2, cutoff=0.6)]
    hint = f" Did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""
    raise ArgumentError(
        f"`{argument}` names {', '.join(map(repr, absent))}, which {owner} not have.{hint} The {what} are "
        f"{listed(known)}"
    )


def need_extra(error: ImportError, library: str) -> TriagestatsError:
    """The error to raise where a library of the extra `models` is not installed."""
    return ArgumentError(
        f'this needs {library}, which is not installed ({error}): pip install "triagestats[models]"'
    )


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside brackets, quotes and backticks."""
    parts, depth, quote, start = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == separator and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _random(right: str) -> tuple[str, tuple[RandomTerm, ...]]:
    """The right side without its random terms, and these."""
    fixed, random = [], []
    for part in _split(right, "+"):
        inside = _split(part[1:-1], "|") if part.startswith("(") and part.endswith(")") else []
        if len(inside) < 2:
            fixed.append(part)
            continue
        correlated = len(inside) == 2
        if len(inside) > 3 or (not correlated and inside[1]) or not inside[0] or not inside[-1]:
            raise ArgumentError(
                f"`formula` has the random term {part!r}; expected one such as '(1 | scenario)'"
            )
        random.append(RandomTerm(inside[0], inside[-1], correlated))
    return " + ".join(fixed) or "1", tuple(random)


def _effect(effect: str, text: str) -> tuple[str, ...]:
    """The columns of one fixed effect."""
    parts = tuple(part.strip("`") for part in _split(effect, "^"))
    if "[" in effect:
        raise ArgumentError(
            f"`formula` has the fixed effect {effect!r}; slopes that vary by fixed effect are not read. "
            "Write an interaction among the regressors, such as `C(f):x`"
        )
    if not all(parts) or "(" in effect:
        raise ArgumentError(
            f"`formula` must name columns after |, with + between fixed effects and ^ between the columns "
            f"of one; got {effect!r} in {text!r}"
        )
    return parts


def _quoted(name: str) -> str:
    return f"`{name}`"


def _coded(fixed: str, text: str) -> CodedTerms:
    """A part of the formula with codes for its columns, if formulaic can parse it."""
    coded = coded_terms(fixed, text)
    formulaic = _formulaic()
    try:
        parsed = formulaic.Formula(coded.text)
    except formulaic.errors.FormulaicError as error:
        said = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).partition("\n")[0].strip()
        raise ArgumentError(f"`formula` cannot be read: {coded.decoded(said)} It is {text!r}") from None
    if hasattr(parsed, "lhs"):
        raise ArgumentError(f"`formula` must have one part before |; got {text!r}")
    return coded


def _formulaic() -> Any:
    try:
        import formulaic
        import formulaic.errors
    except ImportError as error:
        raise need_extra(error, "formulaic") from error
    return formulaic
