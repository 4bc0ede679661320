"""Parts of a replication: printed digits, Monte Carlo bands, short names, and how an entry is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from triagestats.replicate.counting import count_text, counts_like, scored
from triagestats.replicate.entry import Clustered, Found, NotDerivableError, judged
from triagestats.replicate.leaves import agrees, decimals_of, flat, printed_alike, shown
from triagestats.replicate.montecarlo import (
    Band,
    band_of_mean,
    band_of_p,
    band_of_spread,
    bands_of_ends,
    bands_of_tail,
)
from triagestats.replicate.published import Published, read_expected
from triagestats.replicate.tables import Folder, best_named

MODELS = [
    "claude-opus-4.6",
    "claude-opus-4.6-nothink",
    "claude-sonnet-4.6",
    "gemini-3-flash",
    "gemini-3.1-pro",
    "gpt-5.2-thinking-high",
    "gpt-5.3-instant",
]


def published(**changes: Any) -> Published:
    given: dict[str, Any] = {
        "id": "x",
        "kind": "published",
        "published": 0.5,
        "recomputed": None,
        "mark": "yes",
        "tolerance": None,
        "recipe": "mean",
        "table": "",
        "claim": "",
        "where": "",
        "note": "",
        "n_replicates": None,
    }
    return Published(**(given | changes))


@pytest.mark.parametrize(
    ("printed", "found", "alike"),
    [
        (0.098, 0.09796, True),
        (0.098, 0.0986, False),
        (4.65, 4.6464, True),
        (0.015, 0.013567, False),
        (1.58e-14, 1.5821e-14, True),
        (1e-06, 1.249e-06, True),
        (1e-06, 4.3e-06, False),
        (24, 24, True),
        (24, 30, False),
        (0.5, 0.511, False),  # one digit of a share: zeros were lost
        (0.9, 0.9, True),
        (-0.092, -0.0934, False),
        ("37/50", "37/50", True),
        ("37/50", "38/50", False),
        ("about 85 versus 69", "85 versus 69", True),
        ("32 vs 13", "31 vs 11", False),
        ("all p<10^-8", "all p<10^-7", False),
        (True, True, True),
        (True, False, False),
        (0.5, None, False),
    ],
)
def test_printed_digits(printed: Any, found: Any, *, alike: bool) -> None:
    assert printed_alike(printed, found) is alike


def test_a_stated_tolerance_replaces_the_digits() -> None:
    assert printed_alike(0.6417, 0.64166, 5.1e-5)
    assert not printed_alike(250, 249, 0)
    assert decimals_of(2.0) == 0


@pytest.mark.parametrize(
    ("kept", "found", "same"),
    [
        (0.4326794572, 0.43267945717, True),  # ten decimals are kept
        (0.4326794572, 0.4326795, False),
        (7.52693241e-10, 7.52693319e-10, True),  # 1 - cdf loses digits
        (7.5e-10, 7.6e-10, False),
        (0.0, 1e-29, True),
        (3, 3, True),
        (3, 4, False),
        ("a", "a", True),
    ],
)
def test_two_computations_of_one_number(kept: Any, found: Any, *, same: bool) -> None:
    assert agrees(kept, found) is same


def test_leaves_of_json() -> None:
    assert flat({"a": {"b": [1, {"c": 2}]}, "d": None}) == {"a/b/0": 1, "a/b/1/c": 2, "d": None}
    assert flat(0.5) == {"": 0.5}
    assert shown({"a": {"p": 0.12345}, "b": [1, True, None]}) == "a (p 0.1235), b [1, yes, -]"


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("gpt_5_2", "gpt-5.2-thinking-high"),
        ("gpt53", "gpt-5.3-instant"),
        ("gemini_3_1_pro", "gemini-3.1-pro"),
        ("opus", "claude-opus-4.6"),
        ("opus_nothink", "claude-opus-4.6-nothink"),
        ("opus_think", "claude-opus-4.6"),
        ("sonnet", "claude-sonnet-4.6"),
        ("llama", None),
    ],
)
def test_short_names(short: str, name: str | None) -> None:
    assert best_named(short, MODELS) == name


@pytest.mark.parametrize("source", [500, 2_000])
def test_bands_hold_ends_of_other_replicates(source: int) -> None:
    """Percentile ends of other draws of a discrete statistic lie in the bands; those of another do not."""
    random = np.random.default_rng(8)

    def draws(size: int, p: float = 0.3) -> np.ndarray[Any, Any]:
        return random.binomial(60, p, size) / 60

    def ends(values: np.ndarray[Any, Any], level: float) -> tuple[float, float]:
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    own = draws(9_999)
    low, high = bands_of_ends(lambda level: ends(own, level), 0.95, source, 9_999)
    others = [ends(draws(source), 0.95) for _ in range(300)]
    assert all(low.holds(a) and high.holds(b) for a, b in others)
    a, b = ends(draws(source, 0.6), 0.95)
    assert not low.holds(a)
    assert not high.holds(b)
    assert low.high < high.low  # an interval is told from a point


def test_bands_of_moments_and_tails() -> None:
    random = np.random.default_rng(4)
    own = random.normal(0, 2, 9_999)
    mean = band_of_mean(own.mean(), own.std(), 2_000, 9_999)
    spread = band_of_spread(own.std(), 2_000, 9_999)
    tail = bands_of_tail(float(np.quantile(own, 0.95)), 0.0, 0.1031 / own.std(), 2_000, 9_999)
    for _ in range(300):
        other = random.normal(0, 2, 2_000)
        assert mean.holds(other.mean())
        assert spread.holds(other.std())
        assert tail.holds(float(np.quantile(other, 0.95)))
    assert not mean.holds(0.5)
    assert not spread.holds(2.4)
    assert not tail.holds(4.0)
    p = band_of_p(1 / 10_000, 2_000, 9_999)
    assert p.holds(1 / 2_001)
    assert not p.holds(0.01)
    assert band_of_p(0.5, 1_000, None).high < 0.57
    assert str(Band(0.1, 0.2, 2_000, None)) == (
        "0.1 to 0.2: 4 standard errors of 2,000 replicates of the source and the exact law of the library"
    )


def test_an_entry_that_matches() -> None:
    entry = judged(published(published=0.064), Found(0.0641, clustered=(Clustered("d", 0.064),)))
    assert (entry.match, entry.failed, entry.reason) == ("yes", False, "")
    assert entry.to_dict()["clustered"][0]["estimate"] == 0.064


def test_an_entry_that_does_not() -> None:
    entry = judged(published(published={"p": 0.02, "n": 9}), Found({"p": 0.03, "n": 9}))
    assert (entry.match, entry.failed) == ("no", True)
    assert entry.reason == "1 of 2 parts differ: p 0.02 against 0.03. mean"
    assert not judged(published(published=0.1, mark="no"), Found(0.3)).failed


def test_an_entry_within_monte_carlo_error() -> None:
    band = {"": Band(0.4, 0.6, 2_000, 9_999)}
    entry = judged(published(published=0.58, tolerance=0.001), Found(0.5, bands=band))
    assert (entry.match, entry.failed) == ("within Monte Carlo error", False)
    assert entry.reason.startswith("0.4 to 0.6: 4 standard errors of 2,000 replicates of the source")
    assert judged(published(published=0.62, tolerance=0.001), Found(0.5, bands=band)).match == "no"


def test_an_entry_that_cannot_be_derived_is_no_failure() -> None:
    entry = judged(published(), NotDerivableError("rows are not in the folder"))
    assert (entry.match, entry.failed, entry.value) == ("not derivable", False, None)
    undefined = judged(published(), Found(None, note="0 / 0"))
    assert (undefined.match, undefined.reason) == ("not derivable", "0 / 0")


def test_parts_that_are_not_compared_are_named() -> None:
    entry = judged(published(published={"a": 1, "b": 2, "c": None}), Found({"a": 1}))
    assert (entry.match, entry.reason) == ("yes", "not compared: b")


def test_the_folder_may_recompute_something_else() -> None:
    entry = judged(published(published=0.5, recomputed=0.51), Found(0.5))
    assert (entry.match, entry.recomputed_agrees) == ("yes", False)
    assert entry.reason == "the folder recomputed other values: 0.51 against 0.5"


def test_recipes_that_refer_to_others_and_replicates(tmp_path: Path) -> None:
    entries = [
        {"id": "a", "published": 1, "recomputed": 1, "match": True, "recipe": "2,000 case resamples, seed 1"},
        {"id": "b", "published": 1, "recomputed": 1, "match": False, "recipe": "as a"},
        {"id": "c", "published": 1, "recomputed": None, "match": None, "recipe": "mean"},
    ]
    blocks = {
        "boot_10000": {"recipe": "text", "x": {"y": 1}},
        "published_only": {"z": {"acc": 0.5}},
        "other": {},
    }
    (tmp_path / "expected.json").write_text(json.dumps({"published_checks": entries} | blocks))
    found = read_expected(tmp_path, {"boot_": 1, "published_only": 1}).entries
    assert [entry.id for entry in found] == ["a", "b", "c", "boot_10000/x", "published_only/z"]
    assert found[1].recipe == "as a (2,000 case resamples, seed 1)"
    assert [entry.n_replicates for entry in found] == [2_000, 2_000, 2_000, 10_000, 2_000]
    assert [entry.mark for entry in found] == ["yes", "no", "not checked", "reference", "not checked"]
    assert [entry.marked for entry in found] == [True, False, False, False, False]
    assert (found[4].published, found[4].recomputed) == ({"acc": 0.5}, None)


def test_counts_in_the_shape_of_an_entry() -> None:
    rows = scored(
        pl.DataFrame(
            {
                "model": ["m", "m", "n", "n"],
                "format": ["x", "y", "x", "x"],
                "response": ["A", "B", "A", None],
                "gold_low": ["A"] * 4,
                "gold_high": ["A"] * 4,
            }
        ),
        keep_blank=True,
    )
    assert counts_like({"m:x": "", "n": {"correct": 0, "scored": 0, "n": 0}, "z": 1}, rows) == {
        "m:x": "1/1",
        "n": {"correct": 1, "scored": 1, "n": 2},
        "z": None,
    }
    assert counts_like(0.5, rows) == pytest.approx(2 / 3)
    assert count_text(12, 22, 25) == "12/22 scored, 3 unresolved"


def test_a_folder_reads_plain_and_packed_tables(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1, 2]}).write_csv(tmp_path / "t.csv")
    folder = Folder(tmp_path)
    assert folder.table("t.csv.gz")["a"].to_list() == ["1", "2"]
    with pytest.raises(NotDerivableError, match=r"there is no u\.csv"):
        folder.table("u.csv")
