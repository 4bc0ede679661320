"""Study files: what they say, what is refused with key and line, and what may not change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import triagestats as ts
from triagestats.collect.contract import Scenario
from triagestats.collect.lines import line_of
from triagestats.collect.plan import planned_calls
from triagestats.collect.scenarios import drawn
from triagestats.collect.study_file import read_study
from triagestats.collect.study_models import Draw
from triagestats.errors import ArgumentError

STUDY = """\
levels = ["A", "B", "C"]
repetitions = 2

[scenarios]
rows = [
  {id = "s1", story = "One.", gold = "A"},
  {id = "s2", story = "Two.", gold = "B/C", kind = "hard"},
]

[[models]]
name = "big"
base_url = "http://localhost:1/v1"
[models.parameters]
temperature = 0

[[models]]
name = "small"
base_url = "http://localhost:1/v1"

[[conditions]]
name = "letter"
protocol = "prompt"
template = "{{ story }} A, B or C?"
answer = { kind = "letter" }
"""


@pytest.fixture
def refused(tmp_path: Path, refusal: Callable[[Callable[[], object]], str]) -> Callable[..., str]:
    """What is said of the study with pieces of its text replaced."""

    def said(*changes: tuple[str, str]) -> str:
        text = STUDY
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "study.toml"
        path.write_text(text)
        return refusal(lambda: read_study(path)).replace(str(tmp_path), "FOLDER")

    return said


def test_the_study_is_read(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = read_study(tmp_path / "study.toml")
    assert study.name == "study"
    assert [scenario.gold for scenario in study.scenarios] == ["A", "B/C"]
    assert list(study.models) == ["big", "small"]
    assert [(one.model, one.at_least, one.at_most) for one in planned_calls(study)] == [
        ("big", 4, 4),
        ("small", 4, 4),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "repetitions = 2",
            "repetitions = 0",
            "`repetitions` (study.toml, line 2): Input should be greater than or equal to 1",
        ),
        ("repetitions = 2", "repetition = 2", "`repetition` (study.toml, line 2): is no key of this table"),
        (
            'id = "s2"',
            'id = "s1"',
            (
                "`scenarios.id` (study.toml, line 4): scenario 's1' is there twice, as number 1 of `rows` "
                "and as "
                "number 2 of `rows`; give each an id of its own"
            ),
        ),
        (
            'gold = "A"',
            'gold = "D"',
            (
                "`scenarios.gold` (study.toml, line 4): the gold label 'D' of scenario 's1' as number 1 of "
                "`rows` is "
                "not on the scale `levels`, ['A', 'B', 'C']"
            ),
        ),
        (
            'name = "small"',
            'name = "big"',
            "`models[2].name` (study.toml, line 17): 'big' is there twice; rename one",
        ),
        (
            "temperature = 0",
            "temperature = 0\nstream = true",
            "`models[1].parameters` (study.toml, line 13): cannot set stream, which the study sets itself",
        ),
        (
            'name = "small"',
            'name = "small"\nkey = "sk-123"',
            (
                "`models[2].key` (study.toml, line 18): must be the name of an environment variable, such as "
                "OPENAI_API_KEY, and never the key itself"
            ),
        ),
        (
            'template = "{{ story }} A',
            'models = ["huge"]\ntemplate = "{{ story }} A',
            (
                "`conditions[1].models` (study.toml, line 23): names the unknown model 'huge'; the models "
                "are "
                "['big', 'small']"
            ),
        ),
        (
            "{{ story }}",
            "{{ tale }}",
            (
                "`conditions[1].template` (study.toml, line 23): the template uses 'tale', which is not "
                "defined for "
                "scenario 's1'; it may use ['gold', 'id', 'story']"
            ),
        ),
        (
            "{{ story }}",
            "{{ kind }}",
            (
                "`conditions[1].template` (study.toml, line 23): the template uses 'kind', which is not "
                "defined for "
                "scenario 's1'; it may use ['gold', 'id', 'story']"
            ),
        ),
        (
            "{{ story }}",
            "{{ story",
            (
                "`conditions[1].template` (study.toml, line 23): line 1 is no template: expected token "
                "'end of "
                "print statement', got 'A'"
            ),
        ),
        (
            'story = "One.", gold = "A"',
            'story = "One."',
            (
                "`conditions[1]` (study.toml, line 20): 'letter' is scored, and 1 of the 2 scenarios lack a "
                "gold label, such as ['s1']; complete the column `gold`, or set `scored = false`"
            ),
        ),
        (
            "answer = {",
            'judges = ["kim"]\nanswer = {',
            "`conditions[1].judges` (study.toml, line 24): names 'kim'; the judges are []",
        ),
        (
            'name = "small"',
            'name = "small"\nmodel = "big"\nparameters = { temperature = 0 }',
            (
                "`models[2]` (study.toml, line 16): 'small' is asked exactly as 'big' is; drop one, or use "
                "`repetitions` for more answers of the same model"
            ),
        ),
        (
            'base_url = "http://localhost:1/v1"\n[models.p',
            'base_url = "http://me:secret@localhost:1/v1"\n[models.p',
            (
                "`models[1].base_url` (study.toml, line 12): holds more than an address; give keys by an "
                "environment "
                "variable with `key`"
            ),
        ),
        (
            "rows = [\n  {",
            'carry = ["voice"]\nrows = [\n  {voice = "calm", ',
            (
                "`scenarios.carry[1]` (study.toml, line 5): 'voice' would be read as the condition of the "
                "response "
                "table; rename the column"
            ),
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    refused: Callable[..., str], old: str, new: str, said: str
) -> None:
    assert refused((old, new)) == f"ArgumentError: {said}"


def test_a_file_that_is_no_toml_or_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "is not toml: " in refused(("levels = [", "levels = [["))
    with pytest.raises(ts.TriagestatsError, match="cannot be read: No such file"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(ts.TriagestatsError, match="must be a path to a toml file"):
        read_study(3)  # type: ignore[arg-type]


def test_several_faults_are_counted(refused: Callable[..., str]) -> None:
    said = refused(("repetitions = 2", "repetitions = 0"), ('levels = ["A", "B", "C"]', 'levels = ["A"]'))
    assert said.endswith("(and 1 more)")


def test_a_missing_key_is_named_before_any_call(
    chat: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with chat.ChatServer() as server:
        text = STUDY.replace("http://localhost:1/v1", server.url).replace(
            'name = "small"', 'name = "small"\nkey = "MY_KEY"'
        )
        (tmp_path / "study.toml").write_text(text)
        with pytest.raises(ArgumentError) as caught:
            ts.collect(tmp_path / "study.toml")
    assert str(caught.value) == (
        "`models[2].key` (study.toml, line 18): the environment variable 'MY_KEY', which holds the key of "
        "'small', is not set: set it (export MY_KEY=...), or name another"
    )
    assert server.count == 0
    assert not (tmp_path / "study.sqlite").exists()


@pytest.fixture
def changed(chat: ModuleType, tmp_path: Path) -> Any:
    """Collects the study, then again with changes."""

    def again(*changes: tuple[str, str], reparse: bool = False) -> tuple[ts.ResponseTable, int]:
        path = tmp_path / "study.toml"
        with chat.ChatServer(lambda _: "Answer: A") as server:
            text = STUDY.replace("http://localhost:1/v1", server.url)
            path.write_text(text)
            ts.collect(path)
            before = server.count
            for old, new in changes:
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            path.write_text(text)
            table = ts.collect(path, resume=not reparse, reparse=reparse)
            return table, server.count - before

    return again


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("temperature = 0", "temperature = 1", "models.big.parameters.temperature was 0 and is 1"),
        (
            "temperature = 0",
            "seed = 3",
            "models.big.parameters.temperature is gone; models.big.parameters.seed is now 3",
        ),
        ('"One."', '"Won."', "scenarios.s1.fields was "),
        (
            "A, B or C?",
            "A, B, C?",
            'conditions.letter.template.source was "{{ story }} A, B or C?" and is "{{ story }} A, B, C?"',
        ),
        ('name = "small"', 'name = "tiny"', "models.small is gone"),
        ("repetitions = 2", "repetitions = 1", "repetitions was 2 and is 1"),
    ],
)
def test_a_changed_study_says_what_changed(changed: Any, old: str, new: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        changed((old, new))
    assert str(caught.value).startswith("`study` has changed since its store was made: ")
    assert said in str(caught.value)


def test_a_study_may_grow(changed: Any) -> None:
    table, asked = changed(
        ('  {id = "s2"', '  {id = "s3", story = "Three.", gold = "A"},\n  {id = "s2"'),
        ("repetitions = 2", "repetitions = 3"),
    )
    assert table.frame.height == 18
    assert asked == 18 - 8
    assert "Added since the store was made: repetitions (2 to 3), scenarios.s3." in [
        str(note) for note in table.notes
    ]


def test_how_calls_are_made_may_change(changed: Any) -> None:
    table, asked = changed(('name = "small"', 'name = "small"\nretries = 1\ntimeout = 5'))
    assert (table.frame.height, asked) == (8, 0)


def test_another_gold_label_asks_for_reparse(changed: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r'reads its answers in another way .* scenarios\.s1\.gold was "A" and is "B"'
    ):
        changed(('gold = "A"', 'gold = "B"'))
    table = ts.collect(tmp_path / "study.toml", reparse=True)  # no server is there any more
    assert table.frame.filter(scenario="s1")["score"].to_list() == [0.0] * 4
    ts.collect(tmp_path / "study.toml", reparse=True)


def scenarios(n: int) -> list[Scenario]:
    return [Scenario(f"s{i}", {"kind": "hard" if i % 4 == 0 else "easy"}) for i in range(n)]


def test_a_draw_is_stratified_and_seeded() -> None:
    drawn_ones = drawn(scenarios(40), Draw(n=12, by=("kind",)), seed=1)
    assert Counter(one.fields["kind"] for one in drawn_ones) == {"easy": 9, "hard": 3}
    assert drawn_ones == drawn(scenarios(40), Draw(n=12, by=("kind",), seed=1), seed=5)
    assert drawn_ones != drawn(scenarios(40), Draw(n=12, by=("kind",)), seed=2)
    backwards = drawn(scenarios(40)[::-1], Draw(n=12, by=("kind",)), seed=1)
    assert {one.id for one in backwards} == {one.id for one in drawn_ones}


def test_a_larger_draw_holds_the_smaller_one() -> None:
    small = drawn(scenarios(40), Draw(n=4, by=("kind",), allocation="equal"), seed=1)
    large = drawn(scenarios(40), Draw(n=8, by=("kind",), allocation="equal"), seed=1)
    assert {one.id for one in small} < {one.id for one in large}
    assert Counter(one.fields["kind"] for one in large) == {"easy": 8, "hard": 8}


def test_the_largest_remainders_are_filled() -> None:
    """Of 10, 10 and 5 scenarios, 8: shares 3.2, 3.2 and 1.6 are 3, 3 and 2."""
    kinds = ["a"] * 10 + ["b"] * 10 + ["c"] * 5
    made = [Scenario(f"s{i}", {"kind": kind}) for i, kind in enumerate(kinds)]
    assert Counter(one.fields["kind"] for one in drawn(made, Draw(n=8, by=("kind",)), seed=3)) == {
        "a": 3,
        "b": 3,
        "c": 2,
    }


def test_each_scenario_is_drawn_as_often_as_others() -> None:
    """3 of 10 in 2,000 draws: each 600 times, within 5 standard deviations of a binomial count."""
    seen = Counter(one.id for seed in range(2000) for one in drawn(scenarios(10), Draw(n=3), seed=seed))
    deviation = (2000 * 0.3 * 0.7) ** 0.5
    assert all(abs(seen[f"s{i}"] - 600) < 5 * deviation for i in range(10))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        ({"n": 41}, "asks for 41 scenarios, and there are 40"),
        (
            {"n": 11, "by": ["kind"], "allocation": "equal"},
            'asks for 11 of each stratum, and ["hard"] has 10',
        ),
        ({"n": 3, "by": ["age"]}, "names 'age'; the columns are ['id', 'kind', 'gold', 'story']"),
    ],
)
def test_a_draw_that_cannot_be(draw: dict[str, Any], said: str) -> None:
    rows = [{"id": s.id, **s.fields, "gold": "A", "story": "x"} for s in scenarios(40)]
    study = {
        "scenarios": {"rows": rows, "draw": draw},
        "models": [{"name": "m", "base_url": "http://localhost:1/v1"}],
        "conditions": [{"name": "c", "protocol": "prompt", "template": "x", "answer": {"kind": "letter"}}],
    }
    with pytest.raises(ArgumentError) as caught:
        read_study(study)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.jsonl", '{"id": "a"}\n{"id": ', "line 2 of 's.jsonl' is not JSON"),
        ("s.jsonl", '{"id": "a", "x": "\\ud83e"}', "line 1 of 's.jsonl' is not JSON"),
        ("s.jsonl", "[1]", "line 1 of 's.jsonl' must be an object; got '[1]'"),
        ("s.jsonl", '{"story": "a"}', "must name the column of the scenario; the columns are ['story']"),
        ("s.jsonl", '{"id": "a"}\n{"id": " "}', "the scenario on line 2 of 's.jsonl' has no id"),
        ("s.jsonl", '{"id": "a"}\n\n{"id": "a"}', "on line 1 of 's.jsonl' and on line 3 of 's.jsonl'"),
        ("s.csv", "id,gold\n", "holds no scenario"),
        ("s.csv", "item,case\na,b\n", "`scenario` could be column 'item' or 'case'"),
        ("s.xlsx", "", "has the ending '.xlsx'"),
    ],
)
def test_scenario_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    text = STUDY[: STUDY.index("rows")] + f'file = "{name}"\n' + STUDY[STUDY.index("\n[[models]]") :]
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(ArgumentError) as caught:
        read_study(tmp_path / "study.toml")
    assert said in str(caught.value)
    assert "(study.toml, line " in str(caught.value)


def test_jsonl_keeps_what_it_nests(tmp_path: Path) -> None:
    rows = [
        {"case": "a", "script": {"fever": "Yes."}, "gold_low": "A", "gold_high": "B"},
        {"case": "b", "script": {"age": 3}},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    text = STUDY[: STUDY.index("rows")] + 'file = "s.jsonl"\n' + STUDY[STUDY.index("\n[[models]]") :]
    (tmp_path / "study.toml").write_text(
        text.replace("{{ story }}", "{{ script }}").replace("answer =", "scored = false\nanswer =")
    )
    first, second = read_study(tmp_path / "study.toml").scenarios
    assert first.fields["script"] == {"fever": "Yes."}
    assert second.fields["script"] == {"age": 3}
    assert (first.id, first.gold, second.gold) == ("a", "A/B", None)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 2),
        (("list",), 3),
        (("list", 1), 3),
        (("t", "x y"), 8),
        (("t", "d", "e"), 9),
        (("items", 0, "k"), 13),
        (("items", 0, "sub", "z"), 18),
        (("items", 1, "k"), 20),
        (("items", 1, "absent"), 19),
        (("items", 2), None),
        (("absent",), None),
    ],
)
def test_lines_of_keys(path: tuple[str | int, ...], line: int | None) -> None:
    text = '''# [a]
a = "[b] # = no comment"
list = [
  "]", # ]
  "=",
]
[t]
"x y" = 1
d.e = 2

# c
[[items]]
  k = """
[[items]]
k = 2
"""
[items.sub]
z = {a = 1}
[[ items ]]
k = 'x'
'''
    assert line_of(text, path) == line
