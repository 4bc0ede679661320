"""The workloads W1 to W6: data, calls of triagestats with a check, peers and goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ends = tuple[NDArray[np.float64], NDArray[np.float64]]

ERRORS = 5.0
"""Standard errors that two estimates of a quantile may lie apart: one in 1.7 million by chance."""
DENSITY = 0.05844507
"""Of the standard normal at its quantile of 0.975."""


@dataclass(frozen=True)
class Call:
    """A public call of triagestats, quantiles included.

    Attributes
    ----------
    run
        From data, replicates and threads to the result.
    check
        From the result of `run` on one thread to what is wrong with it; empty where it agrees.
    """

    name: str
    run: Callable[[NDArray[Any], int, int], Any]
    check: Callable[[Any], str]


@dataclass(frozen=True)
class Workload:
    """One workload: its data, our calls, and the peers with their goals.

    Attributes
    ----------
    calls
        The first one is what peers are compared with.
    peers
        Name, function from (replicates, seed), most replicates it runs, and whether it always runs all.
    goals
        How many times faster than a peer to be.
    """

    what: str
    n_resamples: int
    data: NDArray[Any]
    calls: tuple[Call, ...]
    peers: tuple[tuple[str, Callable[[int, int], Any], int, bool], ...]
    goals: Mapping[str, float]


def percentile_check(
    expected: Callable[[], Ends], step: float, n_resamples: int, point: Callable[[], Any] | None = None
) -> Callable[[Any], str]:
    """A check of estimates and percentile ends against a peer's, within Monte Carlo error.

    `step` is the distance of neighbouring values of a replicate, `n_resamples` that of the peer.
    """
    import numpy as np

    def check(fit: Any) -> str:
        if point is not None and not np.allclose(fit.estimate, point(), rtol=0, atol=1e-12):
            return f"estimates {fit.estimate} are not {point()}"
        spread = fit.replicates.std(axis=0) * np.sqrt(0.025 * 0.975) / DENSITY
        error = spread * np.sqrt(1 / n_resamples + 1 / len(fit.replicates))
        for ours, theirs in zip((fit.conf_low, fit.conf_high), expected(), strict=True):
            apart = np.abs(ours - theirs) / (ERRORS * error + step)
            if not (apart <= 1).all():
                place = int(np.argmax(apart))
                return f"an end of estimate {place} is {ours[place]:.6g}, the peer's {theirs[place]:.6g}"
        return ""

    return check


def peers_of(
    shared: ModuleType, name: str, only: tuple[str, ...] = ()
) -> tuple[tuple[str, Callable[[int, int], Any], int, bool], ...]:
    """The peers of a workload, all or those named, as functions of replicates and seed."""
    found = []
    for peer, (run, most, _, full) in shared.PEERS[name].items():
        if not only or peer in only:
            limit = most or shared.B_FULL[name]
            found.append((peer, lambda number, seed, run=run: run(name, number, seed), limit, full))
    return tuple(found)


def reader(statistic: Callable[[Any], Any] | None, **options: Any) -> Callable[[NDArray[Any], int, int], Any]:
    """`ts.bootstrap` of an array, with its percentile ends."""
    import triagestats as ts

    def run(data: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        return read(
            ts.bootstrap(
                data,
                statistic,
                interval="percentile",
                n_resamples=n_resamples,
                n_threads=n_threads,
                **options,
            )
        )

    return run


def read(fit: Any) -> Any:
    """Read the ends of a fit."""
    _ = fit.conf_low, fit.conf_high
    return fit


def build_w1(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """12 gaps and 12 gaps to the worse voice of 12 models and 3 voices."""
    number = shared.B_FULL[name]
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_counts_gemm"][0](name, number, 1),
        1 / 2000,
        number,
        lambda: shared.w1_stats(shared.cells(name)[0].mean(axis=0)),
    )
    return Workload(
        what="1,000 scenarios x 12 models x 3 voices, binary, 24 statistics",
        n_resamples=number,
        data=shared.data(name).reshape(1000, 36) if data is None else data,
        calls=(Call("ts.bootstrap(int8, f)", reader(shared.w1_stats, smooth=False), check),),
        peers=peers_of(shared, name),
        goals={
            "numpy_counts_gemm": 3.5,
            "numpy_multinomial_gemm": 3.5,
            "scipy_bootstrap_percentile": 25,
        },
    )


def build_w2(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """24 cell means of scenarios and repetitions."""
    number = shared.B_FULL[name]
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_collapsed"][0](name, number, 1),
        1 / 120,
        number,
        lambda: shared.data(name).reshape(60, 24, 2).mean(axis=(0, 2)),
    )
    return Workload(
        what="60 scenarios x 6 models x 4 formats x 2 repetitions, binary, two-level, 24 cell means",
        n_resamples=number,
        data=shared.data(name).reshape(60, 24, 2) if data is None else data,
        calls=(Call("ts.bootstrap(scheme='nested')", reader(None, scheme="nested"), check),),
        peers=peers_of(shared, name),
        goals={"numpy_collapsed": 8, "evalstats_nested": 100},
    )


def fast_w3(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Under, over, score and rank as `w3_stats` gives them, the ranks by whole columns of small integers."""
    import numpy as np

    under, over, squares = means[..., :20], means[..., 20:40], means[..., 40:]
    keys = np.ascontiguousarray(np.moveaxis(np.rint(squares * 250), -1, 0), dtype=np.int16)
    result = np.empty((*means.shape[:-1], 80))
    result[..., :20], result[..., 20:40], result[..., 40:60] = under, over, 100 / (1 + squares / 2)
    for place, key in enumerate(keys):
        twice = (keys < key).view(np.uint8) + (keys <= key)
        result[..., 60 + place] = twice.sum(axis=0, dtype=np.uint8)
    result[..., 60:] = (result[..., 60:] + 1) / 2
    return result


def build_w3(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Two rates, score and rank of 20 models."""
    import numpy as np

    number, plain = shared.B_FULL[name], shared.w3_stats
    if data is None:
        graded = shared.data(name)
        data = np.concatenate([graded < 0, graded > 0, graded**2], axis=1, dtype=np.int8)
        means = data[np.random.default_rng(1).integers(0, 250, (50, 250))].mean(axis=1)
        if not np.array_equal(fast_w3(means), plain(means)):
            raise SystemExit("the fast ranks of W3 are not those of w3_stats")
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_counts_gemm"][0](name, number, 1),
        1.0,
        number,
        lambda: plain(shared.cells(name)[0].mean(axis=0)),
    )

    def expert(n_resamples: int, seed: int) -> Any:
        shared.w3_stats = fast_w3
        try:
            return shared.PEERS[name]["numpy_counts_gemm"][0](name, n_resamples, seed)
        finally:
            shared.w3_stats = plain

    return Workload(
        what="250 cases x 20 models, ordinal: two rates, score, rank",
        n_resamples=number,
        data=data,
        calls=(
            Call("ts.bootstrap(int8, f), fast ranks", reader(fast_w3, smooth=False), check),
            Call("ts.bootstrap(int8, f), ranks of w3_stats", reader(plain, smooth=False), check),
        ),
        peers=(*peers_of(shared, name), ("numpy_counts_gemm, fast ranks", expert, number, True)),
        goals={"numpy_counts_gemm": 3, "numpy_multinomial_gemm": 3, "scipy_bootstrap_percentile": 12},
    )


def build_w4(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Difference of two arms, from rows to the interval, where cluster sums repeat."""
    import numpy as np

    import triagestats as ts

    number = shared.B_FULL[name]
    rows = shared.data(name) if data is None else data
    expected = percentile_check(
        lambda: tuple(np.atleast_1d(shared.PEERS[name]["numpy_collapsed"][0](name, number, 1))),
        1 / rows[:, 0].size,
        number,
        lambda: shared.w4_d(name).mean() / 5,
    )
    n_rows = rows.shape[2]
    of_differences = reader(lambda mean: mean / n_rows)
    of_sums = reader(lambda mean: (mean[..., 0] - mean[..., 1]) / n_rows)

    def subtracted(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        sums = rows.sum(axis=2)
        return of_differences(sums[:, 0] - sums[:, 1], n_resamples, n_threads)

    def summed(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        return of_sums(rows.sum(axis=2), n_resamples, n_threads)

    def both(*arms: NDArray[Any], **asked: Any) -> Any:
        return read(ts.paired_bootstrap(*arms, interval="percentile", **asked))

    def paired(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        sums = rows.sum(axis=2)
        return both(sums[:, 0], sums[:, 1], n_resamples=n_resamples, n_threads=n_threads)

    def clustered(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        arms = (np.ascontiguousarray(rows[:, arm]).reshape(-1) for arm in (0, 1))
        return both(*arms, clusters=labels, n_resamples=n_resamples, n_threads=n_threads)

    def last(scale: float) -> Callable[[Any], str]:
        names = ("estimate", "conf_low", "conf_high")
        return lambda fit: expected(
            SimpleNamespace(
                replicates=fit.replicates[:, 2:] / scale,
                **{name: getattr(fit, name)[2:] / scale for name in names},
            )
        )

    labels = np.repeat(np.arange(len(rows)), n_rows)
    calls = [Call("rows summed, ts.bootstrap(differences, f)", subtracted, expected)]
    if name == "W4":
        calls += [
            Call("rows summed, ts.bootstrap(sums, f)", summed, expected),
            Call("rows summed, ts.paired_bootstrap(sums)", paired, last(n_rows)),
            Call("ts.paired_bootstrap(rows, clusters)", clustered, last(1)),
        ]
    return Workload(
        what=f"{len(rows):,} clusters x 2 arms x {n_rows} rows, binary; the pass over rows included",
        n_resamples=number,
        data=rows,
        calls=tuple(calls),
        peers=peers_of(shared, name, ("numpy_collapsed", "numpy_rows_loop", "polars_join")),
        goals={"numpy_collapsed": 1} if name == "W4" else {},
    )


def build_w4c(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """The same difference from cluster sums with a continuous noise, so that nothing repeats."""
    import numpy as np

    whole = name.removesuffix("c")
    number = shared.B_FULL[whole]
    if data is None:
        sums = shared.w4_sums(whole)
        data = (sums / 5 + np.random.default_rng(1).normal(0, 1e-3, len(sums)))[:, None]

    def expected() -> Ends:
        half = 1.959964 * data.std() / np.sqrt(len(data))
        return data.mean(axis=0) - half, data.mean(axis=0) + half

    loops = ("numpy_sums_loop", "numpy_poisson", "scipy_bootstrap_percentile_sums", "arch_iid_sums")
    return Workload(
        what=f"{len(data):,} cluster sums, continuous; pass over rows left out on both sides",
        n_resamples=number,
        data=data,
        calls=(Call("ts.bootstrap(sums)", reader(None), percentile_check(expected, 0.0, number)),),
        peers=peers_of(shared, whole, (*loops, "evalstats_means_1d")),
        goals={"numpy_sums_loop": 6} if whole == "W4" else {},
    )


def build_w6(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Sign-flip tests of 12 models."""
    import numpy as np
    import polars as pl

    import triagestats as ts
    from triagestats import _native

    voice_names = pl.col("voice").replace_strict({0: "A", 1: "B"}, return_dtype=pl.String)

    number = shared.B_FULL[name]

    def agrees(expected: Callable[[], NDArray[np.float64]]) -> Callable[[NDArray[np.float64]], str]:
        def check(p: NDArray[np.float64]) -> str:
            theirs = expected()
            error = np.sqrt(2 * theirs * (1 - theirs) / number)
            wrong = (np.abs(p - theirs) > ERRORS * error + 2 / number).any()
            return f"p {p}, the peer's {theirs}" if wrong else ""

        return check

    def flipped() -> NDArray[np.float64]:
        away = noisy[:, :, 0] - noisy[:, :, 1]
        signs = np.random.default_rng(2).integers(0, 2, (number, len(away)), dtype=np.int8) * 2 - 1
        return (np.abs(signs @ away) >= np.abs(away.sum(axis=0))).mean(axis=0)

    def kernel(cube: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        away = (cube[:, :, 0] - cube[:, :, 1]).astype(np.float64)
        null = _native.sign_flip_totals(away, n_resamples, 1, n_threads=n_threads)
        extreme = np.abs(null) >= np.abs(away.sum(axis=0)) - 1e-9
        return (extreme.sum(axis=0) + 1) / (n_resamples + 1)

    def tests(cube: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        asked = {"n_resamples": n_resamples, "n_threads": n_threads}
        models = range(cube.shape[1])
        return np.array([ts.permutation_test(cube[:, m, 0], cube[:, m, 1], **asked).p_value for m in models])

    def family(_: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        found = ts.permutation_tests(table, n_resamples=n_resamples, n_threads=n_threads).tidy()
        return found.filter(found["model"].is_not_null()).sort("model")["p_value"].to_numpy()

    cube = shared.data(name) if data is None else data
    noisy = cube + np.random.default_rng(1).normal(0, 0.1, cube.shape)
    scenario, model, voice = (place.reshape(-1) for place in np.indices((len(cube), cube.shape[1], 2)))
    columns = {"scenario": scenario, "model": model, "voice": voice, "score": cube[:, :, :2].reshape(-1)}
    text = {"model": pl.format("m{}", pl.col("model").cast(pl.String).str.zfill(2)), "voice": voice_names}
    table = ts.ResponseTable(pl.DataFrame(columns).with_columns(**text), condition="voice")
    expert = agrees(lambda: shared.PEERS[name]["numpy_signs_gemm"][0](name, number, 1))
    return Workload(
        what="sign-flip null, 12 models, 1,000 scenarios",
        n_resamples=number,
        data=cube,
        calls=(
            Call("12 x ts.permutation_test(a, b): exact, by convolution", tests, expert),
            Call(
                "12 x ts.permutation_test(a, b), continuous values: drawn",
                lambda _, *asked: tests(noisy, *asked),
                agrees(flipped),
            ),
            Call("ts.permutation_tests(table): exact, and max-T of a joint draw", family, expert),
            Call("kernel sign_flip_totals alone, joint, and p by numpy", kernel, expert),
        ),
        peers=peers_of(shared, name),
        goals={"numpy_signs_gemm": 10, "scipy_permutation_test": 1000},
    )


BUILDERS: dict[str, Callable[..., Workload]] = {
    "W1a": build_w1,
    "W1b": build_w1,
    "W2": build_w2,
    "W3": build_w3,
    "W4": build_w4,
    "W4c": build_w4c,
    "W5": build_w4,
    "W5c": build_w4c,
    "W6": build_w6,
}
