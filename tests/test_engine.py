"""Tables that an engine holds give the numbers of the same tables in memory, and their rows stay there."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import triagestats as ts
from triagestats import inference
from triagestats.engine import gather, held, layout
from triagestats.labels import WHITE_SPACE, as_text

CLOSE = 1e-12  # the engines add the same numbers in another order
FEW = 199  # replicates: the same totals give the same draws, however few
FRAMES = ("design", "rates", "contrasts", "missing", "sensitivity", "details", "tests")
ROWS_NEEDED = ("not_computed", "totals_only")  # notes that differ by design
OF_ROWS = (
    "no_agreement",
    "no_direction",
    "no_ranking",
    "regression_disagrees",
    "unreadable",
)  # need rows too
LETTERS = ["A", "B", "C", "D"]

Case = tuple[pl.DataFrame, dict[str, Any]]


def crossed(**columns: list[Any]) -> pl.DataFrame:
    """All combinations of some labels."""
    frame = pl.DataFrame({"_": [0]})
    for name, values in columns.items():
        frame = frame.join(pl.DataFrame({name: values}), how="cross")
    return frame.drop("_")


def drawn(frame: pl.DataFrame, seed: int, *, lost: float = 0.1) -> pl.DataFrame:
    """Some of the rows in another order, with scores 0 and 1 of which some are null."""
    rng = np.random.default_rng(seed)
    kept = frame.filter(pl.Series(rng.random(frame.height) > lost)).sample(
        fraction=1, shuffle=True, seed=seed
    )
    score = pl.Series("score", (rng.random(kept.height) < 0.6).astype(float))
    return kept.with_columns(score.set(pl.Series(rng.random(kept.height) < lost), None))


def scenarios(number: int, form: str = "s{}") -> list[str]:
    return [form.format(k) for k in range(number)]


def plain() -> pl.DataFrame:
    return drawn(
        crossed(scenario=scenarios(14), model=["m2", "m1"], format=["x", "y", "z"], repetition=[1, 2, 3]), 1
    )


def variants() -> pl.DataFrame:
    frame = crossed(scenario=scenarios(13), model=["a", "b"], format=["x", "y"], variant=["u", "v", None])
    frame = drawn(frame.join(pl.DataFrame({"epoch": [1, 2]}), how="cross"), 2)
    return frame.filter((pl.col("format") == "x") | (pl.col("variant") != "v"))


def judged() -> pl.DataFrame:
    frame = crossed(
        item=scenarios(12), model=["a", "b"], format=["x", "y"], run=[1, 2], judge=["j1", "j2", None]
    )
    frame = drawn(frame, 3, lost=0.2)
    half = pl.when(pl.col("judge") == "j2").then(pl.col("score") / 2).otherwise(pl.col("score"))
    status = pl.when(pl.col("score").is_null()).then(pl.lit("refused")).otherwise(pl.lit("ok"))
    return frame.with_columns(half.alias("score"), status.alias("status"))


def labelled() -> pl.DataFrame:
    frame = drawn(crossed(case=scenarios(15), model=["a", "b"], voice=["p", "q"], rep=[1, 2]), 4)
    rng = np.random.default_rng(5)
    answers = pl.Series(rng.choice([*LETTERS, ""], frame.height))
    golds = ["B", "C/D", "C/B", "A", "A/D"]
    gold = pl.Series([golds[int(name[1:]) % len(golds)] for name in frame["case"]])
    return frame.drop("score").with_columns(answers.alias("response"), gold.alias("gold"))


def scored_and_labelled() -> pl.DataFrame:
    frame = labelled()
    rng = np.random.default_rng(6)
    score = pl.Series(rng.choice([0.0, 1.0, None, float("nan")], frame.height).astype(float))
    word = pl.Series(rng.choice(["ok", "", "Parse-Error!", "unparsed", "missing", "suspect"], frame.height))
    return frame.with_columns(
        score.set(pl.Series(rng.random(frame.height) < 0.1), None).alias("score"), word.alias("status")
    )


def two_factors() -> pl.DataFrame:
    frame = drawn(
        crossed(scenario=scenarios(12), model=["a", "b"], length=[100, 20, 3], tone=[True, False]), 7
    )
    return frame.filter(~((pl.col("length") == 3) & pl.col("tone")))


def tasks() -> pl.DataFrame:
    frame = crossed(task=["t1", "t2"], item=scenarios(8), model=["a"], format=["x", "y"])
    return drawn(frame, 8).with_columns(
        passage=pl.col("task") + (pl.col("item").str.slice(1).cast(pl.Int64) // 2).cast(pl.String)
    )


def subgroups() -> pl.DataFrame:
    frame = drawn(crossed(scenario=scenarios(16), model=["a", "b"], format=["x", "y"], rep=[1, 2]), 9)
    number = pl.col("scenario").str.slice(1).cast(pl.Int64)
    own = pl.when(number < 7).then(pl.lit("easy")).when(number < 14).then(pl.lit("hard"))
    return frame.with_columns(own.alias("stratum"))


def continuous() -> pl.DataFrame:
    frame = drawn(crossed(scenario=list(range(20)), model=[3.0, 12.0], format=["x", "y"], rep=[1, 2]), 10)
    rng = np.random.default_rng(11)
    return frame.with_columns(pl.Series("score", rng.normal(3, 2, frame.height)))


def ragged() -> pl.DataFrame:
    frame = plain()
    blank = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("  ")).otherwise(pl.lit(""))
    return frame.with_columns(
        pl.col("scenario") + blank, pl.concat_str(blank, pl.col("model")), variant=pl.lit(" ")
    )


def odd_spaces() -> pl.DataFrame:
    """Blanks that are not those of ASCII, as spreadsheets leave them."""
    space = pl.lit(pl.Series(list(WHITE_SPACE))).gather(pl.int_range(pl.len()) % len(WHITE_SPACE))
    return plain().with_columns(pl.concat_str("scenario", space), pl.concat_str(space, "format"))


def named_like_ours() -> pl.DataFrame:
    """A column whose name the engine code uses for one of its own."""
    return plain().with_columns(pl.col("repetition").cast(pl.String)).rename({"repetition": "_split"})


def counted_labels() -> pl.DataFrame:
    """Whole numbers as responses, on a scale that also has labels of no number."""
    frame = labelled().with_columns(pl.col("response").replace_strict(LETTERS, [0, 1, 2, 3], default=None))
    return frame.with_columns(gold=pl.lit("1/2"))


def nothing_said() -> pl.DataFrame:
    """Columns of nulls alone, which have no type."""
    return plain().with_columns(status=pl.lit(None), stratum=pl.lit(None), variant=pl.lit(None))


def texts() -> pl.DataFrame:
    frame = plain()
    word = pl.col("score").replace_strict({0.0: " No", 1.0: "yes"}, default="n/a", return_dtype=pl.String)
    return frame.with_columns(word.alias("score"), metric=pl.lit("acc")).vstack(
        frame.with_columns(pl.lit("0.25").alias("score"), metric=pl.lit("other")).select(
            *frame.columns, "metric"
        )
    )


def one_scenario() -> pl.DataFrame:
    return drawn(crossed(scenario=["only"], format=["x", "y"], repetition=list(range(30))), 12)


def ordered() -> pl.DataFrame:
    return plain().with_columns(pl.col("format").cast(pl.Enum(["z", "unused", "x", "y"])))


def coarser() -> pl.DataFrame:
    number = pl.col("scenario").str.slice(1).cast(pl.Int64)
    return plain().with_columns(passage=number // 2)


CASES: dict[str, Callable[[], Case]] = {
    "plain": lambda: (plain(), {}),
    "by row": lambda: (plain(), {"match": "row", "weights": "row"}),
    "pairs of rows": lambda: (plain(), {"match": "row", "reference": "y"}),
    "scenario means": lambda: (plain(), {"match": "scenario", "margin": 0.1}),
    "variants": lambda: (variants(), {}),
    "variants by row": lambda: (variants(), {"match": "row"}),
    "variants, each row": lambda: (variants(), {"weights": "row"}),
    "variants by scenario": lambda: (variants(), {"match": "scenario"}),
    "variants by scenario, each": lambda: (variants(), {"match": "scenario", "weights": "row"}),
    "judges": lambda: (judged(), {}),
    "judges by row": lambda: (judged(), {"match": "row", "weights": "row"}),
    "labels": lambda: (labelled(), {"levels": LETTERS}),
    "labels without ranges": lambda: (labelled().with_columns(pl.col("gold").str.slice(0, 1)), {}),
    "two ends of gold": lambda: (
        labelled().with_columns(gold_low=pl.lit("C"), gold_high=pl.lit("B")).drop("gold"),
        {"levels": LETTERS},
    ),
    "scores and labels": lambda: (scored_and_labelled(), {"levels": LETTERS}),
    "unparsed are wrong": lambda: (scored_and_labelled(), {"levels": LETTERS, "unparsed": "wrong"}),
    "unparsed are missing": lambda: (scored_and_labelled(), {"levels": LETTERS, "unparsed": "missing"}),
    "two factors": lambda: (two_factors(), {"condition": ["length", "tone"], "reference": {"length": 20}}),
    "tasks": lambda: (tasks(), {}),
    "tasks by passage": lambda: (tasks(), {"cluster": "passage"}),
    "coarser clusters": lambda: (coarser(), {"cluster": "passage", "interval": "percentile"}),
    "coarser, each row": lambda: (coarser(), {"cluster": "passage", "weights": "row"}),
    "strata": lambda: (subgroups(), {}),
    "strata by row": lambda: (subgroups(), {"match": "row", "interval": "bca"}),
    "continuous": lambda: (continuous(), {"higher_is_better": False, "interval": "bootstrap-t"}),
    "ragged text": lambda: (ragged(), {}),
    "odd spaces": lambda: (odd_spaces(), {}),
    "a name that is taken": lambda: (named_like_ours(), {"repetition": "_split", "match": "row"}),
    "numbers on a scale": lambda: (counted_labels(), {"levels": ["none", "0", "1", "2", "3"]}),
    "columns of nulls": lambda: (nothing_said(), {}),
    "text scores": lambda: (texts(), {"metric": "acc"}),
    "one scenario": lambda: (one_scenario(), {"cluster": "repetition"}),
    "declared order": lambda: (ordered(), {}),
    "no condition": lambda: (plain().filter(pl.col("format") == "x").drop("format"), {}),
    "no model": lambda: (plain().filter(pl.col("model") == "m1").drop("model"), {}),
    "estimands": lambda: (
        plain(),
        {
            "estimands": [
                ts.Gap("z", ["x", "y"]),
                ts.AnchoringGap("z", ["x", "y"]),
                ts.Function(lambda v: v[..., 0] - v[..., 1] ** 2, [ts.Mean("x"), ts.Mean("y")], name="odd"),
            ]
        },
    ),
}


class Engines:
    """The same table held by each engine; what an engine needs is started when it is first asked for."""

    def polars(self, frame: pl.DataFrame) -> Any:
        return frame.lazy()

    def duckdb(self, frame: pl.DataFrame) -> Any:
        relation = duckdb.from_arrow(frame.to_arrow())
        for name, dtype in frame.schema.items():
            if isinstance(dtype, pl.Enum):
                words = ", ".join(f"'{word}'" for word in dtype.categories)
                relation = relation.select(f"* replace ({name}::enum({words}) as {name})")
        return relation

    def dask(self, frame: pl.DataFrame) -> Any:
        import dask.dataframe as dd

        self.cluster  # noqa: B018  # the scheduler of this process is another: ask for the cluster
        pandas = frame.to_pandas(use_pyarrow_extension_array=True)
        for name, dtype in frame.schema.items():
            if isinstance(dtype, pl.Enum):
                pandas[name] = pd.Categorical(frame[name].to_list(), dtype.categories.to_list(), ordered=True)
        return dd.from_pandas(pandas, npartitions=3)

    def pyspark(self, frame: pl.DataFrame) -> Any:
        return self.session.createDataFrame(frame.to_arrow()).repartition(3)

    @functools.cached_property
    def cluster(self) -> Any:
        from dask.distributed import Client, LocalCluster

        workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return Client(workers)

    @functools.cached_property
    def session(self) -> Any:
        from pyspark.sql import SparkSession

        options = {
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        builder = SparkSession.builder.master("local[2]").appName("triagestats")
        session = builder.config(map=options).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def stop(self) -> None:
        for name in ("cluster", "session"):
            if name in self.__dict__:
                started = self.__dict__.pop(name)
                workers = getattr(started, "cluster", None)
                (started.close if name == "cluster" else started.stop)()
                if workers is not None:
                    workers.close()


HERE = ("polars", "duckdb")
QUIET = (
    pytest.mark.distributed,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of narwhals on Dask, of Spark on pandas 3
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that the clusters close late
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
)
FAR = tuple(pytest.param(name, marks=QUIET) for name in ("dask", "pyspark"))


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.stop()


UNORDERED = {"pyspark": ["declared order"]}
"""Cases of a type that an engine does not have."""


@pytest.fixture(params=[*HERE, *FAR])
def lazily(request: pytest.FixtureRequest, engines: Engines) -> Callable[[pl.DataFrame], Any]:
    made: Callable[[pl.DataFrame], Any] = getattr(engines, request.param)
    return made


@pytest.fixture(params=HERE)
def here(request: pytest.FixtureRequest, engines: Engines) -> Callable[[pl.DataFrame], Any]:
    made: Callable[[pl.DataFrame], Any] = getattr(engines, request.param)
    return made


def differing(one: pl.DataFrame, other: pl.DataFrame) -> Iterator[str]:
    """Cells in which two frames of the same rows differ."""
    assert one.columns == other.columns
    assert one.height == other.height
    for number, (left, right) in enumerate(
        zip(one.iter_rows(named=True), other.iter_rows(named=True), strict=True)
    ):
        for name, value in left.items():
            if not same(value, right[name]):
                yield f"row {number}, {name}: {value!r} and {right[name]!r} ({left})"


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE) or (
            math.isnan(one) and math.isnan(other)
        )
    return one == other


def agree(eager: ts.Analysis, lazy: ts.Analysis) -> None:
    """What both have is the same, and what the second has not is what needs rows."""
    for name in FRAMES:
        here, there = getattr(eager, name), getattr(lazy, name)
        if name == "tests" and here is not None:
            here = here.filter(pl.col("method").is_in(there["method"].to_list()) & pl.col("judge").is_null())
        if name == "details" and here is not None:
            here = here.filter(pl.col("quantity").is_in(there["quantity"].to_list())).select(there.columns)
        assert (here is None) == (there is None), name
        if here is not None:
            assert list(differing(here, there)) == [], name
    for name in ("errors", "agreement", "regression", "ranking"):
        assert getattr(lazy, name) is None
    assert [n for n in lazy.notes if n not in eager.notes and n.code not in ROWS_NEEDED] == []
    assert {n.code for n in eager.notes} - {n.code for n in lazy.notes} <= set(OF_ROWS)


@functools.cache
def in_memory(case: str) -> ts.Analysis:
    frame, options = CASES[case]()
    return ts.analyze(frame, n_resamples=FEW, **options)


@pytest.mark.parametrize("case", CASES)
def test_an_engine_gives_the_numbers_of_memory(case: str, lazily: Callable[[pl.DataFrame], Any]) -> None:
    frame, options = CASES[case]()
    if case in UNORDERED.get(lazily.__name__, ()):
        pytest.skip("this engine has no type of ordered categories")
    agree(in_memory(case), ts.analyze(lazily(frame), n_resamples=FEW, **options))


@pytest.mark.parametrize(
    "case", ["plain", "judges", "strata", "ragged text", "tasks by passage", "one scenario"]
)
def test_parts_change_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "ROWS_A_PART", 40)
    monkeypatch.setattr(layout, "_ROWS_OF_UNITS", 30)
    frame, options = CASES[case]()
    agree(in_memory(case), ts.analyze(frame.lazy(), n_resamples=FEW, **options))


def test_what_is_stripped_is_one_set_everywhere() -> None:
    every = pl.Series("x", [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000])
    assert "".join(every.filter(as_text(every, "x").is_null())) == WHITE_SPACE


def test_the_pair_that_is_spelled_apart_is_no_matter_of_order(here: Callable[[pl.DataFrame], Any]) -> None:
    frame = pl.DataFrame({"scenario": list("abcd"), "response": ["b", "A", "c", "a"], "gold": list("Baca")})
    fits = [ts.analyze(given, n_resamples=FEW) for given in (frame, frame.reverse(), here(frame))]
    said = {note.message for fit in fits for note in fit.notes if note.code == "labels_spelled_apart"}
    assert len(said) == 1
    assert "has 'A' where `gold` has 'a'" in said.pop()


def test_the_order_of_rows_changes_nothing(here: Callable[[pl.DataFrame], Any]) -> None:
    frame = plain().sort("format", "repetition", "scenario")
    agree(in_memory("plain"), ts.analyze(here(frame), n_resamples=FEW))


@pytest.mark.parametrize("match", ["cell", "row", "scenario"])
def test_rows_stay_where_they_are(match: Any, engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = drawn(
        crossed(scenario=scenarios(40), model=["a", "b"], format=["x", "y"], repetition=list(range(20))), 13
    )
    heights: list[int] = []
    collect, collect_all = nw.LazyFrame.collect, pl.collect_all

    def one(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = collect(self, *args, **kwargs)
        heights.append(len(found))
        return found

    def several(*args: Any, **kwargs: Any) -> Any:
        found = collect_all(*args, **kwargs)
        heights.extend(part.height for part in found)
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", one)
    monkeypatch.setattr(pl, "collect_all", several)
    for engine in (engines.polars, engines.duckdb):
        heights.clear()
        fit = ts.analyze(engine(frame), match=match, n_resamples=FEW)
        assert heights
        assert max(heights) == fit.glance()["n_clusters"][0] == 40


def test_a_million_clusters_would_be_read_by_t(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "MANY_CLUSTERS", 13)
    eager, lazy = (ts.analyze(frame, n_resamples=FEW) for frame in (plain(), plain().lazy()))
    agree(eager, lazy)
    assert lazy.contrasts is not None
    assert lazy.sensitivity is not None
    row = lazy.contrasts.row(0, named=True)
    assert row["method"] == "cluster jackknife t; t test"
    assert row["p_value"] == pytest.approx(
        in_memory("plain").tests.filter(method="cluster jackknife t")["p_value"][0]
    )
    assert not lazy.sensitivity["method"].str.contains("bootstrap").any()
    assert "many_clusters" in {note.code for note in lazy.notes}


def test_sums_that_do_not_fit_are_refused(
    here: Callable[[pl.DataFrame], Any], monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    monkeypatch.setattr(gather, "_memory", lambda: 2**10)
    message = refusal(lambda: ts.analyze(here(plain())))
    assert message.startswith("DesignError: `cluster` is 'scenario', which has some 14 values, and ")
    assert "coarser column with `cluster=`" in message


def without(*columns: str) -> pl.DataFrame:
    return plain().drop(*columns)


def changed(**columns: Any) -> pl.DataFrame:
    return plain().with_columns(**columns)


FIRST = pl.int_range(pl.len()) == 0
REFUSED_ALIKE: dict[str, tuple[Callable[[], pl.DataFrame], dict[str, Any]]] = {
    "unknown column": (plain, {"model": "zz"}),
    "no scenario": (lambda: without("scenario"), {}),
    "nothing to score": (lambda: without("score"), {}),
    "no rows": (lambda: plain().head(0), {}),
    "all null": (lambda: changed(score=pl.lit(None, pl.Float64)), {}),
    "all NaN": (lambda: changed(score=pl.lit(float("nan"))), {}),
    "infinite": (
        lambda: plain().sort("scenario").with_columns(score=pl.when(FIRST).then(np.inf).otherwise(0.0)),
        {},
    ),
    "infinite text": (lambda: changed(score=pl.lit("inf")).filter(pl.col("scenario") == "s1"), {}),
    "blank scenario": (lambda: changed(scenario=pl.when(FIRST).then(pl.lit(" ")).otherwise("scenario")), {}),
    "blank condition": (lambda: changed(format=pl.when(~FIRST).then("format")), {}),
    "several metrics": (texts, {}),
    "no such metric": (texts, {"metric": ["metric", "zz"]}),
    "score that is none": (lambda: changed(score=pl.lit("good")), {}),
    "response off the scale": (labelled, {"levels": ["A", "B", "C"]}),
    "gold off the scale": (lambda: labelled().with_columns(response=pl.lit("A")), {"levels": ["A", "B"]}),
    "ranges without a scale": (lambda: labelled().with_columns(gold=pl.lit("C/D")), {}),
    "one cluster": (lambda: plain().filter(pl.col("scenario") == "s1"), {}),
    "split scenarios": (plain, {"cluster": "repetition"}),
    "reference": (plain, {"reference": "zz"}),
    "levels": (plain, {"levels": "AB"}),
    "higher_is_better": (plain, {"higher_is_better": 1}),
    "unparsed": (plain, {"unparsed": "zz"}),
    "unparsed are wrong": (
        lambda: changed(score=pl.lit(3.0), status=pl.lit("unparsed")),
        {"unparsed": "wrong"},
    ),
    "joined conditions": (
        lambda: crossed(scenario=scenarios(5)).join(
            pl.DataFrame({"x": ["a, y=b", "a"], "y": ["c", "b, y=c"], "score": [1, 0]}), how="cross"
        ),
        {"condition": ["x", "y"]},
    ),
    "joined tasks": (
        lambda: pl.DataFrame({"task": ["a/b", "a", "t"], "item": ["c", "b/c", "d"], "score": [1, 0, 1]}),
        {},
    ),
    "unmatched": (
        lambda: plain().filter((pl.col("format") == "x") == (pl.col("scenario") == "s1")),
        {"match": "row"},
    ),
}


@pytest.mark.parametrize("case", REFUSED_ALIKE)
def test_an_engine_refuses_what_memory_refuses(
    case: str, here: Callable[[pl.DataFrame], Any], refusal: Callable[..., str]
) -> None:
    make, options = REFUSED_ALIKE[case]
    expected = refusal(lambda: ts.analyze(make(), **options))
    assert refusal(lambda: ts.analyze(here(make()), **options)) == expected


ADVICE = (
    "; give the column that tells them apart its role (`condition=`, `variant=`, `repetition=`, `judge=`), "
    "keep the rows of one of its values, or drop the copies"
)
TWICE = pl.DataFrame(
    {"scenario": ["a", "a", "b", "b"], "model": ["m", "m", "m", "n"], "score": [1.0, 0.0, 1.0, 1.0]}
)
REFUSED_HERE: dict[str, tuple[Callable[[], pl.DataFrame], dict[str, Any], str]] = {
    "a key twice": (
        lambda: TWICE,
        {},
        (
            "DataError: `data` has one key (scenario x model) in more than one row, 2 rows in all, such as "
            "scenario='a', model='m'" + ADVICE
        ),
    ),
    "a judge twice": (
        lambda: TWICE.with_columns(judge=pl.lit("j"), format=pl.lit("x")),
        {},
        (
            "DataError: `data` has one key (scenario x model x condition x judge) in more than one row, "
            "2 rows in all, such as scenario='a', model='m', condition='x', judge='j'" + ADVICE
        ),
    ),
    "two clusters": (
        plain,
        {"cluster": ["scenario", "model"]},
        (
            "DesignError: `cluster` names 'scenario' and 'model', and two crossed columns need the rows in "
            "memory, and {engine} holds them: collect the table first, or name one column"
        ),
    ),
    "texts of many kinds": (
        lambda: changed(score=(pl.int_range(pl.len()) / 1000).cast(pl.String)),
        {},
        (
            "DataError: `score` is text of more than 200 kinds; cast it to a number where it is held, or "
            "collect the table first"
        ),
    ),
    "labels of two types": (
        lambda: changed(response=pl.lit("1"), gold=pl.lit(1)),
        {},
        (
            "DataError: `response` and `gold` hold different types, so that the engine cannot compare them "
            "as labels; make both text where they are held"
        ),
    ),
    "dates on a scale": (
        lambda: without("score").with_columns(response=pl.date(2020, 1, 1), gold=pl.date(2020, 1, 1)),
        {"levels": ["2020-01-01", "2020-01-02"]},
        (
            "DataError: `response` holds dates, which the engine cannot compare with `levels`; make it text "
            "where it is held"
        ),
    ),
    "lists": (
        lambda: changed(model=pl.concat_list("model")),
        {},
        (
            "DataError: `model` is column 'model', which holds List(String); expected text or numbers: name "
            "another column, or make this one text where it is held"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED_HERE)
def test_what_an_engine_cannot_do_is_refused(
    case: str, here: Callable[[pl.DataFrame], Any], refusal: Callable[..., str]
) -> None:
    make, options, message = REFUSED_HERE[case]
    given = here(make())
    engine = "polars" if isinstance(given, pl.LazyFrame) else "duckdb"
    assert refusal(lambda: ts.analyze(given, **options)) == message.replace("{engine}", engine)


def test_a_broken_query_is_refused(refusal: Callable[..., str]) -> None:
    broken = plain().lazy().with_columns(score=pl.col("format").cast(pl.Int64))
    assert refusal(lambda: ts.analyze(broken)).startswith(
        "ReadError: `data` is a lazy frame that polars cannot group and sum: "
    )


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_small_table(data: st.DataObject) -> None:
    full = crossed(
        scenario=scenarios(6), model=["a", "b"], format=["x", "y"], variant=["u", None], rep=[1, 2]
    )
    score = st.sampled_from([0.0, 1.0, 0.5, None, float("nan")])
    scores = data.draw(st.lists(score, min_size=full.height, max_size=full.height))
    kept = data.draw(st.lists(st.booleans(), min_size=full.height, max_size=full.height))
    frame = full.with_columns(score=pl.Series(scores, dtype=pl.Float64)).filter(pl.Series(kept))
    options: dict[str, Any] = {
        "match": data.draw(st.sampled_from(["cell", "row", "scenario"])),
        "weights": data.draw(st.sampled_from(["scenario", "row"])),
        "n_resamples": 19,
    }
    try:
        eager = ts.analyze(frame, **options)
    except ts.TriagestatsError as error:
        with pytest.raises(type(error)):
            ts.analyze(frame.lazy(), **options)
        return
    agree(eager, ts.analyze(frame.lazy(), **options))
