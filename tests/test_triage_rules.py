"""Rules: frozen by content, what each did, rates of what was set aside, criteria, and refused input."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.results import TIDY_SCHEMA

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of a few dozen doubles
LIMIT = 4


def rules(*more: ts.Rule, **options: Any) -> ts.RuleSet:
    return ts.RuleSet(
        [
            ts.Rule("short", "words < 5", "set aside", "Protocol 1"),
            ts.Rule("typo", "label = 'emergancy'", "correct", "Protocol 2", {"label": "emergency"}),
            ts.Rule("clear", "words > 40", "keep", "Protocol 3"),
            *more,
        ],
        **options,
    )


def cases(n: int = 40, seed: int = 2) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    words = random.integers(1, 60, n)
    return pl.DataFrame(
        {
            "case": [f"c{place:02}" for place in range(n)],
            "words": words,
            "label": np.where(random.random(n) < 0.2, "emergancy", "routine"),
            "unsafe": (random.random(n) < np.where(words < 15, 0.6, 0.2)).astype(int),
            "site": np.where(random.random(n) < 0.5, "north", "south"),
        }
    )


def test_the_hash_is_that_of_the_content() -> None:
    assert rules().sha256 == rules().sha256
    assert len(rules().sha256) == 64
    changed = [
        ts.Rule("short", "words < 6", "set aside", "Protocol 1"),
        ts.Rule("short", "words < 5", "keep", "Protocol 1"),
        ts.Rule("short", "words < 5", "set aside", "Protocol 1a"),
        ts.Rule("shorter", "words < 5", "set aside", "Protocol 1"),
    ]
    hashes = {ts.RuleSet([rule]).sha256 for rule in changed}
    first, second = rules().rules[:2]
    hashes |= {
        ts.RuleSet([first]).sha256,
        ts.RuleSet([first, second]).sha256,
        ts.RuleSet([second, first]).sha256,
    }
    hashes.add(ts.RuleSet([first], criteria=[ts.Criterion("unsafe kept", at_most=0.1)]).sha256)
    hashes.add(ts.RuleSet([first], criteria=[ts.Criterion("unsafe kept", at_most=0.2)]).sha256)
    assert len(hashes) == 9


def test_the_hash_of_text_does_not_depend_on_libraries() -> None:
    """The value is written down: it must be the same for ever."""
    text = (
        '{"criteria":[],"rules":[{"action":"set aside","citation":"Protocol 1","id":"short",'
        '"predicate":"sql: words < 5","sets":{}}]}'
    )
    import hashlib

    found = ts.RuleSet([ts.Rule("short", "words < 5", "set aside", "Protocol 1")]).sha256
    assert found == hashlib.sha256(text.encode()).hexdigest()


def test_expressions_and_functions_are_frozen_with_what_they_read() -> None:
    def below(limit: int) -> Callable[[pl.DataFrame], pl.Series]:
        return lambda frame: frame["words"] < limit

    def with_global(frame: pl.DataFrame) -> pl.Series:
        return frame["words"] < LIMIT

    def sha(predicate: Any) -> str:
        return ts.RuleSet([ts.Rule("r", predicate, "keep", "P")]).sha256

    assert sha(below(5)) == sha(below(5))
    assert sha(below(5)) != sha(below(6))
    assert "LIMIT" in ts.Rule("r", with_global, "keep", "P").text
    assert sha(pl.col("words") < 5) == sha(pl.col("words") < 5)
    assert sha(pl.col("words") < 5) != sha(pl.col("words") < 6)
    assert sha(pl.col("words").is_in(list(range(30)))) != sha(pl.col("words").is_in([*range(29), 40]))


def test_a_function_that_calls_itself_is_frozen_once() -> None:
    def odd(frame: pl.DataFrame, level: int = 1) -> pl.Series:
        return frame["words"] % 2 == 1 if level == 0 else odd(frame, level - 1)

    assert "as above" in ts.Rule("odd", odd, "keep", "P").text


@pytest.mark.parametrize(
    "predicate",
    [
        "words < 5",
        pl.col("words") < 5,
        lambda frame: frame["words"] < 5,
        lambda f: (f["words"] < 5).to_list(),
    ],
)
def test_any_kind_of_predicate_does_the_same(predicate: Any) -> None:
    frame = cases()
    report = ts.RuleSet([ts.Rule("short", predicate, "set aside", "P")]).apply(frame, unsafe="unsafe")
    assert (report.frame["rule_action"] == "set aside").to_list() == (frame["words"] < 5).to_list()


def test_what_each_rule_did() -> None:
    frame = cases()
    report = rules(ts.Rule("late", "words < 10", "set aside", "Protocol 4")).apply(
        frame, unsafe="unsafe", group="site"
    )
    overall = report.rules.filter(pl.col("group").is_null())
    found = {row["rule"]: (row["matched"], row["applied"]) for row in overall.iter_rows(named=True)}
    words, typo = frame["words"].to_numpy(), frame["label"].to_numpy() == "emergancy"
    short = words < 5
    assert found["short"] == (short.sum(), short.sum())
    assert found["typo"] == (typo.sum(), (typo & ~short).sum())
    assert found["clear"] == ((words > 40).sum(), ((words > 40) & ~typo).sum())
    assert found["late"] == ((words < 10).sum(), ((words < 10) & ~short & ~typo).sum())
    by_site = report.rules.filter(pl.col("group").is_not_null()).group_by("rule").agg(pl.col("applied").sum())
    assert dict(by_site.iter_rows()) == {rule: applied for rule, (_, applied) in found.items()}
    assert (report.frame["label"] == "emergency").sum() == found["typo"][1]
    assert "rules_overlap" in [note.code for note in report.notes]
    assert (
        report.frame["rule_id"].null_count()
        == (report.frame["rule_action"] == "keep").sum() - found["clear"][1]
    )


def test_a_rule_that_matches_nothing_and_a_null_condition_are_noted() -> None:
    frame = cases().with_columns(pl.when(pl.col("words") > 9).then("words").alias("words"))
    report = rules().apply(frame, unsafe="unsafe")
    codes = {note.code: str(note) for note in report.notes}
    assert "is null in" in codes["rule_unknown"]
    nothing = ts.RuleSet([ts.Rule("never", "words > 999", "set aside", "P")]).apply(cases(), unsafe="unsafe")
    assert str(nothing.notes[0]) == "Rule 'never' matches no row."
    assert nothing.rules["matched"].to_list() == [0]
    tidy = nothing.tidy()
    aside = tidy.filter(estimand="unsafe_rate", term="set aside").row(0, named=True)
    assert (aside["estimate"], aside["status"]) == (None, "undefined")
    assert tidy.filter(estimand="difference")["estimate"][0] is None


def test_unsafe_rates_and_their_difference() -> None:
    frame = cases(120)
    report = rules().apply(frame, unsafe="unsafe", group="site")
    aside = frame["words"].to_numpy() < 5
    unsafe = frame["unsafe"].to_numpy()
    rows = report.tidy().filter(pl.col("stratum").is_null())
    rate = rows.filter(estimand="unsafe_rate", term="set aside").row(0, named=True)
    wilson = ts.proportion_ci(int(unsafe[aside].sum()), int(aside.sum()))
    assert rate["estimate"] == unsafe[aside].mean()
    assert aside.sum() < 5 or (rate["conf_low"], rate["conf_high"]) == pytest.approx(
        (wilson.conf_low, wilson.conf_high)
    )
    difference = rows.filter(estimand="difference").row(0, named=True)
    assert difference["contrast"] == "set aside - kept"
    assert difference["estimate"] == pytest.approx(unsafe[aside].mean() - unsafe[~aside].mean(), abs=EXACT)
    n = len(frame)
    without = []
    for g in range(n):
        left = np.arange(n) != g
        without.append(unsafe[left & aside].mean() - unsafe[left & ~aside].mean())
    assert difference["std_error"] == pytest.approx(np.sqrt((n - 1) * np.var(without)), abs=EXACT)
    north = report.tidy().filter(stratum="north", estimand="unsafe_rate", term="kept").row(0, named=True)
    there = frame["site"].to_numpy() == "north"
    assert north["estimate"] == unsafe[there & ~aside].mean()


def _difference(unsafe: list[int], n_aside: int, **options: Any) -> dict[str, Any]:
    rule = ts.RuleSet([ts.Rule("first", f"place < {n_aside}", "set aside", "P")], **options)
    places = list(range(len(unsafe)))
    report = rule.apply({"case": places, "place": places, "unsafe": unsafe}, unsafe="unsafe")
    row = report.tidy().filter(estimand="difference").row(0, named=True)
    return row | {"verdicts": report.criteria["verdict"].to_list()}


@pytest.mark.parametrize("n_aside", [1, 3, 4, 36, 39])
def test_under_five_clusters_on_either_side_decide_nothing(n_aside: int) -> None:
    criteria = [ts.Criterion("unsafe difference", at_least=0), ts.Criterion("unsafe difference", at_most=0)]
    row = _difference([1, 1, 1, *[0, 0, 0, 1] * 9, 0], n_aside, criteria=criteria)
    assert [row[name] for name in ("conf_low", "conf_high", "p_value", "statistic")] == [None] * 4
    assert row["status"] == "few_clusters"
    side, number = ("set aside", n_aside) if n_aside < 5 else ("kept", 40 - n_aside)
    assert row["reason"].startswith(f"{side}: {number} cluster")
    assert row["verdicts"] == ["undecided", "undecided"]


def test_a_side_without_unsafe_answers_has_a_floor() -> None:
    """By hand: five zeros with one right and one wrong cluster added have the variance (1/7) / 7."""
    others = [0, 1, 0, 0, 1, 1, 0, 0, 1, 0]
    row = _difference([0] * 5 + others, 5)
    without = np.array([(4 - u) / 9 for u in others])
    everyone = np.concatenate([np.full(5, -0.4), -without])
    error = (14 / 15 * ((everyone - everyone.mean()) ** 2).sum() + 1 / 49) ** 0.5
    assert row["std_error"] == pytest.approx(error, abs=EXACT)
    own = (np.var(others, ddof=1) / 10, 1 / 49)
    df = sum(own) ** 2 / (own[0] ** 2 / 9 + own[1] ** 2 / 4)
    assert row["df"] == pytest.approx(df, abs=EXACT)
    assert row["conf_high"] - row["estimate"] == pytest.approx(stats.t.ppf(0.975, df) * error, abs=EXACT)
    assert "all clusters agree in set aside" in row["reason"]
    assert _difference([0] * 5 + [1] * 10, 5)["conf_low"] == -1.0


def test_no_difference_is_found_where_there_is_none() -> None:
    """Six of 40 set aside whatever they are: 0 lies within at least 95 %, less four standard errors."""
    random = np.random.default_rng(5)
    n = 400
    rows = [_difference((random.random(40) < 0.3).astype(int).tolist(), 6) for _ in range(n)]
    covered = np.mean([row["conf_low"] <= 0 <= row["conf_high"] for row in rows])
    assert covered >= 0.95 - 4 * (0.95 * 0.05 / n) ** 0.5


def test_the_difference_is_clustered() -> None:
    frame = cases()
    doubled = pl.concat(
        [
            frame.with_columns(pl.col("case").alias("scenario"), (pl.col("case") + t).alias("row"))
            for t in "ab"
        ]
    )
    one = rules().apply(frame, unsafe="unsafe").tidy().filter(estimand="difference").row(0, named=True)
    two = (
        rules()
        .apply(doubled.drop("case"), unsafe="unsafe")
        .tidy()
        .filter(estimand="difference")
        .row(0, named=True)
    )
    assert (one["n_rows"], two["n_rows"], two["n_clusters"]) == (40, 80, 40)
    assert two["std_error"] == pytest.approx(one["std_error"], abs=EXACT)


def test_the_share_of_penalised_answers_that_is_upheld() -> None:
    frame = cases(12).with_columns(
        pl.Series("penalised", [1] * 8 + [0] * 4),
        pl.Series("second", [1, 1, 1, 0, 0, 1, 1, 1] + [None] * 4),
    )
    report = rules().apply(frame, unsafe="unsafe", penalised="penalised", upheld="second")
    row = report.tidy().filter(term="penalised answers upheld").row(0, named=True)
    assert (row["estimate"], row["n_rows"]) == (6 / 8, 8)


def test_criteria_are_judged_by_intervals_for_all_rows_and_each_group() -> None:
    criteria = [
        ts.Criterion("share set aside", at_most=0.9),
        ts.Criterion("share set aside", at_least=0.9),
        ts.Criterion("unsafe kept", at_most=0.3, group="north"),
        ts.Criterion("unsafe kept", at_most=0.3, group="west"),
    ]
    report = rules(criteria=criteria).apply(cases(), unsafe="unsafe", group="site")
    rows = report.criteria
    assert rows.filter(limits="at most 0.9")["group"].to_list() == [None, "north", "south"]
    assert set(rows.filter(limits="at most 0.9")["verdict"]) == {"met"}
    assert set(rows.filter(limits="at least 0.9")["verdict"]) == {"not met"}
    assert rows.filter(quantity="unsafe kept")["group"].to_list() == ["north"]
    assert "group_absent" in [note.code for note in report.notes]
    assert report.glance()["n_met"][0] == int((rows["verdict"] == "met").sum())
    assert ts.Criterion("upheld", at_least=0.5).judge(0.4, 0.8) == "undecided"
    assert ts.Criterion("upheld", at_least=0.5).judge(None, None) == "undecided"


def test_corrections_read_the_rows_as_they_came() -> None:
    swap = ts.RuleSet(
        [
            ts.Rule("a", "label = 'x'", "correct", "P", {"label": "y"}),
            ts.Rule(
                "b", "label = 'y'", "correct", "P", {"label": pl.lit("x"), "unsafe": 1 - pl.col("unsafe")}
            ),
        ]
    )
    frame = {"case": range(6), "label": ["x", "y"] * 3, "unsafe": [0] * 6}
    report = swap.apply(frame, unsafe="unsafe")
    assert report.frame["label"].to_list() == ["y", "x"] * 3
    assert report.frame["unsafe"].to_list() == [0, 1] * 3
    assert report.tidy().filter(estimand="unsafe_rate", term="kept")["estimate"][0] == 0.5


def test_results_convert() -> None:
    report = rules(criteria=[ts.Criterion("unsafe kept", at_most=0.5)]).apply(cases(), unsafe="unsafe")
    assert report.tidy().schema == TIDY_SCHEMA
    assert report.glance().height == 1
    assert (
        json.loads(json.dumps(report.to_dict()))["settings"]["sha256"]
        == rules(criteria=[ts.Criterion("unsafe kept", at_most=0.5)]).sha256
    )
    assert pickle.loads(pickle.dumps(report)).tidy().equals(report.tidy())
    assert f"Rules {report.sha256[:12]} on 40 rows" in repr(report)
    assert report.with_level(0.5).tidy()["conf_low"][0] > report.tidy()["conf_low"][0]


def test_the_reason_of_a_withheld_interval_is_printed() -> None:
    report = ts.RuleSet([ts.Rule("few", "words < 5", "set aside", "P")]).apply(cases(), unsafe="unsafe")
    text = repr(report)
    n = int((cases()["words"] < 5).sum())
    assert 0 < n < 5
    clusters = f"{n} cluster{'' if n == 1 else 's'}: too few"
    assert f"\n  no interval, unsafe_rate set aside: {clusters}" in text
    assert f"\n  no interval, difference set aside - kept: set aside: {clusters}" in text
    assert report._repr_html_().startswith("<pre>Rules ")


def test_rules_must_be_those_that_were_frozen_and_cases_fresh(refusal: Refusal) -> None:
    frozen = rules().sha256
    assert rules().apply(cases(), unsafe="unsafe", sha256=frozen).sha256 == frozen
    other = ts.RuleSet(rules().rules[:1])
    assert "they are not the ones that were frozen" in refusal(
        lambda: other.apply(cases(), unsafe="unsafe", sha256=frozen)
    )
    assert "rules must be run on fresh cases" in refusal(
        lambda: rules().apply(cases(), unsafe="unsafe", seen=["c01", "z"])
    )
    assert rules().apply(cases(), unsafe="unsafe", seen=["z"]).frame.height == 40


def test_bad_rules_say_what_to_do(refusal: Refusal) -> None:
    def rule(**changes: Any) -> Callable[[], object]:
        given = {"id": "r", "predicate": "words < 5", "action": "keep", "citation": "P"} | changes
        return lambda: ts.Rule(**given)

    def applied(predicate: Any, **options: Any) -> Callable[[], object]:
        one = ts.RuleSet([ts.Rule("r", predicate, "keep", "P")])
        return lambda: one.apply(cases(), **({"unsafe": "unsafe"} | options))

    assert "`action` must be one of 'keep', 'correct', 'set aside'; got 'drop'" in refusal(
        rule(action="drop")
    )
    assert "`id` of a rule must be text" in refusal(rule(id=""))
    assert "`citation` of a rule must be text" in refusal(rule(citation=None))
    assert "goes with action='correct'" in refusal(rule(sets={"label": "x"}))
    assert "must be a SQL condition, a polars expression or a function" in refusal(rule(predicate=5))
    assert "the source of the `predicate` of rule 'r' cannot be read" in refusal(rule(predicate=len))
    thing = object()
    assert "depends on 'thing', a object" in refusal(rule(predicate=lambda frame: frame["words"] == thing))
    assert "`rules` is empty" in refusal(lambda: ts.RuleSet([]))
    assert "ids that repeat: ['short']" in refusal(lambda: ts.RuleSet([rules().rules[0]] * 2))
    assert "`predicate` of rule 'r' is no SQL condition" in refusal(rule(predicate="words <"))
    assert "rule 'r' corrects nothing: give `sets`" in refusal(rule(action="correct"))
    assert "corrects nothing" in refusal(rule(action="correct", sets={}))
    assert "names a column that the table does not have" in refusal(applied("length < 5"))
    assert "must give truth values; got" in refusal(applied("words + 1"))
    assert "must give one truth value a row: expected 40, got 2" in refusal(applied(lambda _: [True, False]))
    assert "`predicate` of rule 'r' cannot be computed" in refusal(applied(lambda frame: frame["length"] < 5))
    assert "`unsafe` names 'harm'" in refusal(applied("words < 5", unsafe="harm"))
    assert "`penalised` and `upheld` go together" in refusal(applied("words < 5", upheld="unsafe"))
    assert "a criterion needs a limit" in refusal(lambda: ts.Criterion("unsafe kept"))
    assert "`quantity` must be one of" in refusal(lambda: ts.Criterion("harm", at_most=1))  # type: ignore[arg-type]
    typed = ts.RuleSet([ts.Rule("r", "words < 5", "correct", "P", {"words": "many"})])
    assert "cannot be written to column 'words'" in refusal(lambda: typed.apply(cases(), unsafe="unsafe"))
