"""Asking all of it: bounded concurrency a model, each answer stored before it is used, a clean stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from triagestats.collect.asking import NotAsked, outcome_of
from triagestats.collect.calls import Call
from triagestats.collect.client import Endpoint, Refused
from triagestats.collect.contract import Answer, CallFailed
from triagestats.collect.meter import Meter
from triagestats.collect.plan import Unit, n_units, units_of
from triagestats.collect.store import Store
from triagestats.collect.study import Study
from triagestats.collect.study_models import Limits

__all__ = ["run_study"]

_AHEAD: Final = 4
"""Answers begun for each call that may be under way, so that slow judges leave no model idle."""
_PATIENCE: Final = 20
"""Failed calls in a row after which a model is taken to be out of reach; twice its concurrency, if more."""


async def run_study(
    study: Study, store: Store, endpoints: Mapping[str, Endpoint], *, shown: bool
) -> tuple[str, ...]:
    """Ask whatever the store has no answer to.

    Returns
    -------
    tuple of str
        Why models stopped, or everything did; nothing where all was asked.
    """
    with Meter(n_units(study), shown=shown) as meter:
        asking = _Live(
            study.limits, store, {name: _lane(study, name, endpoints) for name in endpoints}, meter
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(meter.lines())
                tasks = [
                    group.create_task(_work(units, study, asking, meter))
                    for name, model in study.models.items()
                    for units in [units_of(study, name)]
                    for _ in range(_AHEAD * model.concurrency)
                ]
                await asyncio.gather(*tasks)
                meter.end()
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from None
        finally:
            for endpoint in endpoints.values():
                await endpoint.close()
    return tuple(asking.reasons)


async def _work(units: Iterator[Unit], study: Study, asking: _Live, meter: Meter) -> None:
    """Take one unit after the other from those of a model, until none is left or nothing may be asked.

    A model that has stopped is asked no more, and what it had answered before may still be judged.
    """
    for unit in units:
        if asking.limited:
            return
        failures = (await outcome_of(unit, study, asking)).failures
        if not any(isinstance(failure, NotAsked) for failure in failures):
            meter.advance(failed=bool(failures))


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass(slots=True)
class _Lane:
    """A model that is asked: its endpoint, how many calls it takes at once, and whether it has stopped."""

    name: str
    endpoint: Endpoint
    free: asyncio.Semaphore
    patience: int
    stopped: str | None = None
    failed_in_a_row: int = 0


def _lane(study: Study, name: str, endpoints: Mapping[str, Endpoint]) -> _Lane:
    concurrency = study.models[name].concurrency
    return _Lane(name, endpoints[name], asyncio.Semaphore(concurrency), max(_PATIENCE, 2 * concurrency))


class _Live:
    """Answers of the store where it has them, else of the models."""

    def __init__(self, limits: Limits, store: Store, lanes: Mapping[str, _Lane], meter: Meter) -> None:
        self._limits = limits
        self._store = store
        self._lanes = lanes
        self._meter = meter
        totals = store.totals()
        self._calls = totals.calls  # with those under way
        self._tokens = totals.tokens
        self._limit: str | None = None
        self._pending: dict[str, asyncio.Future[Answer | CallFailed]] = {}
        self.reasons: list[str] = []

    @property
    def limited(self) -> bool:
        """Whether nothing more may be asked of any model."""
        return self._limit is not None

    async def answer(self, call: Call) -> Answer:
        found = self._store.answer(call.key)
        if found is not None:
            return found
        pending = self._pending.get(call.key)
        if pending is None:
            pending = asyncio.get_running_loop().create_future()
            self._pending[call.key] = pending
            try:
                pending.set_result(await self._asked(call))
            except CallFailed as failure:
                pending.set_result(failure)
            except BaseException:
                pending.cancel()
                raise
            finally:
                del self._pending[call.key]
        came = await pending
        if isinstance(came, CallFailed):
            raise came
        return came

    async def _asked(self, call: Call) -> Answer:
        lane = self._lanes[call.asked]
        async with lane.free:
            self._refuse_stopped(lane)
            self._calls += 1
            try:
                answer, response = await lane.endpoint.send(call)
            except Refused as refused:
                self._calls -= 1
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                self._store.keep_failure(call, refused.failure, now)
                self._note(lane, refused)
                raise CallFailed(refused.failure.reason) from None
            except BaseException:
                self._calls -= 1
                raise
            self._store.keep(call, answer, response)
        lane.failed_in_a_row = 0
        self._tokens += (answer.prompt_tokens or 0) + (answer.completion_tokens or 0)
        return answer

    def _refuse_stopped(self, lane: _Lane) -> None:
        if lane.stopped is not None:
            raise NotAsked(lane.stopped)
        if self._limit is None:
            calls, tokens = self._limits.calls, self._limits.tokens
            if calls is not None and self._calls >= calls:
                self._limit = f"The limit of {calls:,} calls is reached"
            elif tokens is not None and self._tokens >= tokens:
                self._limit = f"The limit of {tokens:,} tokens is reached, with {self._tokens:,}"
            if self._limit is not None:
                self._say(f"{self._limit}: nothing more is asked.")
        if self._limit is not None:
            raise NotAsked(self._limit)

    def _note(self, lane: _Lane, refused: Refused) -> None:
        """Stop a model that refuses for good, or that has not answered for long; say so once."""
        lane.failed_in_a_row += 1
        if lane.stopped is not None:
            return
        if refused.permanent:
            lane.stopped = f"Model {lane.name!r} has stopped: {refused.failure.reason}"
        elif lane.failed_in_a_row >= lane.patience:
            lane.stopped = (
                f"Model {lane.name!r} has stopped after {lane.patience} failed calls in a row: "
                f"{refused.failure.reason}"
            )
        if lane.stopped is not None:
            self._say(lane.stopped)

    def _say(self, message: str) -> None:
        self.reasons.append(message)
        self._meter.say(message)
