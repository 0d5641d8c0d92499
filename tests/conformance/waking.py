"""Wake-ups: whoever listens hears of work and of controls, whoever waits hears of the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.lifecycle import TERMINAL, Phase
from tasklib.core.outcome import Failed, Outcome, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Task, TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import CancelRequested, ControlChange, DrainRequested, Hint
from tests.conformance.builders import (
    DEADLINE,
    WORKER_A,
    OpenStore,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    heartbeat_of,
    in_phase,
    next_id,
    submit,
    submit_several,
    within_deadline,
)
from tests.waiting import eventually_async


class _Ear:
    """Remembers what it heard."""

    def __init__(self, *wanted: str | None) -> None:
        self.wanted = wanted
        self.heard: list[Hint] = []
        self.event = asyncio.Event()

    def __call__(self, hint: Hint) -> None:
        self.heard.append(hint)
        if not self.wanted or hint in self.wanted:
            self.event.set()


class _Asked:
    """Waits for word that these tasks were asked to stop: each by its name, or all together."""

    def __init__(self, ids: Sequence[UUID]) -> None:
        self.left = set(ids)
        self.heard: list[CancelRequested] = []
        self.event = asyncio.Event()

    def __call__(self, hint: Hint) -> None:
        if isinstance(hint, CancelRequested):
            self.heard.append(hint)
            self.left = self.left - set(hint.ids) if hint.ids else set()
            if not self.left:
                self.event.set()


class Waking:
    async def test_a_listener_hears_which_worker_was_asked_to_drain(self, store: Store, open_store: OpenStore) -> None:
        name = "naïve ✓ web-1/4711"
        await store.heartbeat(heartbeat_of(name))
        heard: list[Hint] = []
        told = asyncio.Event()

        def hear(hint: Hint) -> None:
            heard.append(hint)
            if hint == DrainRequested(name):
                told.set()

        stop = store.listen(hear)
        await submit(await open_store())  # until something is heard, nobody listens yet
        await eventually_async(lambda: heard)
        assert await (await open_store()).request_drain(name, "ada")
        await within_deadline(told, "a word to the worker")
        stop()

    async def test_a_listener_hears_of_work_that_another_store_submits(
        self, store: Store, open_store: OpenStore
    ) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        ear = _Ear("work", None)
        stop = store.listen(ear)
        other = await open_store()
        await submit(other)
        await within_deadline(ear.event, "a wake-up for new work")
        stop()

    async def test_a_listener_hears_of_work_that_its_own_store_submits(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        ear = _Ear("work", None)
        stop = store.listen(ear)
        await submit(store)
        await within_deadline(ear.event, "a wake-up for new work of its own")
        stop()

    async def test_it_hears_again_and_again(self, store: Store, open_store: OpenStore) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        other = await open_store()
        ear = _Ear()
        stop = store.listen(ear)
        for _ in range(3):
            ear.event.clear()
            await submit(other)
            await within_deadline(ear.event, "a further wake-up")
        stop()

    async def test_a_listener_hears_of_every_control(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        for change in (ControlChange(paused=False), ControlChange(name="work", operator_rate=None, concurrency=3)):
            ear = _Ear("work", None)
            stop = store.listen(ear)
            await other.control(change)
            await within_deadline(ear.event, f"a wake-up for {change}")
            stop()

    async def test_several_may_listen_and_each_stops_for_itself(self, store: Store, open_store: OpenStore) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        other = await open_store()
        first, second = _Ear(), _Ear()
        stop_first, stop_second = store.listen(first), store.listen(second)
        await submit(other)
        await within_deadline(first.event, "a wake-up for the first")
        await within_deadline(second.event, "a wake-up for the second")
        stop_first()
        stop_first()
        first.heard.clear()
        second.event.clear()
        await other.control(ControlChange(name="elsewhere", paused=True))
        await within_deadline(second.event, "a wake-up for the one that stayed")
        assert first.heard == []
        stop_second()

    async def test_a_listener_that_raises_does_not_silence_the_others(
        self, store: Store, open_store: OpenStore
    ) -> None:
        def broken(hint: Hint) -> None:
            raise RuntimeError("a listener's own fault")

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)
        other = await open_store()
        ear = _Ear()
        stops = [store.listen(broken), store.listen(ear)]
        await other.control(ControlChange(paused=False))
        await within_deadline(ear.event, "a wake-up in spite of a broken listener")
        for stop in stops:
            stop()
        loop.set_exception_handler(None)

    @pytest.mark.parametrize("number", [1, 3, 30])
    async def test_a_listener_hears_which_running_tasks_were_asked_to_stop(
        self, store: Store, open_store: OpenStore, number: int
    ) -> None:
        other = await open_store()
        for asking in (store, other):
            await submit_several(store, number)
            ids = [each.id for each in await claim(store, number)]
            told = _Asked(ids)
            stop = store.listen(told)
            await _attentive(store, other)
            told.heard.clear()
            told.left = set(ids)
            told.event.clear()
            assert len(await asking.request_cancel(ids)) == number
            await within_deadline(told.event, "word of what was asked to stop")
            assert {each for hint in told.heard for each in hint.ids} <= set(ids)
            stop()

    async def test_nobody_hears_of_a_cancel_that_no_running_task_was_asked_for(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = await open_store()
        waiting, done = await submit(store, "waiting"), await in_phase(store, Phase.COMPLETED)
        told = _Asked([waiting])
        stop = store.listen(told)
        await _attentive(store, other)
        told.heard.clear()
        assert await other.request_cancel([waiting, done.id, next_id()]) == []
        await _attentive(store, other)
        assert told.heard == []
        stop()

    @pytest.mark.parametrize("phase", Phase)
    async def test_a_watch_begins_with_the_task_as_it_is(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase)
        async with _Watch(store, task.id) as watch:
            assert await watch.next() == task

    async def test_a_watch_of_nothing_says_so(self, store: Store) -> None:
        async with _Watch(store, next_id()) as watch:
            assert await watch.next() is None

    @pytest.mark.parametrize("phase", sorted(TERMINAL))
    async def test_a_watch_is_woken_when_another_store_ends_the_task(
        self, store: Store, open_store: OpenStore, phase: Phase
    ) -> None:
        other = await open_store()
        task_id = await submit(store)
        if phase is Phase.CANCELLED:
            change = cancelled(await fetch(store, task_id))
        else:
            running = await claim_one(store)
            change = completed(running, 42) if phase is Phase.COMPLETED else failed(running, final=True)
        async with _Watch(store, task_id) as watch:
            first = await watch.next()
            assert first is not None
            assert first.completed_at is None
            await apply(other, change)
            assert await watch.end() == await fetch(other, task_id)

    async def test_a_watch_is_woken_and_does_not_only_poll(self, store: Store, open_store: OpenStore) -> None:
        """One quick end of several shows it: polling, a second or more apart, would give none."""
        other = await open_store()
        loop = asyncio.get_running_loop()
        waited = []
        for _ in range(5):
            task_id = await submit(store)
            running = await claim_one(store)
            async with _Watch(store, task_id) as watch:
                await watch.next()
                began = loop.time()
                await apply(other, completed(running))
                await watch.end()
                waited.append(loop.time() - began)
            if waited[-1] < 0.5:
                return
        raise AssertionError(f"every wait took as long as a poll: {waited}")

    async def test_a_watch_goes_on_over_retries(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        task_id = await submit(store)
        async with _Watch(store, task_id) as watch:
            await watch.next()
            await apply(other, failed(await claim_one(other)))
            await apply(other, completed(await claim_one(other), "at last"))
            task = await watch.end()
            assert task is not None
            assert task.result == {"value": "at last"}

    async def test_many_may_watch_one_task(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        task_id = await submit(store)
        running = await claim_one(store)

        async def end(each: Store, ready: asyncio.Event) -> Task | None:
            async with _Watch(each, task_id) as watch:
                await watch.next()
                ready.set()
                return await watch.end()

        began = [asyncio.Event() for _ in range(6)]
        waits = [asyncio.create_task(end((store, other)[turn % 2], event)) for turn, event in enumerate(began)]
        for event in began:
            await within_deadline(event, "the first look of a watch")
        await apply(other, completed(running, 1))
        ends = await asyncio.gather(*waits)
        assert ends == [await fetch(store, task_id)] * 6

    @pytest.mark.parametrize("outcome", [Failed("boom"), Snoozed(60)], ids=["failed", "snoozed"])
    async def test_an_outcome_that_cancels_as_was_asked_ends_a_watch(self, store: Store, outcome: Outcome) -> None:
        """It would have put the task back."""
        await submit(store)
        running = await claim_one(store)
        async with _Watch(store, running.id) as watch:
            await watch.next()
            await store.request_cancel([running.id])
            await apply(store, decide.settle(running, outcome, RetryPolicy.AT_ONCE))
            end = await watch.end()
        assert end is not None
        assert end.state == TaskState.CANCELLED


async def _attentive(store: Store, other: Store) -> None:
    """Until `store` has heard what `other` does now, and so all that was said before."""
    ear = _Ear(None)
    stop = store.listen(ear)

    async def heard() -> bool:
        await other.control(ControlChange(paused=False))
        return ear.event.is_set()

    await eventually_async(heard, DEADLINE)
    stop()


class _Watch:
    """A watch whose every step has a deadline, and that is closed in the end."""

    def __init__(self, store: Store, task_id: UUID) -> None:
        self._seen: AsyncIterator[Task | None] = store.watch(task_id)

    async def next(self) -> Task | None:
        return await asyncio.wait_for(anext(self._seen), DEADLINE)

    async def end(self) -> Task | None:
        async with asyncio.timeout(DEADLINE):
            async for task in self._seen:
                if task is None or task.completed_at is not None:
                    return task
        raise AssertionError("the watch ended before the task")

    async def __aenter__(self) -> _Watch:
        return self

    async def __aexit__(self, *_: Any) -> None:
        close = getattr(self._seen, "aclose", None)
        if close is not None:
            await close()
