"""Formulas, their columns, the rows they use, and the within transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.models import within
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.formula import RandomTerm, parse_formula, unknown_names, with_regressors
from triagestats.models.model_data import read_model_data

Refusal = Callable[[Callable[[], object]], str]

# Sums of a few hundred numbers of size 1 in float64.
ROUNDING = 1e-11


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "y": [0, 1, 0, 1, 1, 0],
            "arm": pl.Series(["v", "u", "v", "w", "u", "w"], dtype=pl.Enum(["w", "v", "u", "unused"])),
            "size": ["10", "2", "10", "2", "2", "10"],
            "x": [1.0, 2.0, 3.0, 5.0, 8.0, 13.0],
            "n": [1, 2, 1, 2, 1, 2],
            "flag": [True, False, True, True, False, False],
            "item": ["a", "a", "b", "b", "c", "c"],
            "free text": [1, 0, 0, 1, 1, 0],
        }
    )


def columns(frame: pl.DataFrame, text: str) -> Columns:
    return columns_of(parse_formula(text), frame)


def test_the_parts_of_a_formula() -> None:
    parsed = parse_formula("y  ~ a*b + C(n) + i(f, x, ref='q|r') + (1 | g) + (x || h:k) | s^m + `my v`")
    assert parsed.outcome == "y"
    assert parsed.fixed == "a*b + C(n) + i(f, x, ref='q|r')"
    assert parsed.absorbed == (("s", "m"), ("my v",))
    assert parsed.absorbed_names == ("s^m", "my v")
    assert parsed.random == (RandomTerm("1", "g", True), RandomTerm("x", "h:k", False))
    assert parsed.regressors == ("a", "b", "f", "n", "x")
    assert parsed.names == ("a", "b", "f", "g", "h", "k", "m", "my v", "n", "s", "x", "y")


def test_a_formula_of_random_terms_alone_has_a_constant() -> None:
    assert parse_formula("y ~ (1 | g)").fixed == "1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (3, "ArgumentTypeError: `formula` must be text"),
        ("y", "`formula` must be an outcome, a ~ and regressors"),
        ("y ~ a ~ b", "`formula` must be an outcome, a ~ and regressors"),
        ("log(y) ~ a", "one column on the left of ~; got 'log(y)'"),
        ("y ~ a | f | z", "Instruments are not read"),
        ("y ~ a | ", "`formula` must have regressors, and fixed effects after one |"),
        ("y ~ a | f[x]", "slopes that vary by fixed effect are not read"),
        ("y ~ a | i(f)", "must name columns after |"),
        ("y ~ a +* b", "`formula` cannot be read: Operator `+*` is incorrectly used. It is 'y ~ a +* b'"),
        ("y ~ (a | b | c)", "`formula` has the random term '(a | b | c)'"),
        ("y ~ . | s", "`formula` has '.', which is not read; name the regressors. It is 'y ~ . | s'"),
        ("y ~ x[0]", "`formula` has [, which picks a part of something"),
        ("y ~ C(x)[1]", "`formula` has [, which picks a part of something"),
        ('y ~ __import__("os").system("echo hi")', "`formula` has the function '__import__'; those that are"),
        ("y ~ I(__import__('os'))", "`formula` has the function '__import__'"),
        ("y ~ lag(x)", "`formula` has the function 'lag'; those that are read are C, I, i, log, log2,"),
        ("y ~ np.linalg.norm(x)", "`formula` has the function 'np.linalg.norm'"),
        ("y ~ I([z for z in x])", "`formula` has 'for' within a function, which is not read"),
        ("y ~ {x + 1}", "`formula` has '{', which is not read; write I(...) for arithmetic"),
        ("y ~ `x", "`formula` has a ` without a second one behind the name"),
        ("y ~ a + y", "`formula` has the outcome 'y' on both sides of ~; it is 'y ~ a + y'"),
        ("y ~ a | y", "`formula` has the outcome 'y' on both sides of ~"),
        ("y ~ log(y)", "`formula` has the outcome 'y' on both sides of ~"),
    ],
)
def test_what_cannot_be_read(refusal: Refusal, text: object, said: str) -> None:
    assert said in refusal(lambda: parse_formula(text))


def test_unknown_names_come_with_near_ones(refusal: Refusal) -> None:
    said = refusal(lambda: unknown_names(["conditon", "y"], ["condition", "model", "y"]))
    assert said == (
        "ArgumentError: `formula` names 'conditon', which the data do not have. Did you mean 'condition'? "
        "The columns are ['condition', 'model', 'y']"
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("y ~ arm", ("(Intercept)", "arm[T.v]", "arm[T.u]")),  # the order of the Enum
        ("y ~ size", ("(Intercept)", "size[T.10]")),  # 2 before 10, by value
        ("y ~ C(n) + flag", ("(Intercept)", "C(n)[T.2]", "flag")),
        ("y ~ C(arm)", ("(Intercept)", "C(arm)[T.v]", "C(arm)[T.u]")),
        ("y ~ arm*x", ("(Intercept)", "arm[T.v]", "arm[T.u]", "x", "arm[T.v]:x", "arm[T.u]:x")),
        ("y ~ arm:x | item", ("arm[w]:x", "arm[v]:x", "arm[u]:x")),
        ("y ~ i(arm, x) | item", ("arm::w:x", "arm::v:x", "arm::u:x")),
        ("y ~ i(arm, x, ref='v')", ("(Intercept)", "arm::w:x", "arm::u:x")),
        ("y ~ i(arm)", ("(Intercept)", "arm::v", "arm::u")),
        ("y ~ `free text` + I(x**2)", ("(Intercept)", "free text", "I(x ** 2)")),
        ("y ~ 0 + arm", ("arm[w]", "arm[v]", "arm[u]")),
    ],
)
def test_names_of_the_columns(frame: pl.DataFrame, text: str, names: tuple[str, ...]) -> None:
    assert columns(frame, text).names == names


FUNCTIONS = [
    *("C", "I", "i", "Q", "log", "exp", "np", "center", "scale", "poly", "lag", "bs", "cr", "cs", "cc"),
    *("hashed", "exp2", "log2", "Treatment", "contr", "sqrt", "True", "None", "if", "Intercept", "x.1"),
]


@pytest.mark.parametrize(
    "name", [*FUNCTIONS, "x-1", "x y", "1x", "x:1", "x|y", "x[0]", "é", "column__0000__"]
)
def test_columns_may_have_any_name(frame: pl.DataFrame, name: str) -> None:
    named = frame.rename({"x": name, "arm": f"{name}2"})
    texts = [f"y ~ `{name}` + C(`{name}2`) + log(`{name}`)"]
    if name in FUNCTIONS:
        texts.append(f"y ~ {name} + C({name}2) + log(`{name}`)")
    for text in texts:
        found = columns(named, text)
        assert found.names == (
            "(Intercept)",
            name,
            f"C({name}2)[T.v]",
            f"C({name}2)[T.u]",
            f"log({name})",
        )
        np.testing.assert_array_equal(found.values[:, 1], frame["x"].to_numpy())
        assert found.contrasts[f"C({name}2)[T.u]"] == "u - w"
        np.testing.assert_array_equal(found.with_column(name, np.ones(6))[:, -1], 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scale(x)", lambda x: (x - x.mean()) / x.std(ddof=1)),
        ("center(x)", lambda x: x - x.mean()),
        ("np.log(x)", np.log),
        ("log1p(x)", np.log1p),
        ("sqrt(x)", np.sqrt),
        ("abs(x)", np.abs),
        ("I(x**2 / 3)", lambda x: x**2 / 3),
        ("I(x > 2.5)", lambda x: x > 2.5),
    ],
)
def test_functions_that_are_read(
    frame: pl.DataFrame, text: str, expected: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> None:
    found = columns(frame, f"y ~ {text}")
    np.testing.assert_allclose(found.values[:, 1], expected(frame["x"].to_numpy()), rtol=1e-12)


def test_polynomials_and_codings(frame: pl.DataFrame) -> None:
    found = columns(frame, "y ~ poly(x, 2) + C(arm, Treatment('u'))")
    assert sorted(found.names[1:]) == [
        "C(arm, Treatment('u'))[T.v]",
        "C(arm, Treatment('u'))[T.w]",
        "poly(x, 2)[1]",
        "poly(x, 2)[2]",
    ]
    place = dict(zip(found.names, found.values.T, strict=True))
    first, second = place["poly(x, 2)[1]"], place["poly(x, 2)[2]"]
    assert [first @ second, first.sum(), second.sum()] == pytest.approx([0, 0, 0], abs=ROUNDING)
    # What a function learnt from the data holds at other values too.
    moved = found.with_column("x", np.full(6, frame["x"][0]))
    np.testing.assert_allclose(moved[:, found.names.index("poly(x, 2)[1]")], first[0], atol=ROUNDING)


def test_functions_that_cannot_be_computed(frame: pl.DataFrame, refusal: Refusal) -> None:
    negative = frame.with_columns(x=pl.col("x") - 4)
    said = refusal(lambda: columns(negative, "y ~ log(x)"))
    assert said == (
        "DataError: `formula` has 'log(x)', which is not finite in some rows (3 of 6); drop these rows, or "
        "take another function"
    )
    said = refusal(lambda: columns(frame, "y ~ C(arm, Treatment('zz'))"))
    assert said.startswith("ArgumentError: `formula` cannot be computed: ")
    assert "'zz'" in said
    assert said.endswith("It is \"y ~ C(arm, Treatment('zz'))\"")
    assert "cannot be computed" in refusal(lambda: columns(frame, "y ~ I(arm + x)"))


def test_a_formula_with_more_regressors() -> None:
    found = with_regressors(parse_formula("`my y` ~ a*b | s^`t u` + m"), ["z", "C", "w v"])
    assert found.outcome == "my y"
    assert found.regressors == ("C", "a", "b", "w v", "z")
    assert found.absorbed == (("s", "t u"), ("m",))


def test_values_of_the_columns(frame: pl.DataFrame) -> None:
    found = columns(frame, "y ~ arm + arm:x + log(x) | item")
    by_name = dict(zip(found.names, found.values.T, strict=True))
    is_u = (frame["arm"] == "u").to_numpy()
    np.testing.assert_array_equal(by_name["arm[T.u]"], is_u)
    np.testing.assert_allclose(by_name["arm[u]:x"], is_u * frame["x"].to_numpy())
    np.testing.assert_allclose(by_name["log(x)"], np.log(frame["x"].to_numpy()))
    assert found.contrasts["arm[T.u]"] == "u - w"
    assert found.parts["arm"] == ("arm[T.v]", "arm[T.u]")


def test_columns_if_a_value_were_another(frame: pl.DataFrame) -> None:
    found = columns(frame, "y ~ arm*x")
    at_u = found.with_column("arm", "u")
    np.testing.assert_array_equal(at_u[:, 2], 1)
    np.testing.assert_array_equal(at_u[:, 5], frame["x"].to_numpy())
    np.testing.assert_array_equal(found.with_column("x", np.zeros(6))[:, 3:], 0)


def test_a_function_that_is_not_finite(frame: pl.DataFrame, refusal: Refusal) -> None:
    with np.errstate(divide="ignore"):
        said = refusal(lambda: columns(frame, "y ~ log(`free text`)"))
    assert "`formula` has 'log(free text)', which is not finite in some rows" in said.replace(
        "`free text`", "free text"
    )


def test_a_reference_that_is_no_level(frame: pl.DataFrame, refusal: Refusal) -> None:
    assert "ref='q' is no level of arm" in refusal(lambda: columns(frame, "y ~ i(arm, ref='q')"))


def test_rows_that_are_used(frame: pl.DataFrame) -> None:
    gaps = frame.with_columns(
        pl.Series("x", [1.0, None, float("nan"), 5.0, 8.0, 13.0]), pl.Series("y", [0, 1, 0, 1, None, 0])
    )
    rows = read_model_data(parse_formula("y ~ x"), gaps, cluster="item")
    assert rows.y.tolist() == [0, 1, 0]
    assert rows.clusters[0].tolist() == [0, 1, 2]
    assert rows.n_missing == 3
    assert rows.notes[0].message == "3 rows of 6 with a missing value are left out (x in 2, y in 1)."


def test_singletons_are_dropped_again_and_again() -> None:
    # Row 0 is alone in f; without it row 1 is alone in g.
    data = {"y": [0, 1, 0, 1, 1], "f": list("abbbb"), "g": list("uuvvv"), "item": list("ppqqr")}
    parsed = parse_formula("y ~ 1 | f + g")
    rows = read_model_data(parsed, data, cluster="item")
    assert rows.n_singletons == 2
    assert rows.y.tolist() == [0, 1, 1]
    assert [codes.max() for codes in rows.absorbed] == [0, 0]
    kept = read_model_data(parsed, data, cluster="item", singletons="keep")
    assert len(kept.y) == 5
    assert kept.notes[0].message == "1 row alone in f or g (singletons) is kept."


def test_a_joint_effect_has_the_pairs_that_occur() -> None:
    data = {"y": [0, 1, 0, 1], "s": list("aabb"), "m": list("uuuv"), "item": list("pqpq")}
    rows = read_model_data(parse_formula("y ~ 1 | s^m"), data, cluster="item", singletons="keep")
    assert rows.absorbed[0].tolist() == [0, 0, 1, 2]


def test_a_response_table_knows_its_own_names() -> None:
    table = ts.ResponseTable(
        {
            "question_id": ["q1", "q1", "q2", "q2"],
            "voice": pl.Series(["plain", "angry"] * 2, dtype=pl.Enum(["plain", "angry"])),
            "hits": [1, 0, 1, 1],
            "words": [3, 5, 8, 2],
        },
        score="hits",
    )
    for text in ("hits ~ voice + words | question_id", "correct ~ condition + words | scenario"):
        parsed = parse_formula(text)
        rows = read_model_data(parsed, table, cluster=None)
        assert rows.cluster_names == ("question_id",)
        assert columns_of(parsed, rows.frame).names[0].endswith("[T.angry]")
        assert sorted(rows.y) == [0, 1, 1, 1]


def test_two_condition_columns_and_two_clusters() -> None:
    rows = [(s, m, a, b) for s in "pqr" for m in "xy" for a in "uv" for b in "st"]
    table = ts.ResponseTable(
        pl.DataFrame(rows, schema=["item", "llm", "tone", "length"], orient="row").with_columns(score=1),
        condition=["tone", "length"],
        cluster=["item", "llm"],
    )
    parsed = parse_formula("score ~ tone*length")
    found = read_model_data(parsed, table, cluster=None)
    assert found.cluster_names == ("item", "llm")
    assert [int(codes.max()) for codes in found.clusters] == [2, 1]
    assert "tone[T.v]:length[T.t]" in columns_of(parsed, found.frame).names


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        ({"y": list("abcdef")}, {}, "the outcome 'y' holds String such as 'a'; it must hold numbers"),
        ({"y": [1, 0, float("inf"), 0, 0, 1.0]}, {}, "the outcome 'y' holds infinite values"),
        ({"y": [None] * 5 + [1.0], "x": [1.0] * 5 + [None]}, {}, "no row has a value in every column"),
        (
            {"item": ["a", None, "b", "b", None, "c"]},
            {},
            "`cluster` is 'item', which is missing in 2 of 6 rows",
        ),
        ({"item": ["a"] * 6}, {}, "`cluster` is 'item', which has one value in the rows that are used"),
        (
            {"w": [1.0, 2, 0, 1, 1, 1]},
            {"weights": "w"},
            "`weights` is 'w', which is missing, infinite or not ",
        ),
        ({"w": list("abcdef")}, {"weights": "w"}, "`weights` is 'w', which holds String"),
        ({}, {"weights": "x2"}, "`weights` names 'x2', which the data do not have."),
        ({}, {"cluster": "itm"}, "`cluster` names 'itm', which the data do not have. Did you mean 'item'?"),
        ({}, {"cluster": ["item", "n", "x"]}, "`cluster` must name one or two columns"),
    ],
)
def test_rows_that_cannot_be_used(
    frame: pl.DataFrame,
    refusal: Refusal,
    change: dict[str, list[object]],
    arguments: dict[str, object],
    said: str,
) -> None:
    data = frame.with_columns(pl.Series(name, values, strict=False) for name, values in change.items())
    given: dict[str, object] = {"cluster": "item"} | arguments
    assert said in refusal(lambda: read_model_data(parse_formula("y ~ x"), data, **given))  # type: ignore[arg-type]


def test_no_rows(frame: pl.DataFrame, refusal: Refusal) -> None:
    said = refusal(lambda: read_model_data(parse_formula("y ~ x"), frame.head(0), cluster="item"))
    assert said == "DataError: `data` has no rows, and a model needs some"


def test_lists_are_no_labels(frame: pl.DataFrame, refusal: Refusal) -> None:
    lists = frame.with_columns(several=pl.concat_list("x", "n"))
    for text in ("y ~ several", "y ~ x | several", "several ~ x"):
        said = refusal(lambda text=text: read_model_data(parse_formula(text), lists, cluster="item"))
        assert said.startswith("DataError: `formula` names 'several', which holds List(Float64); expected")


@pytest.mark.parametrize("text", ["y ~ x", "y ~ x | item", "y ~ x + item"])
def test_an_unknown_cluster_is_refused_whatever_the_formula_names(
    frame: pl.DataFrame, refusal: Refusal, text: str
) -> None:
    gaps = frame.with_columns(
        item=pl.Series(["a", None, "b", "b", None, "c"]), x=pl.Series([1.0, None, 3, 4, 5, 6])
    )
    said = refusal(lambda: read_model_data(parse_formula(text), gaps, cluster="item"))
    # Row 1 has no x, so that it is left out before its cluster is asked for.
    assert "`cluster` is 'item', which is missing in 1 of 5 rows" in said


def test_rows_of_several_judges_are_said() -> None:
    rng = np.random.default_rng(3)
    rows = [(s, c, j, int(rng.random() < 0.5)) for s in range(12) for c in "uv" for j in ("one", "two")]
    table = ts.ResponseTable(
        pl.DataFrame(rows, schema=["scenario", "condition", "judge", "score"], orient="row")
    )
    fit = ts.lpm("score ~ condition | scenario", table)
    note = next(note for note in fit.notes if note.code == "judges")
    averaged = table.frame.group_by("scenario", "condition").agg(pl.col("score").mean())
    assert "table.frame.group_by('scenario', 'condition').agg(pl.col('score').mean())" in note.message
    mean = ts.lpm("score ~ condition | scenario", averaged)
    assert mean.matrix.y.shape == (24,)
    assert mean.estimates == pytest.approx(fit.estimates, abs=ROUNDING)
    assert "judges" in {note.code for note in ts.logit("score ~ condition", table).notes}
    for other in (
        ts.lpm("score ~ condition | scenario + judge", table),
        ts.lpm("score ~ condition | scenario", table.with_judge("two")),
        mean,
    ):
        assert "judges" not in {note.code for note in other.notes}


def test_every_row_a_singleton(frame: pl.DataFrame, refusal: Refusal) -> None:
    said = refusal(lambda: read_model_data(parse_formula("y ~ n | x"), frame, cluster="item"))
    assert "every row is alone in a level of x" in said


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_demeaned_is_the_residual_on_all_dummies(
    monkeypatch: pytest.MonkeyPatch, dense: bool, weighted: bool
) -> None:
    if not dense:
        monkeypatch.setattr(within, "_DENSE", 0)
    rng = np.random.default_rng(5)
    codes = [np.unique(rng.integers(0, k, 200), return_inverse=True)[1].astype(np.int64) for k in (40, 9, 6)]
    values = rng.normal(size=(200, 3))
    weights = rng.uniform(0.5, 2, 200) if weighted else None
    root = np.ones(200) if weights is None else np.sqrt(weights)
    matrix = np.column_stack([within.dummies(c) for c in codes]) * root[:, None]
    fitted = matrix @ np.linalg.lstsq(matrix, values * root[:, None])[0]
    expected = values - fitted / root[:, None]
    got = within.demeaned(values, codes, weights)
    np.testing.assert_allclose(got, expected, atol=ROUNDING)


def test_demeaned_where_the_effects_fall_apart() -> None:
    # Two blocks that share no level: one more dummy is redundant than two effects have anyway.
    first, second = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])
    values = np.arange(8.0)[:, None] ** 2
    got = within.demeaned(values, [first, second])
    for codes in (first, second):
        np.testing.assert_allclose(np.bincount(codes, weights=got[:, 0]), 0, atol=ROUNDING)


def test_independent_keeps_the_first_of_collinear_columns() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    near = x[:, 1] + 1e-6 * x[:, 2]
    columns = np.column_stack([np.ones(50), x[:, :2], 2 * x[:, 0] - 3, near, np.zeros(50)])
    assert within.independent(columns, columns).tolist() == [True, True, True, False, True, False]
    far = np.column_stack([np.ones(50), 1e6 + x[:, 0]])
    assert within.independent(far, far).all()


def test_nested() -> None:
    inner, outer = np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1])
    assert within.is_nested(inner, outer)
    assert not within.is_nested(outer, inner)
