"""Which column plays which role: given, recognised, or refused as ambiguous."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import triagestats as ts
from triagestats.roles import ROLE_ARGUMENTS, assign_roles
from triagestats.schema import ROLES


@pytest.mark.parametrize(
    ("role", "spelling"),
    [
        (role.name, spelling)
        for role in ROLES.values()
        for spelling in role.spellings
        if "gold_" not in role.name
    ],
)
def test_usual_spellings_are_recognised(role: str, spelling: str) -> None:
    assert assign_roles([spelling.upper(), "other"], {}).columns == {role: (spelling.upper(),)}


@pytest.mark.parametrize("name", ["Scenario", " scenario ", "SCENARIO", "scenario-id", "Scenario ID"])
def test_case_and_punctuation_do_not_matter(name: str) -> None:
    assert assign_roles([name], {}).one("scenario") == name


@pytest.mark.parametrize(
    ("columns", "given", "expected"),
    [
        (["scenario", "item"], {"scenario": "item"}, {"scenario": ("item",)}),
        (["scenario", "correct"], {"score": False}, {"scenario": ("scenario",)}),
        (["a", "format", "voice"], {"condition": ["format", "voice"]}, {"condition": ("format", "voice")}),
        (["gold_low", "gold_high"], {}, {"gold": ("gold_low", "gold_high")}),
        (["gold_low", "gold_high"], {"gold": False}, {}),
        (["gold_low"], {"gold": False}, {}),
        (["format"], {"model": "format"}, {"model": ("format",)}),
        (["gold_low", "key"], {"gold": "key"}, {"gold": ("key",)}),
        (["item"], {"cluster": "scenario"}, {"scenario": ("item",), "cluster": ("item",)}),
        (["item", "model"], {"cluster": ("item", "model")}, None),
        (
            ["item", "set"],
            {"task": "set", "cluster": "set", "stratum": "set"},
            {"scenario": ("item",), "task": ("set",), "cluster": ("set",), "stratum": ("set",)},
        ),
    ],
)
def test_what_the_caller_says_goes_first(
    columns: list[str], given: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    expected = (
        expected
        if expected is not None
        else {
            "scenario": ("item",),
            "model": ("model",),
            "cluster": ("item", "model"),
        }
    )
    assert assign_roles(columns, given).columns == expected


def test_metric_may_be_a_value() -> None:
    assert assign_roles(["metric"], {"metric": "acc"}).metric == "acc"
    assert assign_roles(["m"], {"metric": ("m", "acc")}).columns == {"metric": ("m",)}


NO_NAME = "must be the name of a column, or False where none plays it; got"

REFUSED: list[tuple[list[str], dict[str, Any], str]] = [
    (
        ["a", "b"],
        {"score": "Score"},
        "RoleError: `score` names 'Score', which the table does not have; choose from its columns ['a', 'b']",
    ),
    (
        [f"c{number}" for number in range(25)],
        {"gold": ("x", "y")},
        (
            "RoleError: `gold` names 'x', 'y', which the table does not have; choose from its columns ['c0', "
            "'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10', 'c11', 'c12', 'c13', 'c14', 'c15', "
            "'c16', 'c17', 'c18', 'c19', and 5 more]"
        ),
    ),
    (
        ["scenario", "item"],
        {},
        (
            "RoleError: `scenario` could be column 'scenario' or 'item'; say which one, for instance "
            "`scenario='scenario'`"
        ),
    ),
    (
        ["score", "correct"],
        {},
        (
            "RoleError: `score` could be column 'score' or 'correct'; say which one, for instance "
            "`score='score'`, or `score=False` for none"
        ),
    ),
    (
        ["format", "voice"],
        {},
        (
            "RoleError: `condition` could be column 'format' or 'voice'; say which one, for instance "
            "`condition='format'`, or `condition=['format', 'voice']` to compare both"
        ),
    ),
    (
        ["status", "error"],
        {},
        (
            "RoleError: `status` could be column 'status' or 'error'; say which one, for instance "
            "`status='status'`, or `status=False` for none"
        ),
    ),
    (
        ["Scenario", "scenario"],
        {},
        (
            "RoleError: `scenario` could be column 'Scenario' or 'scenario'; say which one, for instance "
            "`scenario='Scenario'`"
        ),
    ),
    (
        ["target", "gold_low", "gold_high"],
        {},
        (
            "RoleError: `gold` could be column 'target' or 'gold_low' and 'gold_high'; say which, for "
            "instance `gold='target'`"
        ),
    ),
    (
        ["gold_low"],
        {},
        (
            "RoleError: `gold` has one end of its range in column 'gold_low', and no column holds the other; "
            "name both with `gold=('low', 'high')`, or use `gold=False` for none"
        ),
    ),
    (["a"], {"score": 1}, f"ArgumentTypeError: `score` {NO_NAME} 1"),
    (["a"], {"score": True}, f"ArgumentTypeError: `score` {NO_NAME} True"),
    (["a"], {"score": []}, f"ArgumentTypeError: `score` {NO_NAME} []"),
    (["a"], {"score": b"a"}, f"ArgumentTypeError: `score` {NO_NAME} b'a'"),
    (["a", "b"], {"score": ["a", "b"]}, "ArgumentTypeError: `score` takes one column; got ['a', 'b']"),
    (
        ["a", "b", "c"],
        {"cluster": ["a", "b", "c"]},
        "ArgumentTypeError: `cluster` takes at most 2 columns; got ['a', 'b', 'c']",
    ),
    (
        ["a"],
        {"condition": ["a", "a"]},
        "ArgumentTypeError: `condition` names a column twice, ['a', 'a']; name each once",
    ),
    (
        ["a"],
        {"metric": "acc"},
        (
            "RoleError: `metric` names 'acc', but the table has neither a column of that name nor a metric "
            "column; choose from its columns ['a']"
        ),
    ),
    (
        ["a"],
        {"cluster": "repetition"},
        (
            "RoleError: `cluster` names 'repetition', which is neither a column of the table nor a role that "
            "it has; choose from its columns ['a']"
        ),
    ),
    (
        ["a"],
        {"colour": "a"},
        "ArgumentTypeError: `colour` is no role of a column; the roles are scenario, model, ",
    ),
    (
        ["a"],
        {"condition": "a", "variant": "a"},
        (
            "RoleError: `condition` and `variant` both name column 'a'; give it to one of them, and another "
            "column to the other, or none with `variant=False`"
        ),
    ),
    (
        ["a", "b"],
        {"score": "a", "gold": ("b", "a")},
        (
            "RoleError: `score` and `gold` both name column 'a'; give it to one of them, and another column "
            "to the other, or none with `gold=False`"
        ),
    ),
]


@pytest.mark.parametrize(("columns", "given", "message"), REFUSED)
def test_refused(
    columns: list[str], given: dict[str, Any], message: str, refusal: Callable[..., str]
) -> None:
    said = refusal(lambda: assign_roles(columns, given))
    assert said == message or (message.endswith(", ") and said.startswith(message))


@pytest.mark.parametrize("function", [ts.ResponseTable, ts.analyze])
def test_every_role_is_an_argument(function: Callable[..., object]) -> None:
    named = [name for name in inspect.signature(function).parameters if name in ROLES]
    assert set(named) == set(ROLE_ARGUMENTS)
    assert set(ROLES) - set(ROLE_ARGUMENTS) == {"gold_low", "gold_high"}
