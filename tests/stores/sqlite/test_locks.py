"""Locks that no caller sees, commits that several share, and the guard of each row in a batch."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import apsw
import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.errors import (
    StoreBusy,
    StoreClosed,
    StoreError,
)
from tasklib.core.task import NewTask
from tasklib.stores.sql.sqlite import SqliteStore
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    claim,
    completed,
    failed,
    fetch,
    lease_of,
    submit,
    submit_several,
)
from tests.stores.conftest import number_of


async def test_a_call_waits_for_the_lock_of_another(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    call = asyncio.create_task(submit(store))
    assert await store.stats() == {}, "a reader waited for a writer"
    assert not call.done()
    connection.execute("COMMIT")
    assert (await fetch(store, await call)).name == WORK


async def test_a_lock_that_stays_is_an_error_of_ours(sqlite_url: str, store: SqliteStore, connection: apsw.Connection):
    impatient = SqliteStore(sqlite_url, call_timeout=0.5)
    await impatient.open()
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match=r"locked by another process|too many calls were waiting"):
        await submit(impatient)
    connection.execute("ROLLBACK")
    assert await number_of(store) == 0
    await submit(store)
    await impatient.close()


async def test_a_call_that_was_given_up_writes_nothing(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(submit(store))
    given_up = asyncio.create_task(submit(store, "given up"))
    await store.now()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    connection.execute("COMMIT")
    await waiting
    await submit(store)
    assert set(await store.stats()) == {WORK}


async def test_closing_ends_a_wait_for_a_lock(sqlite_url: str, store: SqliteStore, connection: apsw.Connection):
    other = SqliteStore(sqlite_url)
    await other.open()
    connection.execute("BEGIN IMMEDIATE")
    call = asyncio.create_task(submit(other))
    await other.now()
    await other.close()
    with pytest.raises(StoreClosed):
        await call
    connection.execute("ROLLBACK")


async def test_calls_at_once_share_a_commit(store: SqliteStore, connection: apsw.Connection):
    commits: list[int] = []

    def committing() -> bool:
        commits.append(1)
        return False

    await store._on_writer(lambda writer: writer.set_commit_hook(committing, id="test"))
    connection.execute("BEGIN IMMEDIATE")
    calls = [asyncio.create_task(submit(store)) for _ in range(100)]
    await store.now()
    connection.execute("COMMIT")
    await asyncio.gather(*calls)
    assert await number_of(store) == 100
    assert len(commits) < 20, "many waited at once, and yet each had a commit of its own"


async def test_one_bad_call_spoils_no_other(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    good = [asyncio.create_task(submit(store)) for _ in range(5)]
    bad = asyncio.create_task(store.insert([NewTask(id=uuid4(), name=WORK, kwargs="{not json")]))
    more = [asyncio.create_task(submit(store)) for _ in range(5)]
    await store.now()
    connection.execute("COMMIT")
    with pytest.raises(StoreError, match="kwargs is JSON"):
        await bad
    assert len(set(await asyncio.gather(*good, *more))) == 10
    assert await number_of(store) == 10


# -- guards -----------------------------------------------------------------------------------------------------------


async def test_in_one_batch_each_completion_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 3)
    held, older, stranger = await claim(store, 3)
    changes = [
        completed(held, "held"),
        completed(older, "older")._replace(version=older.version - 1),
        completed(stranger, "stranger")._replace(worker_id="somebody else"),
    ]
    assert await store.settle(changes) == [WriteResult.APPLIED, WriteResult.STALE, WriteResult.STALE]
    states = [(await fetch(store, claimed.id)).state for claimed in (held, older, stranger)]
    assert states == ["completed", "running", "running"]


async def test_in_one_batch_each_change_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 4)
    held, older, stranger, extended = await claim(store, 4)
    elsewhere = (await fetch(store, extended.id)).locked_until
    assert elsewhere is not None
    changes = [
        failed(held, "held"),
        failed(older, "older")._replace(version=older.version - 1),
        failed(stranger, "stranger")._replace(worker_id="somebody else"),
        failed(extended, "extended")._replace(locked_until=elsewhere - timedelta(seconds=1)),
    ]
    assert await store.settle(changes) == [WriteResult.APPLIED, WriteResult.STALE, WriteResult.STALE, WriteResult.STALE]
    errors = [(await fetch(store, claimed.id)).error for claimed in (held, older, stranger, extended)]
    assert errors == ["held", None, None, None]


async def test_in_one_batch_each_lease_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 2)
    held, older = await claim(store, 2)
    before = (await fetch(store, older.id)).locked_until
    leases = [lease_of(held), lease_of(older)._replace(version=older.version - 1)]
    assert [extension.held for extension in await store.extend(WORKER_A, leases, 7200)] == [True, False]
    assert (await fetch(store, older.id)).locked_until == before
