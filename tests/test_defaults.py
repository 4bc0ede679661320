"""The rule that picks an interval, or refuses one."""

from __future__ import annotations

from typing import Any

import pytest

from triagestats.defaults import choose_interval


def choose(requested: Any = "auto", **changes: Any) -> Any:
    ordinary = {
        "is_rate": False,
        "smooth": True,
        "estimable": True,
        "varies": True,
        "at_boundary": False,
        "n_clusters": 30,
        "n_axes": 1,
    }
    return choose_interval(requested, **(ordinary | changes))


@pytest.mark.parametrize(
    ("requested", "changes", "method", "status"),
    [
        ("auto", {}, "jackknife-t", "ok"),
        ("percentile", {}, "percentile", "ok"),
        ("bca", {}, "bca", "ok"),
        ("auto", {"is_rate": True}, "kg2", "ok"),
        ("auto", {"is_rate": True, "at_boundary": True, "varies": False}, "kg2", "ok"),
        ("jackknife-t", {"is_rate": True}, "jackknife-t", "ok"),
        ("auto", {"n_clusters": 12}, "jackknife-t", "ok"),
        ("auto", {"n_clusters": 11}, "jackknife-t", "warning"),
        ("auto", {"n_clusters": 5}, "jackknife-t", "warning"),
        ("auto", {"n_clusters": 4}, "none", "few_clusters"),
        ("auto", {"n_clusters": 4, "is_rate": True}, "none", "few_clusters"),
        ("jackknife-t", {"n_clusters": 4}, "jackknife-t", "warning"),
        ("percentile", {"n_clusters": 3, "is_rate": True}, "percentile", "warning"),
        ("jackknife-t", {"n_clusters": 2}, "none", "few_clusters"),
        ("auto", {"varies": False}, "none", "degenerate"),
        ("percentile", {"varies": False}, "none", "degenerate"),
        ("auto", {"estimable": False}, "none", "undefined"),
        ("percentile", {"estimable": False}, "none", "undefined"),
        ("auto", {"estimable": False, "is_rate": True}, "none", "undefined"),
        ("auto", {"smooth": False}, "percentile", "warning"),
        ("bca", {"smooth": False}, "percentile", "warning"),
        ("auto", {"n_axes": 2}, "jackknife-t", "ok"),
        ("percentile", {"n_axes": 2}, "percentile", "ok"),
        ("bca", {"n_axes": 2}, "jackknife-t", "warning"),
        ("bootstrap-t", {"n_axes": 2}, "jackknife-t", "warning"),
        ("percentile", {"n_axes": 2, "smooth": False}, "percentile", "warning"),
        ("basic", {"smooth": False}, "basic", "warning"),
        ("normal", {"smooth": False}, "percentile", "warning"),
        ("normal", {}, "normal", "ok"),
        ("max-t", {}, "max-t", "ok"),
        ("auto", {"n_axes": 2, "smooth": False}, "none", "undefined"),
        ("auto", {"n_axes": 2, "is_rate": True}, "kg2", "ok"),
    ],
)
def test_choices(requested: str, changes: dict[str, Any], method: str, status: str) -> None:
    choice = choose(requested, **changes)
    assert (choice.method, choice.status) == (method, status)
    assert (choice.reason is None) == (status == "ok")


@pytest.mark.parametrize(
    "requested", ["jackknife-t", "percentile", "basic", "normal", "bca", "bootstrap-t", "max-t"]
)
def test_a_rate_never_has_an_interval_without_width(requested: str) -> None:
    for changes in ({"at_boundary": True, "varies": False}, {"varies": False}):
        choice = choose(requested, is_rate=True, **changes)
        assert choice.method == "kg2"
        assert choice.status == "warning"
        assert requested in choice.reason


def test_doubts_add_up() -> None:
    choice = choose("bca", smooth=False, n_clusters=8)
    assert "8 clusters" in choice.reason
    assert "not smooth" in choice.reason
    assert "bca does not hold" in choice.reason
