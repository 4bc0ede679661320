"""What names items where a harness leaves that to the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import triagestats as ts
from triagestats.errors import ArgumentError
from triagestats.readers.items import Items, refuse_item, shortened
from triagestats.readers.rows import Ask

Field = dict[str, object]


def labels(fields: list[Field], inputs: list[object], **options: str) -> tuple[list[str], str]:
    items = Items("acme", **options)  # type: ignore[arg-type]  # text options only
    for given, own in zip(inputs, fields, strict=True):
        items.add(given, own)
    names, notes = items.labels()
    return names, notes[0].message if notes else ""


@pytest.mark.parametrize(
    "name", ["case_id", "caseId", "id", "vars.case_id", "inputs.Example ID", "item", "metadata.doc"]
)
def test_a_field_that_is_called_so_names_items(name: str) -> None:
    names, said = labels([{name: "a"}, {name: "b"}, {name: "a"}], ["Q", "R", "Q"])
    assert names == ["a", "b", "a"]
    assert said == f"Items are named by {name!r}; `item=` names another field."


@pytest.mark.parametrize("name", ["passage_id", "user", "question", "model_id"])
def test_other_fields_do_not(name: str) -> None:
    assert labels([{name: "a"}, {name: "b"}], ["Q", "R"])[0] == ["Q", "R"]


def test_a_number_may_stand_for_one_case_in_two_formats() -> None:
    assert labels([{"case_id": 1}, {"case_id": 1}], ["as prose", "as a list"])[0] == ["1", "1"]


def test_a_text_that_several_inputs_share_names_none() -> None:
    """A document with two questions is two items."""
    fields: list[Field] = [{"doc": "long text"}, {"doc": "long text"}]
    assert labels(fields, ["Q1", "Q2"])[0] == ["Q1", "Q2"]


def test_a_number_of_rows_names_none() -> None:
    """A number that differs where the inputs are equal counts answers."""
    assert labels([{"id": 1}, {"id": 2}, {"id": 3}], ["Q", "Q", "R"])[0] == ["Q", "Q", "R"]


def test_a_field_that_some_answers_lack_names_none() -> None:
    names, said = labels([{"case_id": "a"}, {}], ["Q", "R"])
    assert names == ["Q", "R"]
    assert said == (
        "No field names the items of these acme files one by one, so that equal inputs are one item; `item=` "
        "names a field."
    )


def test_the_finer_of_two_numbers_names_items() -> None:
    fields: list[Field] = [{"task_id": "t", "case_id": "a"}, {"task_id": "t", "case_id": "b"}]
    assert labels(fields, ["Q", "R"])[0] == ["a", "b"]


def test_the_order_of_variables_makes_no_other_item() -> None:
    names, _ = labels([{}, {}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}])
    assert names == ['{"a": 1, "b": 2}'] * 2


def test_the_only_variable_is_the_input() -> None:
    assert labels([{}], [{"question": "Chest pain?"}])[0] == ["Chest pain?"]


def test_long_inputs_are_shortened_and_stay_apart() -> None:
    first, second = "x" * 500 + "a", "x" * 500 + "b"
    assert shortened(first) != shortened(second)
    assert len(shortened(first)) < 100
    assert shortened("short") == "short"


def test_a_format_that_numbers_its_items_refuses_another_field() -> None:
    refuse_item(Ask(), "acme")
    with pytest.raises(ArgumentError, match="`item` names 'x', but acme files number their items themselves"):
        refuse_item(Ask(item="x"), "acme")


@pytest.mark.parametrize("harness", ["inspect", "lm_eval", "helm"])
def test_a_reader_refuses_another_field(harness: str, shared: Callable[[str], Path]) -> None:
    read = {"inspect": ts.read_inspect, "lm_eval": ts.read_lm_eval, "helm": ts.read_helm}[harness]
    said = "`item` names 'question', but .* files number their items themselves"
    with pytest.raises(ArgumentError, match=said):
        read(shared(f"harness/{harness}"), item="question")
