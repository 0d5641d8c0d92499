"""Submits of one process that wait go together, and none has to do with another."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from tasklib.core.errors import StoreError, StoreUnavailable
from tasklib.core.task import NewTask
from tasklib.engine import group_insert as module
from tasklib.engine.group_insert import AT_ONCE, GroupInsert, _ThreadAnswer
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Filter, Inserted
from tests.conformance.builders import new_task
from tests.waiting import eventually_async


class Gated:
    """A store whose inserts wait until they are let go."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.inserts: list[Sequence[NewTask]] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def insert(self, tasks: Sequence[NewTask], *, dated: bool = False, **_: Any) -> Sequence[Inserted]:
        self.inserts.append(tasks)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return await self._store.insert(tasks, dated=dated)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(f"sqlite:///{tmp_path}/queue.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def gated(store: SqliteStore) -> Gated:
    return Gated(store)


@pytest.fixture
def group_insert(gated: Gated) -> GroupInsert:
    return GroupInsert(gated)  # type: ignore[arg-type]


@pytest.fixture
def threads(group_insert: GroupInsert) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as threads:
        yield threads
        for left in (*group_insert._from_threads, *group_insert._waiting):  # after a failure
            if isinstance(left.answer, _ThreadAnswer):
                left.answer.set_exception(StoreUnavailable("the test is over"))


async def crowd(gated: Gated, group_insert: GroupInsert, tasks: Sequence[NewTask]) -> list[asyncio.Task[Inserted]]:
    """The first of them are on their way, the rest waits behind them."""
    callers = [asyncio.create_task(group_insert.insert(task, dated=True)) for task in tasks]
    await eventually_async(lambda: len(gated.inserts) == AT_ONCE)
    return callers


async def test_what_waits_is_one_statement(store: SqliteStore, gated: Gated, group_insert: GroupInsert) -> None:
    tasks = [new_task(payload=number) for number in range(100)]
    callers = await crowd(gated, group_insert, tasks)
    gated.gate.set()
    inserted = await asyncio.gather(*callers)
    assert [len(each) for each in gated.inserts] == [1] * AT_ONCE + [100 - AT_ONCE]
    assert [each.id for each in inserted] == [task.id for task in tasks]
    assert all(each.created and each.created_at is not None for each in inserted)
    found = await store.get([task.id for task in tasks])
    assert [task and task.kwargs for task in found] == list(range(100))


async def test_what_waits_and_differs_in_its_options_keeps_them(
    store: SqliteStore, gated: Gated, group_insert: GroupInsert
) -> None:
    first = await crowd(gated, group_insert, [new_task() for _ in range(AT_ONCE)])
    tasks = [new_task(name=f"type_{number % 2}", payload=number)._replace(priority=number) for number in range(4)]
    tasks.append(tasks[-1]._replace(id=new_task().id, max_retries=7))
    callers = [asyncio.create_task(group_insert.insert(task, dated=False)) for task in tasks]
    await eventually_async(lambda: len(group_insert._waiting) == len(tasks))
    gated.gate.set()
    await asyncio.gather(*first, *callers)
    found = [task for task in await store.get([task.id for task in tasks]) if task is not None]
    kept = [(task.name, task.kwargs, task.priority, task.max_retries) for task in found]
    assert kept == [(task.name, json.loads(task.kwargs), task.priority, task.max_retries) for task in tasks]


async def test_callers_who_come_again_go_together_again(gated: Gated, group_insert: GroupInsert) -> None:
    gated.gate.set()

    async def caller() -> None:
        for _ in range(10):
            await group_insert.insert(new_task(), dated=False)

    await asyncio.gather(*(caller() for _ in range(50)))
    assert sum(map(len, gated.inserts)) == 500
    assert len(gated.inserts) < 150


async def test_one_that_is_refused_harms_no_other(
    store: SqliteStore, gated: Gated, group_insert: GroupInsert, tmp_path: Path
) -> None:
    with apsw.Connection(f"{tmp_path}/queue.db") as connection:
        connection.execute(
            "CREATE TRIGGER no_seven BEFORE INSERT ON tasks WHEN NEW.kwargs = '7' "
            "BEGIN SELECT RAISE(ABORT, 'seven is not allowed'); END"
        )
    tasks = [new_task(payload=number) for number in range(12)]
    callers = await crowd(gated, group_insert, tasks)
    gated.gate.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert [number for number, answer in enumerate(answers) if isinstance(answer, StoreError)] == [7]
    assert (await store.count(Filter(), 100)).value == 11


async def test_an_outage_is_told_to_all_at_once(gated: Gated, group_insert: GroupInsert) -> None:
    callers = await crowd(gated, group_insert, [new_task() for _ in range(50)])
    gated.error = StoreUnavailable("nobody answers")
    gated.gate.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert len(gated.inserts) == AT_ONCE + 1


async def test_who_gives_up_before_it_was_sent_submits_nothing(
    store: SqliteStore, gated: Gated, group_insert: GroupInsert
) -> None:
    callers = await crowd(gated, group_insert, [new_task() for _ in range(10)])
    callers[-1].cancel()
    await asyncio.wait([callers[-1]])
    gated.gate.set()
    await asyncio.gather(*callers[:-1])
    assert (await store.count(Filter(), 100)).value == 9


async def test_nobody_queues_behind_statements_that_are_stuck(
    gated: Gated, group_insert: GroupInsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crowd(gated, group_insert, [new_task() for _ in range(AT_ONCE)])
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    last = asyncio.create_task(group_insert.insert(new_task(), dated=False))
    await eventually_async(lambda: len(gated.inserts) == AT_ONCE + 1)
    gated.gate.set()
    assert (await last).created


def from_threads(
    threads: ThreadPoolExecutor, group_insert: GroupInsert, tasks: Sequence[NewTask]
) -> list[asyncio.Future[Inserted]]:
    loop = asyncio.get_running_loop()
    return [loop.run_in_executor(threads, partial(group_insert.insert_from_thread, task, loop)) for task in tasks]


async def test_what_comes_from_threads_is_one_statement(
    store: SqliteStore, gated: Gated, group_insert: GroupInsert, threads: ThreadPoolExecutor
) -> None:
    first = await crowd(gated, group_insert, [new_task() for _ in range(AT_ONCE)])
    tasks = [new_task(payload=number) for number in range(20)]
    callers = from_threads(threads, group_insert, tasks)
    await eventually_async(lambda: len(group_insert._waiting) == len(tasks))
    gated.gate.set()
    inserted = await asyncio.gather(*callers)
    assert [len(each) for each in gated.inserts] == [1] * AT_ONCE + [len(tasks)]
    assert [each.id for each in inserted] == [task.id for task in tasks]
    found = await store.get([task.id for task in tasks])
    assert [task and task.kwargs for task in found] == list(range(20))
    await asyncio.gather(*first)


async def test_the_loop_is_called_once_for_all_threads(
    gated: Gated, group_insert: GroupInsert, threads: ThreadPoolExecutor
) -> None:
    gated.gate.set()
    loop = asyncio.get_running_loop()
    calls = []

    class Busy:
        """A loop that does not get there before all have come."""

        def call_soon_threadsafe(self, callback: object) -> None:
            calls.append(callback)

    tasks = [new_task() for _ in range(20)]
    answers = [threads.submit(group_insert.insert_from_thread, task, Busy()) for task in tasks]  # type: ignore[arg-type]
    await eventually_async(lambda: calls and len(group_insert._from_threads) == len(tasks))
    [take_over] = calls
    take_over()  # type: ignore[operator]
    await asyncio.gather(*(asyncio.wrap_future(answer, loop=loop) for answer in answers))
    assert [len(each) for each in gated.inserts] == [20]


async def test_threads_that_come_again_are_heard_again(
    gated: Gated, group_insert: GroupInsert, threads: ThreadPoolExecutor
) -> None:
    gated.gate.set()
    for _ in range(10):
        await asyncio.gather(*from_threads(threads, group_insert, [new_task() for _ in range(20)]))
    assert sum(map(len, gated.inserts)) == 200


async def test_a_thread_hears_why_its_task_was_refused(
    gated: Gated, group_insert: GroupInsert, threads: ThreadPoolExecutor
) -> None:
    gated.error = StoreError("no")
    gated.gate.set()
    [caller] = from_threads(threads, group_insert, [new_task()])
    with pytest.raises(StoreError, match="no"):
        await caller


async def test_a_thread_that_gives_up_before_it_was_sent_submits_nothing(
    gated: Gated, group_insert: GroupInsert, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await crowd(gated, group_insert, [new_task() for _ in range(AT_ONCE)])

    class Interrupted(module._ThreadAnswer):
        def __init__(self) -> None:
            super().__init__()
            self._set = Impatient()  # type: ignore[assignment]

    class Impatient:
        def acquire(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_ThreadAnswer", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        group_insert.insert_from_thread(new_task(), asyncio.get_running_loop())
    gated.gate.set()
    await asyncio.gather(*first)
    await eventually_async(lambda: not group_insert._waiting)
    assert len(gated.inserts) == AT_ONCE
