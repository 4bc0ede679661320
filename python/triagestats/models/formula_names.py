"""The columns and functions that the regressors of a formula name, told apart before they are evaluated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from triagestats.errors import ArgumentError

__all__ = ["FUNCTIONS", "CodedTerms", "coded_terms"]

FUNCTIONS: Final = (
    *("C", "I", "i", "log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs"),
    *("center", "scale", "standardize", "poly", "bs", "cs", "cr", "cc"),
)
"""Functions of columns that are read."""

_CODINGS: Final = frozenset(
    ["Treatment", "Sum", "Helmert", "Diff", "Poly"]
    + [f"contr.{name}" for name in ("treatment", "SAS", "sum", "helmert", "diff", "poly")]
)
"""Codings of the levels of a category, second argument of C()."""
_OF_NUMPY: Final = frozenset(
    f"np.{name}" for name in ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs")
)
_CONSTANTS: Final = frozenset({"True", "False", "None"})
_WORDS: Final = frozenset({"and", "or", "not", "in", "if", "else", "is", "lambda", "for"})
_TOKEN: Final = re.compile(
    r"""(?P<column>`[^`]*`)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<operator>%in%)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[^\W\d][\w.]*)
    |(?P<space>\s+)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS: Final = frozenset("+-*/%^:,()[]<>=!&|~")


@dataclass(frozen=True, slots=True)
class CodedTerms:
    """Regressors as text in which each column stands under a code that is the name of nothing else.

    Attributes
    ----------
    text
        The regressors with codes.
    columns
        The columns, sorted; the code of column j is `code(j)`.
    """

    text: str
    columns: tuple[str, ...]

    def code(self, name: str) -> str:
        """The code of a column."""
        return _code(self.columns.index(name))

    def decoded(self, text: str) -> str:
        """A text with the names of the columns in place of their codes."""
        return re.sub(r"column__(\d+)__", lambda found: self.columns[int(found[1])], text)


def coded_terms(text: str, whole: str) -> CodedTerms:
    """The regressors with codes for the columns.

    A name is that of a function where a bracket follows, else that of a column, so that a column may be
    called `C` or `log`. Attributes and subscripts are not read: nothing but the functions listed here
    can be called.

    Parameters
    ----------
    text
        Regressors, such as `C(arm)*log(x)`.
    whole
        The formula, for messages.

    Raises
    ------
    ArgumentError
        If something stands there that is not read.
    """
    parts: list[tuple[str, bool]] = []
    depth, before = 0, ""
    for token in _TOKEN.finditer(text):
        kind, said = token.lastgroup or "", token[0]
        behind = text[token.end() :].lstrip()
        is_column = False
        if kind == "column":
            said, is_column = said[1:-1], True
        elif kind == "name":
            is_column = _is_column(said, behind, depth, whole)
        elif kind == "sign":
            _check_sign(said, before, depth, whole)
            depth += (said in "([") - (said in ")]")
        parts.append((said, is_column))
        before = before if kind == "space" else f"{kind} {said}"
    columns = tuple(sorted({said for said, is_column in parts if is_column}))
    coded = "".join(_code(columns.index(said)) if is_column else said for said, is_column in parts)
    return CodedTerms(coded, columns)


def _code(place: int) -> str:
    # No underscore ahead, which formulaic takes for private; of one length, so that the order is kept.
    return f"column__{place:04d}__"


def _is_column(name: str, behind: str, depth: int, whole: str) -> bool:
    """Whether a name is that of a column; if not, it is one of a function or argument that is read."""
    if behind.startswith("("):
        if name in FUNCTIONS or name in _CODINGS or name in _OF_NUMPY:
            return False
        raise ArgumentError(
            f"`formula` has the function {name!r}; those that are read are {', '.join(FUNCTIONS)}. Put other "
            f"quantities into a column. It is {whole!r}"
        )
    if depth and name in _WORDS:
        raise ArgumentError(
            f"`formula` has {name!r} within a function, which is not read; put such a quantity into a "
            f"column. It is {whole!r}"
        )
    is_argument = depth > 0 and re.match(r"=(?!=)", behind) is not None
    return not (is_argument or (depth and (name in _CONSTANTS or name in _CODINGS)))


def _check_sign(sign: str, before: str, depth: int, whole: str) -> None:
    """Refuse signs that are not read."""
    if sign == "`":
        raise ArgumentError(f"`formula` has a ` without a second one behind the name; it is {whole!r}")
    if sign not in _SIGNS:
        hint = {".": "; name the regressors", "{": "; write I(...) for arithmetic"}.get(sign, "")
        raise ArgumentError(f"`formula` has {sign!r}, which is not read{hint}. It is {whole!r}")
    is_list = depth > 0 and before in ("sign =", "sign ,", "sign (", "sign [")
    if sign == "[" and not is_list:
        raise ArgumentError(
            f"`formula` has [, which picks a part of something: that is not read; put the part into a "
            f"column. It is {whole!r}"
        )
