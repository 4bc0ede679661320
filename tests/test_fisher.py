"""fisher_exact: against enumeration, by its symmetries, where others went wrong, and on bad input."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.table_law import drawn_tables, enumerated_tables

SUMS = 1e-12  # sums of masses, each exact to a few units of the last place
ROOT = 1e-9  # a root on the log odds, read as an odds ratio
NOISE = 5  # standard errors of a Monte Carlo p-value: one failure in a million seeds

Table = list[list[int]]
Refusal = Callable[[Callable[[], object]], str]


def tables_with_margins_of(table: Table) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All tables of counts with the margins of a table, row by row."""
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]

    def fill(left: tuple[int, ...], place: int) -> Iterator[tuple[tuple[int, ...], ...]]:
        if place == len(rows) - 1:
            yield (left,)
            return
        for row in itertools.product(*(range(most + 1) for most in left)):
            if sum(row) == rows[place]:
                rest = tuple(a - b for a, b in zip(left, row, strict=True))
                for others in fill(rest, place + 1):
                    yield (row, *others)

    return fill(tuple(columns), 0)


def chances(table: Table) -> dict[tuple[tuple[int, ...], ...], Fraction]:
    """Exact probabilities of all tables with these margins."""

    def ways(found: tuple[tuple[int, ...], ...]) -> Fraction:
        return Fraction(1, math.prod(math.factorial(count) for row in found for count in row))

    weights = {found: ways(found) for found in tables_with_margins_of(table)}
    total = sum(weights.values())
    return {found: weight / total for found, weight in weights.items()}


@pytest.mark.parametrize(
    "table",
    [
        [[3, 1], [1, 3]],
        [[0, 6], [6, 0]],
        [[10, 2], [3, 15]],
        [[1, 9], [11, 3]],
        [[5, 5], [5, 5]],
        [[3, 0, 2], [1, 4, 0]],
        [[2, 1], [0, 3], [4, 1]],
        [[1, 0, 2], [2, 2, 0], [0, 3, 1]],
        [[2, 0, 1, 1], [0, 3, 0, 2]],
    ],
)
def test_p_is_the_chance_of_tables_no_likelier(table: Table) -> None:
    exact = chances(table)
    own = exact[tuple(tuple(row) for row in table)]
    result = ts.fisher_exact(table)
    expected = sum(chance for chance in exact.values() if chance <= own)
    assert result.p_value == pytest.approx(float(expected), rel=SUMS)
    if len(table) == 2 == len(table[0]):
        rarer = sum(chance for chance in exact.values() if chance < own)
        assert result.details["mid_p"] == pytest.approx(float((rarer + expected) / 2), rel=SUMS)
    else:
        assert result.details["n_tables"] == len(exact)
        assert result.statistic == pytest.approx(float(own), rel=SUMS)
        assert result.method.endswith("exact by enumeration")


@pytest.mark.parametrize("table", [[[3, 1], [1, 3]], [[1, 9], [11, 3]], [[7, 12], [2, 4]], [[0, 5], [8, 4]]])
def test_other_two_sided_rules(table: Table) -> None:
    exact = chances(table)
    law = {found[0][0]: chance for found, chance in exact.items()}
    own = table[0][0]
    below = {k: sum(law[j] for j in law if j <= k) for k in law}
    above = {k: sum(law[j] for j in law if j >= k) for k in law}
    less, greater = (ts.fisher_exact(table, alternative=side) for side in ("less", "greater"))
    assert less.p_value == pytest.approx(float(below[own]), rel=SUMS)
    assert greater.p_value == pytest.approx(float(above[own]), rel=SUMS)
    assert greater.details["mid_p"] == pytest.approx(float(above[own] - law[own] / 2), rel=SUMS)
    central = ts.fisher_exact(table, two_sided="central")
    assert central.p_value == pytest.approx(float(min(1, 2 * min(below[own], above[own]))), rel=SUMS)
    smaller = {k: min(below[k], above[k]) for k in law}
    blaker = ts.fisher_exact(table, two_sided="blaker")
    expected = sum(law[k] for k in law if smaller[k] <= smaller[own])
    assert blaker.p_value == pytest.approx(float(expected), rel=SUMS)
    assert blaker.details["mid_p"] is None


def test_published_p_values_of_study_1(shared: Callable[[str], Path]) -> None:
    """Forced choice against free text, 25 answers a cell: counts from the tables, p from the recipe."""
    folder = shared("replication/study1/expected.json").parent
    published = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["published"]
    expected = next(entry for entry in published if entry["id"] == "s1_fisher")["recomputed"]
    responses = pl.read_csv(folder / "power_ablation_responses.csv")
    judgments = pl.read_csv(folder / "power_ablation_judgments.csv")
    right = (pl.col("answer") == "A").fill_null(value=False)
    rows = pl.concat(
        [
            responses.filter(pl.col("format") == "forced_choice_baseline").select(
                "model", pl.lit("forced").alias("how"), pl.col("response").alias("answer")
            ),
            judgments.filter(pl.col("judge") == "keyword_rule").select(
                "model", pl.lit("free").alias("how"), pl.col("label").alias("answer")
            ),
        ]
    ).with_columns(right.alias("right"))
    for model, wanted in expected.items():
        of_model = rows.filter(pl.col("model") == model)
        sides = [of_model.filter(pl.col("how") == how)["right"] for how in ("forced", "free")]
        assert [[side.sum(), len(side)] for side in sides] == [wanted["forced"], wanted["free"]]
        table = [[side.sum(), len(side) - side.sum()] for side in sides]
        assert ts.fisher_exact(table).p_value == pytest.approx(wanted["p"], rel=ROOT)
        assert ts.fisher_exact("how", "right", data=of_model).p_value == pytest.approx(wanted["p"], rel=ROOT)


@pytest.mark.parametrize(
    ("right", "p"),
    [(0, 1.5821457204897235e-14), (4, 3.7577543007351426e-10), (6, 1.164903833227894e-08)],
)
def test_out_of_25_against_all(right: int, p: float) -> None:
    assert ts.fisher_exact([[right, 25 - right], [25, 0]]).p_value == pytest.approx(p, rel=SUMS)


def test_near_the_mode() -> None:
    assert ts.fisher_exact([[345, 455], [260, 345]]).p_value == pytest.approx(0.956678, abs=5e-7)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 5_000])
def test_a_balanced_table_is_the_likeliest(n: int) -> None:
    result = ts.fisher_exact([[n, n], [n, n]])
    assert result.p_value == 1.0
    assert result.estimate == pytest.approx(1.0, rel=ROOT)


@pytest.mark.parametrize("k", [1, 40, 340])
def test_mirrored_tables_tie_however_many_there_are(k: int) -> None:
    """With equal rows the law is symmetric, and the p-value by minimum likelihood is the doubled one."""
    n, total = 5_000, 3_001
    result = ts.fisher_exact([[1_500 - k, n - 1_500 + k], [total - 1_500 + k, n - total + 1_500 - k]])
    assert result.p_value == pytest.approx(min(1.0, 2 * result.details["p_value_less"]), rel=1e-9)


def test_tiny_p_keeps_its_digits() -> None:
    result = ts.fisher_exact([[200, 0], [0, 200]])
    assert result.p_value == pytest.approx(float(Fraction(2, math.comb(400, 200))), rel=1e-11)
    assert (result.estimate, result.conf_high) == (math.inf, math.inf)
    assert result.details["sample_odds_ratio"] == math.inf


@pytest.mark.parametrize(
    "table", [[[3, 1], [1, 3]], [[120, 30], [80, 70]], [[2, 9], [7, 1]], [[40, 1], [2, 900]]]
)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_estimate_and_interval_solve_their_equations(table: Table, level: float) -> None:
    (a, b), (c, d) = table
    result = ts.fisher_exact(table, conf_level=level)
    assert result.estimate is not None
    assert result.conf_low is not None
    assert result.conf_high is not None

    def law(odds_ratio: float) -> stats.rv_discrete:
        return stats.nchypergeom_fisher(a + b + c + d, a + b, a + c, odds_ratio)

    tail = (1 - level) / 2
    assert law(result.estimate).mean() == pytest.approx(a, rel=1e-8)
    assert law(result.conf_low).sf(a - 1) == pytest.approx(tail, rel=1e-6)
    assert law(result.conf_high).cdf(a) == pytest.approx(tail, rel=1e-6)
    one_sided = ts.fisher_exact(table, conf_level=1 - tail, alternative="greater")
    assert one_sided.conf_low == pytest.approx(result.conf_low, rel=ROOT)
    assert one_sided.conf_high == math.inf
    assert ts.fisher_exact(table, alternative="less").conf_low == 0.0


@pytest.mark.parametrize(
    "table", [[[3, 1], [1, 3]], [[1, 9], [11, 3]], [[12, 30], [8, 41]], [[0, 5], [8, 4]]]
)
def test_symmetries(table: Table) -> None:
    (a, b), (c, d) = table
    result = ts.fisher_exact(table)
    turned, swapped = ts.fisher_exact([[a, c], [b, d]]), ts.fisher_exact([[c, d], [a, b]])
    assert turned.p_value == pytest.approx(result.p_value, rel=SUMS)
    assert swapped.p_value == pytest.approx(result.p_value, rel=SUMS)
    assert turned.estimate == pytest.approx(result.estimate, rel=ROOT)
    ends = [1 / end if end else math.inf for end in (result.conf_high or math.inf, result.conf_low)]
    assert [swapped.conf_low, swapped.conf_high] == pytest.approx(ends, rel=ROOT)
    larger = [[1, 5, 2], [4, 0, 3]]
    orders = [[[row[i] for i in order] for row in larger] for order in itertools.permutations(range(3))]
    p_values = [ts.fisher_exact(order).p_value for order in [*orders, np.transpose(larger), larger[::-1]]]
    assert p_values == pytest.approx([p_values[0]] * len(p_values), rel=SUMS)


@pytest.mark.parametrize(
    ("table", "what"),
    [([[0, 0], [7, 4]], "row"), ([[0, 5], [0, 8]], "column"), ([[0, 0, 0], [1, 2, 3]], "row")],
)
def test_an_empty_margin_leaves_one_table(table: Table, what: str) -> None:
    result = ts.fisher_exact(table)
    assert result.p_value == 1.0
    assert (result.estimate, result.statistic, result.conf_low, result.conf_high) == (None,) * 4
    assert (result.details["mid_p"], result.details["chi2"]) == (None, None)
    assert result.undefined is not None
    assert result.undefined.startswith(f"Only one {what} holds observations")
    assert result.tidy()["status"].to_list() == ["undefined"]
    assert ts.fisher_exact(table, alternative="greater").p_value == 1.0


def test_empty_rows_and_columns_change_nothing() -> None:
    plain = ts.fisher_exact([[10, 2], [3, 15]])
    padded = ts.fisher_exact([[10, 0, 2], [0, 0, 0], [3, 0, 15]])
    assert (padded.p_value, padded.estimate) == (plain.p_value, plain.estimate)
    assert [note.message for note in padded.notes] == ["Left out as empty: row 2, column 2."]


def test_drawn_tables_estimate_the_exact_p() -> None:
    table = np.array([[12, 5, 3], [8, 9, 4], [2, 6, 11]])
    exact, drawn = enumerated_tables(table), drawn_tables(table, 20_000, seed=1)
    assert exact is not None
    assert abs(drawn.p_value - exact.p_value) < NOISE * (exact.p_value / 20_000) ** 0.5
    assert drawn.probability == pytest.approx(exact.probability, rel=1e-10)
    assert drawn == drawn_tables(table, 20_000, seed=1) != drawn_tables(table, 20_000, seed=2)


def test_many_tables_are_drawn_and_said_so() -> None:
    table = [[300, 125], [250, 175], [280, 145], [290, 135], [260, 165]]
    result = ts.fisher_exact(table, n_resamples=999, seed=4)
    assert result.method == "Fisher-Freeman-Halton test, 999 drawn tables"
    assert result.p_value is not None
    assert result.p_value * 1_000 == pytest.approx(round(result.p_value * 1_000), abs=ROOT)
    assert [note.code for note in result.notes] == ["drawn"]
    assert result.p_value == ts.fisher_exact(table, n_resamples=999, seed=4).p_value


def test_labels_are_counted() -> None:
    frame = pl.DataFrame(
        {
            "format": ["letter", "text", "letter", "text", "text", None],
            "right": [0, 1, 0, 1, 0, 1],
            "block": ["a", "a", "b", "b", "c", "c"],
            "row": list("abcdef"),
        }
    )
    result = ts.fisher_exact("format", "right", data=frame, missing="omit")
    assert result.details["table"] == [[2, 0], [1, 2]]
    assert (result.details["rows"], result.details["columns"]) == (["letter", "text"], ["0", "1"])
    assert result.contrast == "odds of 1, text / letter"
    assert (result.n, result.details["n_missing"]) == (5, 1)
    assert result.p_value == ts.fisher_exact([[2, 0], [1, 2]]).p_value
    assert [note.code for note in result.notes] == ["missing"]
    alone = ts.fisher_exact("format", "right", data=frame, missing="omit", clusters="row")
    assert [note.code for note in alone.notes] == ["missing"]


def test_a_response_table_gives_its_columns() -> None:
    table = ts.ResponseTable(
        {
            "scenario": ["a", "a", "b", "b", "c", "c"],
            "condition": ["x", "y"] * 3,
            "score": [1, 0, 1, 1, 1, 0],
        }
    )
    result = ts.fisher_exact("condition", "score", data=table)
    assert result.details["table"] == [[0, 3], [2, 1]]
    assert [note.code for note in result.notes] == ["independence"]
    assert "(scenario)" in result.notes[0].message


def test_one_category_is_undefined_with_a_reason() -> None:
    result = ts.fisher_exact(["a", "a", "b", "b"], [1, 1, 1, 1])
    assert result.p_value == 1.0
    assert result.undefined is not None


def test_chi_squares_stand_beside() -> None:
    result = ts.fisher_exact([[3, 1], [1, 3]])
    assert result.details["chi2"] == pytest.approx(2.0, rel=SUMS)
    assert result.details["chi2_yates"] == pytest.approx(0.5, rel=SUMS)


REFUSED: dict[str, Callable[[], object]] = {
    "ArgumentError: `x` holds a negative count, -2; expected whole numbers from 0": (
        lambda: ts.fisher_exact([[1, -2], [3, 4]])
    ),
    "ArgumentError: `x` holds a count that is not whole, 2.5; expected whole numbers from 0": (
        lambda: ts.fisher_exact([[1, 2.5], [3, 4]])
    ),
    "ArgumentError: `x` holds a missing count, nan; expected whole numbers from 0": (
        lambda: ts.fisher_exact([[1, math.nan], [3, 4]])
    ),
    "ArgumentError: `x` must be a table of counts with at least two rows and two columns; got 1 x 3": (
        lambda: ts.fisher_exact([[1, 2, 3]])
    ),
    "ArgumentError: `x` holds no observation: all counts are 0": (lambda: ts.fisher_exact([[0, 0], [0, 0]])),
    "ArgumentError: alternative='less' needs a 2 x 2 table; `x` is 2 x 3, whose test has no direction": (
        lambda: ts.fisher_exact([[1, 2, 3], [3, 2, 1]], alternative="less")
    ),
    "ArgumentError: two_sided='central' needs a 2 x 2 table; `x` is 2 x 3, whose test has no direction": (
        lambda: ts.fisher_exact([[1, 2, 3], [3, 2, 1]], two_sided="central")
    ),
    "ArgumentError: `x` and `y` must pair: they have 2 and 1 labels": (
        lambda: ts.fisher_exact(["a", "b"], ["c"])
    ),
    "DataError: 1 of 2 rows have a missing value in `x` or `y`; drop them with missing='omit'": (
        lambda: ts.fisher_exact(["a", None], ["c", "d"])
    ),
    "ArgumentTypeError: `y` is needed: the second label of each row": (lambda: ts.fisher_exact("a")),
    "ArgumentError: `clusters` goes with two labels a row, `x` and `y`; a table of counts has no rows": (
        lambda: ts.fisher_exact([[1, 2], [3, 4]], clusters=[1, 2])
    ),
    "ArgumentError: `conf_level` must lie between 0 and 1; got 95; did you mean 0.95?": (
        lambda: ts.fisher_exact([[1, 2], [3, 4]], conf_level=95)
    ),
    "ArgumentError: 20,000,001 tables have these margins, more than the 2,000,000 that are counted; "
    "chi_square is as good for so many observations": (
        lambda: ts.fisher_exact([[10**7, 10**7], [10**7, 10**7]])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(refusal: Refusal, message: str) -> None:
    assert refusal(REFUSED[message]) == message


def test_the_floor_is_said() -> None:
    tiny = ts.fisher_exact([[5000, 0], [0, 5000]])
    assert tiny.p_value == 2.2250738585072014e-308
    assert [note.code for note in tiny.notes] == ["floor"]
    assert "below 2.2e-308" in tiny.notes[0].message
    assert ts.fisher_exact([[5000, 0], [0, 5000]], two_sided="central").notes == tiny.notes
    assert ts.fisher_exact([[400, 0], [0, 400]]).notes == ()
