"""What rules did on fresh cases, and how the result stands against criteria written beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.marginals import Marginals, shares_of
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.share_differences import ShareDifference, difference_of_shares
from triagestats.triage.text import aligned, withheld_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Criterion", "Quantity", "RuleReport", "Subset", "subsets_of"]

_SIDES: Final = ("set aside", "kept")

Quantity = Literal[
    "share set aside", "share corrected", "unsafe set aside", "unsafe kept", "unsafe difference", "upheld"
]


@dataclass(frozen=True, slots=True)
class Criterion:
    """What rules must reach, written before they are run.

    Parameters
    ----------
    quantity
        `share set aside`, `share corrected` (of all answers); `unsafe set aside`, `unsafe kept` (rates);
        `unsafe difference` (set aside minus kept); `upheld` (of penalised answers).
    at_most, at_least
        Its limits; one of them or both.
    group
        The group that it is for; all rows and every group where not given.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no limit, or it is no number.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.Criterion("share set aside", at_most=0.1).judge(0.02, 0.07)
    'met'
    """

    quantity: Quantity
    at_most: float | None = None
    at_least: float | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        valid_choice("quantity", self.quantity, Quantity)
        limits: dict[str, object] = {"at_most": self.at_most, "at_least": self.at_least}
        if all(limit is None for limit in limits.values()):
            raise ArgumentError("a criterion needs a limit: give `at_most`, `at_least` or both")
        for name, limit in limits.items():
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not np.isfinite(limit):
                raise ArgumentTypeError(f"`{name}` of a criterion must be a number; got {limit!r}")
        if self.group is not None and not isinstance(self.group, str):
            raise ArgumentTypeError(f"`group` of a criterion must be text; got {self.group!r}")

    def content(self) -> dict[str, Any]:
        """What the hash of a set is made of, as plain values."""
        limits = {"at_most": self.at_most, "at_least": self.at_least}
        told = {name: None if limit is None else repr(float(limit)) for name, limit in limits.items()}
        return {"quantity": self.quantity, "group": self.group, **told}

    def judge(self, low: float | None, high: float | None) -> Literal["met", "not met", "undecided"]:
        """What an interval says: `met` if all of it keeps the limits, `not met` if none of it does."""
        if low is None or high is None:
            return "undecided"
        if (self.at_most is not None and low > self.at_most) or (
            self.at_least is not None and high < self.at_least
        ):
            return "not met"
        keeps = (self.at_most is None or high <= self.at_most) and (
            self.at_least is None or low >= self.at_least
        )
        return "met" if keeps else "undecided"

    @property
    def limits(self) -> str:
        """The limits in words."""
        told = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        told += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(told)


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """One quantity in one group; None for all rows."""

    quantity: Quantity
    group: str | None
    marginals: Marginals | ShareDifference

    def read(self, conf_level: float) -> dict[str, Any]:
        """A tidy row."""
        named: dict[Quantity, dict[str, str]] = {
            "share set aside": {"estimand": "share", "term": "set aside"},
            "share corrected": {"estimand": "share", "term": "corrected"},
            "unsafe set aside": {"estimand": "unsafe_rate", "term": "set aside"},
            "unsafe kept": {"estimand": "unsafe_rate", "term": "kept"},
            "unsafe difference": {"estimand": "difference", "contrast": "set aside - kept"},
            "upheld": {"estimand": "share", "term": "penalised answers upheld"},
        }
        return {**named[self.quantity], "stratum": self.group, **self.marginals.read(conf_level)[0]}


@dataclass(frozen=True, slots=True, eq=False)
class RuleReport(Shown):
    """What each rule did, and what the answers that were set aside are like.

    Attributes
    ----------
    sha256
        Hash of the rules that were run.
    rules
        One row a rule, for all rows (`group` null) and by group: `rule`, `action`, `citation`, `group`,
        `matched` (rows that its condition matches), `applied` (those on which no earlier rule acted).
    subsets
        The quantities, by group.
    criteria_written
        What was to be reached.
    frame
        The rows after corrections, with `rule_id` and `rule_action`.
    conf_level
        Level of the intervals.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rules = ts.RuleSet([ts.Rule("short", "n_words < 5", "set aside", "Protocol 1")])
    >>> cases = {"case": range(12), "n_words": [3, 4, 30] * 4, "unsafe": [1, 0, 0] * 4}
    >>> report = rules.apply(cases, unsafe="unsafe")
    >>> report.tidy().select("estimand", "term", "estimate").rows()[1:3]
    [('unsafe_rate', 'set aside', 0.5), ('unsafe_rate', 'kept', 0.0)]
    """

    sha256: str
    rules: pl.DataFrame
    subsets: tuple[Subset, ...]
    criteria_written: tuple[Criterion, ...]
    frame: pl.DataFrame
    conf_level: float
    notes: tuple[Note, ...]

    def with_level(self, conf_level: float) -> RuleReport:
        """The same quantities at another level.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    @property
    def criteria(self) -> pl.DataFrame:
        """One row a criterion and group: the quantity, its interval, the limits, and the verdict."""
        rows = []
        for criterion in self.criteria_written:
            for subset in self.subsets:
                if subset.quantity != criterion.quantity or criterion.group not in (None, subset.group):
                    continue
                found = subset.read(self.conf_level)
                low, high = found.get("conf_low"), found.get("conf_high")
                rows.append(
                    {
                        "quantity": criterion.quantity,
                        "group": subset.group,
                        "limits": criterion.limits,
                        "estimate": found["estimate"],
                        "conf_low": low,
                        "conf_high": high,
                        "verdict": criterion.judge(low, high),
                    }
                )
        text, numbers = ("quantity", "group", "limits", "verdict"), ("estimate", "conf_low", "conf_high")
        types = dict.fromkeys(text, pl.String) | dict.fromkeys(numbers, pl.Float64)
        order = ("quantity", "group", "limits", "estimate", "conf_low", "conf_high", "verdict")
        return pl.DataFrame(rows, schema={name: types[name] for name in order}).with_columns(
            pl.col(numbers).fill_nan(None)
        )

    def tidy(self) -> pl.DataFrame:
        """One row a quantity, for all rows and by group, with the columns of the glossary."""
        return tidy_frame(subset.read(self.conf_level) for subset in self.subsets)

    def glance(self) -> pl.DataFrame:
        """One row: rows, rules, and how many criteria are met."""
        verdicts = self.criteria["verdict"]
        return pl.DataFrame(
            {
                "sha256": [self.sha256],
                "n_rows": [self.frame.height],
                "n_rules": [self.rules["rule"].n_unique()],
                "n_set_aside": [int((self.frame["rule_action"] == "set aside").sum())],
                "n_corrected": [int((self.frame["rule_action"] == "correct").sum())],
                "n_criteria": [len(verdicts)],
                "n_met": [int((verdicts == "met").sum())],
                "conf_level": [self.conf_level],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Rules, quantities, criteria, settings and notes as plain JSON values."""
        return as_json(self, rules=self.rules, estimates=self.tidy(), criteria=self.criteria)

    def __repr__(self) -> str:
        lines = [f"Rules {self.sha256[:12]} on {self.frame.height:,} rows"]
        lines += aligned(self.rules, ("rule", "action", "group", "matched", "applied", "citation"))
        columns = ("estimand", "term", "contrast", "stratum", "estimate", "conf_low", "conf_high", "n_rows")
        tidy = self.tidy()
        names = pl.concat_str(
            "estimand", pl.coalesce("term", "contrast"), "stratum", separator=" ", ignore_nulls=True
        )
        lines += [*aligned(tidy, columns), *withheld_lines(tidy, names)]
        lines += aligned(self.criteria, tuple(self.criteria.columns))
        return "\n".join(lines + [f"note: {note.message}" for note in self.notes])


def subsets_of(
    cluster: Codes, actions: Sequence[str], values: Mapping[str, Array], groups: Sequence[str], of_row: Codes
) -> tuple[Subset, ...]:
    """All quantities, for all rows and by group.

    Parameters
    ----------
    cluster, actions
        Code of the cluster, and action, of each row.
    values
        `unsafe`, and where known `penalised` and `upheld`.
    groups, of_row
        Names of groups, and the code of each row's group, -1 for none.
    """
    size = int(cluster.max()) + 1
    action = np.array(actions, dtype=object)
    aside, corrected = (action == "set aside").astype(np.float64), (action == "correct").astype(np.float64)
    unsafe = values["unsafe"]
    found: list[Subset] = []
    for code, group in enumerate((None, *groups), start=-1):
        inside = np.ones(len(cluster)) if group is None else (of_row == code).astype(np.float64)

        def sums(of: Array, inside: Array = inside) -> Array:
            return np.bincount(cluster, weights=of * inside, minlength=size).astype(np.float64)

        whole = sums(np.ones(len(cluster)))
        first = (sums(unsafe * aside), sums(aside))
        second = (sums(unsafe * (1 - aside)), sums(1 - aside))
        shares: list[tuple[Quantity, tuple[Array, Array]]] = [("share set aside", (first[1], whole))]
        if corrected.any():
            shares.append(("share corrected", (sums(corrected), whole)))
        shares += [("unsafe set aside", first), ("unsafe kept", second)]
        if "upheld" in values:
            penalised = values["penalised"]
            upheld = np.where(penalised == 1, values["upheld"], 0.0)
            shares.append(("upheld", (sums(upheld), sums(penalised))))
        found += [
            Subset(quantity, group, shares_of(part[:, None], of[:, None], binary=True))
            for quantity, (part, of) in shares
        ]
        found.append(Subset("unsafe difference", group, difference_of_shares(first, second, _SIDES)))
    return tuple(found)
