"""Rule and RuleSet: rules written beforehand, frozen by a hash, and what they do on fresh cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.flags import binary_column, column_named
from triagestats.labels import as_text, label_of, listed, n_rows
from triagestats.results import Note
from triagestats.roles import RoleArgument
from triagestats.triage.board_cases import Places, places_of
from triagestats.triage.rule_report import Criterion, RuleReport, subsets_of
from triagestats.triage.rule_text import (
    Predicate,
    content_hash,
    expression_text,
    matches,
    predicate_text,
    values_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

__all__ = ["Action", "Rule", "RuleSet"]

Action = Literal["keep", "correct", "set aside"]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What is done with the rows that a condition matches.

    Parameters
    ----------
    id
        Its name, of its own within a set.
    predicate
        A SQL condition on the columns, such as `"age >= 65 AND sex = 'f'"`; or a polars expression; or a
        function from the frame to one truth value a row. SQL text has the same hash for ever; that of an
        expression holds for one version of polars, that of a function for its source.
    action
        `keep`; `correct`, which writes the values of `sets`; or `set aside`.
    citation
        Where the rule comes from.
    sets
        For `correct`: values or polars expressions by column.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If something is missing, or cannot be frozen.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.Rule("elderly", "age >= 65", "set aside", "Protocol 2.1").text
    'sql: age >= 65'
    """

    id: str
    predicate: Predicate
    action: Action
    citation: str
    sets: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("id", "citation"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise ArgumentTypeError(f"`{name}` of a rule must be text; got {value!r}")
        valid_choice("action", self.action, Action)
        if self.sets is not None and (self.action != "correct" or not isinstance(self.sets, Mapping)):
            raise ArgumentError(
                f"`sets` of rule {self.id!r} must map columns to values, and goes with action='correct'"
            )
        if self.action == "correct" and not self.sets:
            raise ArgumentError(
                f"rule {self.id!r} corrects nothing: give `sets`, what it writes by column, such as "
                "{'label': 'emergency'}"
            )
        self.content()

    @property
    def text(self) -> str:
        """The predicate as it is frozen."""
        return predicate_text(self.predicate, self.id)

    def content(self) -> dict[str, Any]:
        """What the hash of a set is made of, as plain values."""
        sets = {str(name): expression_text(value, self.id) for name, value in (self.sets or {}).items()}
        return {
            "id": self.id,
            "predicate": self.text,
            "action": self.action,
            "citation": self.citation,
            "sets": sets,
        }


@dataclass(frozen=True, slots=True, eq=False)
class RuleSet:
    """Rules in their order, and criteria written beforehand, frozen by a hash of their content.

    Parameters
    ----------
    rules
        Where several match a row, the first of them acts.
    criteria
        What the rules must reach on fresh cases.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no rule, or an id repeats.

    Examples
    --------
    >>> import triagestats as ts
    >>> rules = ts.RuleSet(
    ...     [ts.Rule("short", "n_words < 5", "set aside", "Protocol 1"),
    ...      ts.Rule("long", "n_words > 90", "keep", "Protocol 2")],
    ...     criteria=[ts.Criterion("share set aside", at_most=0.2)],
    ... )
    >>> len(rules.sha256)
    64
    >>> cases = {"case": range(8), "n_words": [3, 20, 30, 4] * 2, "unsafe": [1, 0, 0, 1] * 2}
    >>> report = rules.apply(cases, unsafe="unsafe", sha256=rules.sha256)
    >>> report.rules.select("rule", "matched", "applied").rows()
    [('short', 4, 4), ('long', 0, 0)]
    >>> print(report.notes[0])
    Rule 'long' matches no row.
    """

    rules: Sequence[Rule]
    criteria: Sequence[Criterion] = ()

    def __post_init__(self) -> None:
        for name, kind in (("rules", Rule), ("criteria", Criterion)):
            given = getattr(self, name)
            if not isinstance(given, Sequence) or not all(isinstance(item, kind) for item in given):
                raise ArgumentTypeError(f"`{name}` must be a list of ts.{kind.__name__}; got {given!r}")
            object.__setattr__(self, name, tuple(given))
        if not self.rules:
            raise ArgumentError("`rules` is empty: give at least one ts.Rule")
        ids = [rule.id for rule in self.rules]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ArgumentError(f"`rules` have ids that repeat: {listed(twice)}; give each rule its own")

    @property
    def content(self) -> dict[str, Any]:
        """Rules and criteria as plain values: to be published with the hash."""
        return {
            "rules": [rule.content() for rule in self.rules],
            "criteria": [criterion.content() for criterion in self.criteria],
        }

    @property
    def sha256(self) -> str:
        """SHA-256 of ids, predicates, actions, citations and criteria, in their order."""
        return content_hash(self.content)

    def apply(
        self,
        data: object,
        *,
        unsafe: str,
        penalised: str | None = None,
        upheld: str | None = None,
        group: str | None = None,
        seen: Iterable[object] | None = None,
        sha256: str | None = None,
        scenario: RoleArgument = None,
        model: RoleArgument = None,
        cluster: RoleArgument = None,
        conf_level: float = defaults.CONF_LEVEL,
    ) -> RuleReport:
        """Run the rules on cases, and report what each did and what the rows that it set aside are like.

        Parameters
        ----------
        data
            A table of any make with one row an answer, or a `ResponseTable`; predicates read its columns.
        unsafe
            Column of 0 and 1: whether the answer is unsafe, as it stands after corrections.
        penalised, upheld
            Columns of 0 and 1: whether the answer was penalised, and whether a second reference upholds the
            penalty, by coming to the same; `upheld` is read for penalised answers alone. Both or neither.
        group
            Column of groups to report on, beside all rows.
        seen
            Cases on which the rules were written: none of them may be in `data`.
        sha256
            The hash as it was published: refused where the set is another one.
        scenario, model, cluster
            Columns; recognised where not given. Clusters are the scenarios by default.
        conf_level
            Level of the intervals.

        Returns
        -------
        RuleReport
            `rules` (counts by rule and group), `tidy()`, `criteria`, `frame` (the rows with `rule_id` and
            `rule_action`), `notes`.

        Raises
        ------
        ArgumentError, ArgumentTypeError, DataError
            If a predicate cannot be computed, a column is absent or holds something else, the cases are not
            fresh, or the hash differs.

        Notes
        -----
        A row that no rule matches is kept. A rule whose condition is null for a row does not match it. Rates
        are shares of answers; those of the kept ones include the corrected. Their difference is set aside
        minus kept, with the cluster jackknife and t(G - 1), as both may lie in one cluster.
        """
        if sha256 is not None and sha256 != self.sha256:
            raise ArgumentError(
                f"`sha256` is {sha256!r}, and these rules have {self.sha256!r}: they are not the ones that "
                "were frozen"
            )
        if (penalised is None) != (upheld is None):
            raise ArgumentError("`penalised` and `upheld` go together: give both or neither")
        level = valid_level(conf_level)
        places = places_of(data, scenario=scenario, model=model, cluster=cluster)
        _fresh(places, seen)
        matched, acting, notes = self._match(places.frame)
        frame = self._corrected(places.frame, acting)
        groups, of_row = _groups(frame, group)
        values = _outcomes(frame, {"unsafe": unsafe, "penalised": penalised, "upheld": upheld})
        actions = [*(rule.action for rule in self.rules), "keep"]
        ids = [*(rule.id for rule in self.rules), None]
        done = [actions[place] for place in acting]
        return RuleReport(
            sha256=self.sha256,
            rules=self._counts(matched, acting, groups, of_row),
            subsets=subsets_of(places.cluster, done, values, groups, of_row),
            criteria_written=tuple(self.criteria),
            frame=frame.with_columns(
                pl.Series("rule_id", [ids[place] for place in acting], dtype=pl.String),
                pl.Series("rule_action", done, dtype=pl.String),
            ),
            conf_level=level,
            notes=(*places.notes, *notes, *_absent_groups(self.criteria, groups)),
        )

    def _match(self, frame: pl.DataFrame) -> tuple[Mask, NDArray[np.int64], list[Note]]:
        """Which rows each rule matches, (rules, n); the rule that acts, or their number; and notes."""
        notes = []
        parts = []
        for rule in self.rules:
            found, unknown = matches(frame, rule.predicate, rule.id)
            parts.append(found)
            if not found.any():
                message = f"Rule {rule.id!r} matches no row."
                notes.append(Note("rule_matches_nothing", message, "caution"))
            if unknown:
                message = f"The condition of rule {rule.id!r} is null in {n_rows(unknown)}: no match there."
                notes.append(Note("rule_unknown", message, "caution"))
        matched = np.stack(parts)
        if several := int((matched.sum(axis=0) > 1).sum()):
            message = f"The first of several rules that match acts: {n_rows(several)}."
            notes.append(Note("rules_overlap", message))
        acting = np.where(matched.any(axis=0), matched.argmax(axis=0), len(self.rules))
        return matched, acting, notes

    def _corrected(self, frame: pl.DataFrame, acting: NDArray[np.int64]) -> pl.DataFrame:
        """The frame with the values of the rules that correct; all of them read it as it came."""
        result = frame
        for place, rule in enumerate(self.rules):
            for name, value in (rule.sets or {}).items():
                old = column_named(result, name, "sets")
                new = values_of(frame, value, rule.id, "sets")
                here = pl.Series(acting == place)
                try:
                    result = result.with_columns(new.cast(old.dtype).zip_with(here, old).alias(name))
                except pl.exceptions.PolarsError as error:
                    raise ArgumentError(
                        f"`sets` of rule {rule.id!r} cannot be written to column {name!r}, which holds "
                        f"{old.dtype}: {error}"
                    ) from None
        return result

    def _counts(
        self, matched: Mask, acting: NDArray[np.int64], groups: Sequence[str], of_row: NDArray[np.int64]
    ) -> pl.DataFrame:
        """What each rule did, for all rows and by group."""
        rows = []
        for place, rule in enumerate(self.rules):
            for code, group in enumerate((None, *groups), start=-1):
                inside = np.ones(len(acting), dtype=bool) if group is None else of_row == code
                rows.append(
                    {
                        "rule": rule.id,
                        "action": rule.action,
                        "citation": rule.citation,
                        "group": group,
                        "matched": int((matched[place] & inside).sum()),
                        "applied": int(((acting == place) & inside).sum()),
                    }
                )
        return pl.DataFrame(rows, schema_overrides={"group": pl.String})


def _fresh(places: Places, seen: Iterable[object] | None) -> None:
    """Refuse cases on which the rules were written."""
    if seen is None:
        return
    if isinstance(seen, str) or not isinstance(seen, Iterable):
        raise ArgumentTypeError(f"`seen` must be a list of cases; got {seen!r}")
    known = {label_of(case) for case in seen}
    if again := [case for case in places.scenarios if case in known]:
        raise DataError(
            f"`seen` holds {len(again):,} of the {len(places.scenarios):,} cases, such as {again[0]!r}: "
            "rules must "
            "be run on fresh cases; drop those on which they were written"
        )


def _groups(frame: pl.DataFrame, group: str | None) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups in sorted order, and the code of each row's group, -1 where it is blank."""
    if group is None:
        return (), np.full(frame.height, -1, dtype=np.int64)
    text = as_text(column_named(frame, group, "group"), "group")
    names = tuple(text.drop_nulls().unique().sort().to_list())
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place.get(label, -1) for label in text], dtype=np.int64)


def _outcomes(frame: pl.DataFrame, columns: Mapping[str, str | None]) -> dict[str, NDArray[np.float64]]:
    """The columns of 0 and 1 by what they say; `upheld` may be blank where nothing was penalised."""
    found: dict[str, NDArray[np.float64]] = {}
    for argument, name in columns.items():
        if name is None:
            continue
        values = binary_column(frame, name, argument)
        needed = found["penalised"] == 1 if argument == "upheld" else np.ones(len(values), dtype=bool)
        if gaps := int((np.isnan(values) & needed).sum()):
            where = "penalised rows" if argument == "upheld" else "rows"
            raise DataError(
                f"`{argument}` is column {name!r}, which is blank in {gaps:,} {where}; fill it in"
            )
        found[argument] = values
    return found


def _absent_groups(criteria: Sequence[Criterion], groups: Sequence[str]) -> list[Note]:
    """Notes on criteria for groups that no row has."""
    return [
        Note("group_absent", f"No row is in group {c.group!r}, which a criterion names.", "caution")
        for c in criteria
        if c.group is not None and c.group not in groups
    ]
