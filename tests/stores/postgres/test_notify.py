"""Wake-ups by NOTIFY: who is told, who is not, and what happens where nobody can be."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import asyncpg
import pytest

from tasklib.core.task import Task
from tasklib.stores.sql.hints import request_in
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import CancelRequested, ControlChange, Filter
from tests.conformance.builders import (
    WORKER_A,
    apply,
    claim,
    completed,
    failed,
    heartbeat_of,
    look,
    new_task,
    submit,
    submit_several,
    within_deadline,
)
from tests.servers import QUICK, PostgresServer
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async


async def end(watching: AsyncIterator[Task | None]) -> None:
    """A generator that is left alone is closed by the loop, later."""
    assert isinstance(watching, AsyncGenerator)
    await watching.aclose()


async def notifications(server: str, channel: str) -> tuple[asyncpg.Connection, list[str]]:
    heard: list[str] = []
    connection = await asyncpg.connect(server)
    await connection.add_listener(channel, lambda *event: heard.append(event[3]))
    return connection, heard


async def test_nobody_is_notified_unless_a_worker_listens(store: PostgresStore, postgres_server: str, schema: str):
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")

    async def submit_each_way() -> None:
        await submit(store, "one")
        await store.insert([new_task("many"), new_task("many")])
        await store.insert([new_task("several"), new_task("kinds")])
        await store.insert([new_task("keyed", key=str(new_task().id))])
        await store.insert([new_task("later", delay_seconds=3600)])
        await ear.execute("SELECT 1")

    await submit_each_way()
    assert heard == [], "no worker at all"
    await store.heartbeat(heartbeat_of(WORKER_A))
    await submit_each_way()
    assert heard == ["=one", "=many", "", "=keyed"]
    heard.clear()
    await store.deregister_worker(WORKER_A)
    await submit_each_way()
    assert heard == [], "it said goodbye"
    await store.heartbeat(heartbeat_of(WORKER_A))
    store.clock_offset += 90
    await submit_each_way()
    assert heard == [], "it has been silent for too long"
    await ear.close()


async def test_completions_notify_only_those_who_wait(store: PostgresStore, postgres_server: str, schema: str):
    await store.heartbeat(heartbeat_of(WORKER_A))
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")
    done, ends = await notifications(postgres_server, f"tasklib_{schema}:done")
    await submit(store)
    awaited = await submit(store)
    await ear.execute("SELECT 1")
    heard.clear()
    watching = aiter(store.watch(awaited))
    assert (await anext(watching)) is not None
    await apply(store, *(completed(claimed) for claimed in await claim(store, 2)))
    await ear.execute("SELECT 1")
    await done.execute("SELECT 1")
    assert heard == []
    assert ends == [str(awaited)]
    await end(watching)
    await ear.close()
    await done.close()


async def test_what_is_given_back_wakes_the_others(store: PostgresStore, postgres_server: str, schema: str):
    await store.heartbeat(heartbeat_of(WORKER_A))
    await submit_several(store, 2)
    claims = await claim(store, 2)
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")
    await apply(store, failed(claims[0], delay=0), failed(claims[1], delay=3600))
    await ear.execute("SELECT 1")
    assert heard == ["=work"]
    await ear.close()


async def test_a_cancel_is_told_in_one_message_however_many_are_asked(
    store: PostgresStore, postgres_server: str, schema: str
):
    ids = [(await submit(store)) for _ in range(2)]
    await claim(store, 2)
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")
    await store.request_cancel(ids)
    ids = await submit_several(store, 200)
    await store.request_cancel(ids)
    await claim(store, 200)
    await store.request_cancel(ids)
    await ear.execute("SELECT 1")
    first, many = heard
    assert request_in(many) == CancelRequested(), "look for yourself"
    named = request_in(first)
    assert isinstance(named, CancelRequested)
    assert len(named.ids) == 2
    await ear.close()


@pytest.mark.parametrize("word", ["-", "-nobody", "-,", "=", "", "!", "?"])
async def test_any_word_on_the_channel_is_taken(store: PostgresStore, postgres_server: str, schema: str, word: str):
    """Whoever may connect to the database may say it."""
    woken = asyncio.Event()
    stop = store.listen(lambda _: woken.set())
    await within_deadline(woken, "the first wake-up")
    woken.clear()
    connection = await asyncpg.connect(postgres_server)
    await connection.execute("SELECT pg_notify($1, $2)", f"tasklib_{schema}", word)
    await within_deadline(woken, "a wake-up")
    await connection.close()
    stop()


async def test_an_idle_listener_holds_one_connection_for_everything(store: PostgresStore):
    woken = asyncio.Event()
    stop = store.listen(lambda _: woken.set())
    await within_deadline(woken, "the first wake-up")
    pool = store._calls.pool
    await eventually_async(lambda: pool.connections <= 2)
    for _ in range(5):
        await look(store)
        await submit(store)
    assert pool.connections <= 2, (
        "the one that opened the store, until it is idle for long enough, and the listening one"
    )
    assert pool.listener_if_free() is not None, "the calls went over it and gave it back"
    stop()


async def test_a_lost_listening_connection_is_made_anew(postgres_url: str):
    async with Proxy(postgres_url) as proxy:
        store = PostgresStore(proxy.url)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await within_deadline(woken, "the first wake-up")
        for _ in range(3):
            woken.clear()
            proxy.cut()
            await within_deadline(woken, "a wake-up after the line was cut")
            woken.clear()
            await store.control(ControlChange(paused=False))
            await within_deadline(woken, "a wake-up over the new line")
        await store.close()


async def test_a_restarted_server_is_found_again():
    with PostgresServer(settings=QUICK) as server:
        store = PostgresStore(server.dsn)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await within_deadline(woken, "the first wake-up")
        for mode in ("fast", "immediate"):
            await asyncio.to_thread(server.restart, mode)
            await submit(store)
            woken.clear()
            await store.control(ControlChange(paused=False))
            await within_deadline(woken, "a wake-up from the new server")
        await store.close()


# -- poolers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False], ids=["told", "found out"])
async def test_behind_a_pooler_nothing_is_kept_in_the_session(postgres_url: str, postgres_server: str, told: bool):
    async with Proxy(postgres_url) as proxy:
        proxy.foreign_pids = True
        store = PostgresStore(f"{proxy.url}&pgbouncer=true" if told else proxy.url)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await store.heartbeat(heartbeat_of(WORKER_A))
        task_id = await submit(store, key="once")
        assert (await store.insert([new_task(key="once")]))[0].id == task_id
        await submit_several(store, 3)
        await store.control(ControlChange(name="work", concurrency=3))
        claims = await claim(store, 10)
        assert len(claims) == 3
        await apply(store, completed(claims[0]), failed(claims[1]))
        states = sorted(task.state for task in (await store.page(Filter(), limit=9)).tasks)
        assert states == ["completed", "failed", "pending", "running"]
        assert {finding.level for finding in await store.check_up() if finding.subject == "pooler"} == {"warning"}

        async def session(connection: asyncpg.Connection, _: float) -> tuple[object, ...]:
            settings = "SELECT current_setting('enable_seqscan'), (SELECT count(*) FROM pg_prepared_statements)"
            return tuple(await connection.fetchrow(settings)) + tuple(
                await connection.fetch("SELECT pg_listening_channels()")
            )

        assert await store._calls.run(session) == ("on", 0)
        assert not woken.is_set()
        ends = store.watch(claims[2].id)
        assert isinstance(await anext(ends), Task)
        await apply(store, completed(claims[2]))
        ended = await asyncio.wait_for(anext(ends), 20)
        assert ended is not None
        assert ended.state == "completed", "found by polling"
        await end(ends)
        await store.close()
