"""Submits that sync code makes in its own thread, on the writer's connection while that has nothing to do."""

import asyncio
import os
import threading
from functools import partial
from pathlib import Path
from uuid import UUID

import apsw
import pytest

from tasklib import Config
from tasklib.api import functions
from tasklib.api.decorator import call_of, submit_sync
from tasklib.api.sync import run_sync
from tasklib.core.errors import SchemaMismatch
from tasklib.core.registry import TaskOptions, define
from tasklib.engine.engine import Engine
from tasklib.stores.sql.sqlite import SqliteStore, forget_memory
from tasklib.stores.values import Filter, Inserted
from tests.conformance.builders import claim, fetch, new_task, within_deadline
from tests.stores.conftest import number_of
from tests.waiting import eventually_async


async def test_it_is_stored_and_told(store: SqliteStore, sqlite_url: str):
    other = SqliteStore(sqlite_url)
    await other.open()
    heard = asyncio.Event()
    stop = other.listen(lambda name: heard.set())
    new = new_task()
    assert await asyncio.to_thread(store.insert_sync, [new]) == [Inserted(new.id, True)]
    await within_deadline(heard, "the wake-up")
    assert [claimed.id for claimed in await claim(other)] == [new.id]
    stop()
    await other.close()


async def test_what_is_not_stored_leaves_no_trace(store: SqliteStore, sqlite_url: str):
    """None: it was not stored."""
    other = SqliteStore(sqlite_url)
    await other.open()
    plain, delayed, keyed = new_task(), new_task(delay_seconds=60), new_task(key="k")
    for tasks in ([plain], [delayed], [keyed], [new_task(), new_task()], []):
        inserted = await asyncio.to_thread(store.insert_sync, tasks)
        assert inserted in (None, [Inserted(task.id, True) for task in tasks])
        found = [task is not None for task in await other.get([task.id for task in tasks])]
        assert set(found) <= {inserted is not None}
    for task in (plain, delayed):
        [anew] = await store.insert([task])
        assert anew.id == task.id, "asked again, whoever stored it"
    assert (await fetch(other, delayed.id)).scheduled_at > await store.now()
    await store.close()
    assert await asyncio.to_thread(store.insert_sync, [new_task()]) is None
    await other.close()


async def test_what_is_under_way_in_the_writers_thread_is_not_waited_for(store: SqliteStore):
    begun, go_on = threading.Event(), threading.Event()

    def slowly(connection: apsw.Connection) -> None:
        begun.set()
        go_on.wait(30)

    at_work = asyncio.create_task(store._on_writer(slowly))
    await asyncio.to_thread(begun.wait, 30)
    assert store.insert_sync([new_task()]) is None
    go_on.set()
    await at_work
    assert store.insert_sync([new_task()]) is not None
    assert await number_of(store) == 1


async def test_the_lock_of_another_process_is_not_waited_for(store: SqliteStore, path: Path):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    assert store.insert_sync([new_task()]) is None
    other.execute("COMMIT")
    other.close()
    assert store.insert_sync([new_task()]) is not None
    assert await number_of(store) == 1


async def test_an_error_is_told_in_our_words(store: SqliteStore, path: Path):
    other = apsw.Connection(str(path))
    other.execute("ALTER TABLE tasks RENAME COLUMN trace TO traced")
    other.close()
    with pytest.raises(SchemaMismatch, match="trace"):
        store.insert_sync([new_task()])


async def test_a_queue_in_memory_lends_nothing():
    store = SqliteStore("memory://here")
    await store.open()
    assert store.insert_sync([new_task()]) is None
    await store.close()
    forget_memory("here")


async def test_many_threads_and_the_loop_store_everything_once(store: SqliteStore):
    at_once: list[Inserted] = []

    def submit_on() -> list[UUID]:
        ids = []
        for _ in range(100):
            new = new_task()
            ids.append(new.id)
            inserted = store.insert_sync([new])
            if inserted is None:
                asyncio.run_coroutine_threadsafe(store.insert([new]), loop).result(30)
            else:
                at_once.extend(inserted)
        return ids

    loop = asyncio.get_running_loop()
    found = await asyncio.gather(*[asyncio.to_thread(submit_on) for _ in range(6)])
    assert await number_of(store) == 600
    assert len({task_id for ids in found for task_id in ids}) == 600
    assert at_once


async def test_a_fork_finds_no_connection_open(store: SqliteStore):
    """SQLite's locks do not survive a fork: what a thread has borrowed is given back before it."""
    stopping = threading.Event()
    stored: list[Inserted] = []

    def grew_from(number: int) -> bool:
        return len(stored) > number

    def submit_on() -> None:
        while not stopping.is_set():
            stored.extend(store.insert_sync([new_task()]) or [])

    submitting = [threading.Thread(target=submit_on) for _ in range(2)]
    for thread in submitting:
        thread.start()
    try:
        for _ in range(6):
            child = os.fork()
            if not child:
                os._exit(store._writer is None or store._writer._borrowed is not None)
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert status == 0, "the child found a connection"
            await eventually_async(partial(grew_from, len(stored)))
    finally:
        stopping.set()
        for thread in submitting:
            thread.join()
    assert await number_of(store) == len(stored)


def sync_noop() -> None:
    pass


def test_a_sync_submit_stays_in_its_thread(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    engine = Engine(Config(database_url=sqlite_url))
    try:
        call = call_of(define(sync_noop, name=None, options=TaskOptions()), {})
        first = submit_sync(engine, call)  # opens the store
        monkeypatch.setattr(functions, "run_sync", lambda work: pytest.fail("it went to the loop"))
        more = [submit_sync(engine, call) for _ in range(5)]
        monkeypatch.undo()
        found = run_sync(engine.page(Filter(), limit=50)).tasks
        assert {task.id for task in found} == {inserted.id for inserted in (first, *more)}
    finally:
        run_sync(engine.shutdown())
