"""NATS servers that go away, lines that are cut before a message went out or before its answer came back."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.errors import TRANSIENT, StoreUnavailable
from tasklib.stores.nats import NatsStore
from tasklib.stores.values import ControlChange, Filter, Inserted
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    apply,
    claim,
    claim_one,
    completed,
    fetch,
    heartbeat_of,
    lease_of,
    new_task,
    submit,
    submit_several,
    within_deadline,
)
from tests.nats_servers import NatsCluster, NatsServer
from tests.stores.conftest import Fault, faults, number_of
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async, turns

T = TypeVar("T")


@pytest.fixture
async def proxy(nats_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(nats_url) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[NatsStore]:
    store = NatsStore(proxy.url)
    await store.open()
    yield store
    await store.close()


@faults
@pytest.mark.parametrize("key", [None, "key"])
async def test_a_submit_makes_one_task(store: NatsStore, proxy: Proxy, fault: Fault, key: str | None):
    task = new_task("doubt", key=key)
    fault(proxy, b"doubt")
    assert await store.insert([task]) == [Inserted(task.id, True)]
    assert proxy.faults == 1
    assert await number_of(store) == 1
    assert (await fetch(store, task.id)).name == "doubt"


@faults
async def test_a_batch_is_stored_once(store: NatsStore, proxy: Proxy, fault: Fault):
    tasks = [new_task("doubt", key=f"key-{number}" if number % 2 else None) for number in range(50)]
    fault(proxy, b"doubt")
    assert await store.insert(tasks) == [Inserted(task.id, True) for task in tasks]
    assert proxy.faults == 1
    assert await number_of(store) == 50


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("number", [1, 3])
async def test_a_submit_whose_reply_was_lost_brings_nothing_back_that_was_deleted_meanwhile(
    store: NatsStore, number: int, key: str | None
):
    """It was stored whole or not at all: if one of it was there, all of it was."""
    tasks = [new_task(key=key), *(new_task() for _ in range(1, number))]
    await store.insert(tasks)
    [running] = await claim(store, 1)
    await apply(store, completed(running))
    assert await store.delete([(running.id, 2)]) == [WriteResult.APPLIED]
    again = await store.insert(tasks)  # as is done when nobody answered
    assert again == [Inserted(task.id, True) for task in tasks]
    assert await number_of(store) == number - 1
    assert await store.get([running.id]) == [None]


@faults
@pytest.mark.parametrize("limited", [False, True])
async def test_a_claim_is_not_lost(store: NatsStore, proxy: Proxy, fault: Fault, limited: bool):
    if limited:
        await store.control(ControlChange(name=WORK, concurrency=100))
    ids = await submit_several(store, 20)
    fault(proxy, b"Tasklib-Note")
    claims = await claim(store, 20)
    assert proxy.faults == 1
    assert [claimed.id for claimed in claims] == ids
    assert sorted(await store.claims_of_worker(WORKER_A)) == sorted(claims)
    assert {claimed.version for claimed in claims} == {1}
    await apply(store, *map(completed, claims))


@faults
async def test_a_task_taken_by_hand_is_not_lost(store: NatsStore, proxy: Proxy, fault: Fault):
    task = await fetch(store, await submit(store))
    fault(proxy, b"Tasklib-Note")
    claimed = await store.claim_by_id(task.id, task.version, WORKER_A, 60)
    assert proxy.faults == 1
    assert claimed is not None
    assert await store.claims_of_worker(WORKER_A) == [claimed]
    assert await store.claim_by_id(task.id, task.version, WORKER_A, 60) is None, "it has moved on"


@faults
async def test_an_outcome_is_recorded_once(store: NatsStore, proxy: Proxy, fault: Fault):
    await submit_several(store, 20)
    claims = await claim(store, 20)
    fault(proxy, b"completed")
    write_results = await store.settle([completed(claimed, number) for number, claimed in enumerate(claims)])
    assert proxy.faults == 1
    assert set(write_results) <= {WriteResult.APPLIED, WriteResult.DUPLICATE}
    stats = (await store.stats())[WORK]
    assert (stats.completed, stats.running) == (20, 0)
    assert {task.version for task in await store.get([claimed.id for claimed in claims]) if task} == {2}


@faults
async def test_a_deletion_is_told_as_done(store: NatsStore, proxy: Proxy, fault: Fault):
    await submit(store, key="k")
    await apply(store, completed(await claim_one(store)))
    [task] = (await store.page(Filter(), limit=5)).tasks
    fault(proxy, b"KV-Operation")
    assert await store.delete([(task.id, task.version)]) == [WriteResult.APPLIED]
    assert proxy.faults == 1
    assert await number_of(store) == 0


@faults
async def test_a_lease_is_extended(store: NatsStore, proxy: Proxy, fault: Fault):
    await submit_several(store, 5)
    claims = await claim(store, 5, lease=10)
    fault(proxy, b"locked_until")
    answers = await store.extend(WORKER_A, [lease_of(claimed) for claimed in claims], 600)
    assert proxy.faults == 1
    assert all(answer.held for answer in answers)


@faults
async def test_other_writes_go_through_once(store: NatsStore, proxy: Proxy, fault: Fault):
    fault(proxy, b"hostname")
    await store.heartbeat(heartbeat_of(WORKER_A))
    fault(proxy, b"operator_rate")
    await store.control(ControlChange(name=WORK, paused=True))
    assert proxy.faults == 2
    assert [worker.id for worker in await store.workers()] == [WORKER_A]
    assert (await store.controls())[WORK].paused


async def test_a_silent_line_ends_with_the_deadline(proxy: Proxy):
    store = NatsStore(proxy.url, call_timeout=1.0)
    await store.open()
    await submit(store)
    proxy.freeze()
    start = time.monotonic()
    for call in (store.insert([new_task()]), claim(store), store.stats()):
        with pytest.raises(TRANSIENT):
            await call
    assert time.monotonic() - start < 6
    proxy.thaw()
    assert await eventually_async(lambda: _submits(store))
    await store.close()


async def test_no_answer_is_told_alike_by_all_that_read(proxy: Proxy):
    """A worker goes on after such an error; any other one ends it."""
    store = NatsStore(proxy.url, call_timeout=0.3)
    await store.open()
    task_id = await submit(store)
    proxy.freeze()
    calls = {
        "after_of": store.after_of(task_id),
        "alerts": store.alerts(),
        "claims_of_worker": store.claims_of_worker(WORKER_A),
        "compact_stats": store.compact_stats(),
        "controls": store.controls(),
        "count": store.count(Filter(), 10),
        "delete": store.delete([(task_id, 1)]),
        "deregister_worker": store.deregister_worker(WORKER_A),
        "due_schedules": store.due_schedules(10),
        "feeds": store.feeds(task_id, 10),
        "flow_graph": store.flow_graph(task_id, 10),
        "flows": store.flows(10),
        "get": store.get([task_id]),
        "get_by_key": store.get_by_key("key"),
        "heartbeat": store.heartbeat(heartbeat_of(WORKER_A)),
        "keep_schedules": store.keep_schedules(["nightly"]),
        "latest_failures": store.latest_failures(None, 10),
        "list_audit": store.list_audit(),
        "lost_leases": store.lost_leases(1.0, 10),
        "page": store.page(Filter(), limit=10),
        "page_ended": store.page_ended(Filter(), limit=10),
        "page_longest": store.page_longest(Filter(), limit=10),
        "parents": store.parents([task_id]),
        "prune": store.prune(["completed"], 0.0, 10),
        "published": store.published(),
        "release_stranded": store.release_stranded(10),
        "request_cancel": store.request_cancel([task_id]),
        "sample_backlog": store.sample_backlog(),
        "schedules": store.schedules(),
        "series": store.series(3600.0),
        "stats": store.stats(),
        "tokens": store.tokens(),
        "versions": store.versions(),
        "workers": store.workers(),
    }
    answers = dict(zip(calls, await asyncio.gather(*calls.values(), return_exceptions=True), strict=True))
    proxy.thaw()
    assert {name: answer for name, answer in answers.items() if not isinstance(answer, TRANSIENT)} == {}
    await store.close()


async def _submits(store: NatsStore) -> bool:
    try:
        await submit(store)
    except TRANSIENT:
        return False
    return True


async def test_a_listener_hears_again_after_the_line_was_cut(store: NatsStore, proxy: Proxy, nats_url: str):
    await claim(store)
    heard = asyncio.Event()
    stop = store.listen(lambda name: heard.set())
    other = NatsStore(nats_url)
    await other.open()
    proxy.cut()
    await eventually_async(lambda: proxy.connections >= 2)
    await submit(store)  # the line is back
    heard.clear()
    task_id = await submit(other)
    await within_deadline(heard, "a wake-up after the reconnect")
    assert task_id in [claimed.id for claimed in await claim(store, 5)]
    stop()
    await other.close()


async def test_a_change_that_a_replica_brings_late_is_not_passed_over(nats_url: str, monkeypatch: pytest.MonkeyPatch):
    """A leader tells of one change more than the replica has that feeds this store: it is told when it comes."""
    store, other = NatsStore(nats_url), NatsStore(nats_url)
    await store.open()
    await other.open()
    first = await submit(other)
    as_it_is = store._kv.info

    async def one_ahead() -> dict[str, Any]:
        answer = await as_it_is()
        answer["state"]["last_seq"] += 1
        return answer

    monkeypatch.setattr(store._kv, "info", one_ahead)
    await store._cache.sync()
    monkeypatch.undo()
    late = await submit(other)
    assert [claimed.id for claimed in await claim(store, 5)] == [first, late]
    await store.close()
    await other.close()


async def test_the_leader_tells_whether_changes_are_still_to_come(store: NatsStore):
    for _ in range(3):
        await submit(store)
    kv = store._kv
    last = (await kv.info())["state"]["last_seq"]
    assert await kv.has(last, last)
    assert await kv.has(1, last)
    assert not await kv.has(last + 1, last + 10)
    await submit(store)
    assert not await kv.has(last + 1, last), "what came later is not meant"


async def test_a_line_that_is_cut_while_much_is_to_be_sent_is_made_anew(store: NatsStore, proxy: Proxy):
    """nats-py tries to send what is left on a line that is gone, fails, and tells nobody of either."""
    stopping = asyncio.Event()

    def line_was_made(number: int) -> bool:
        return proxy.connections >= number

    async def submit_on() -> None:
        while not stopping.is_set():
            await store.insert([new_task(payload={"text": "x" * 20_000})])

    submitting = [asyncio.create_task(submit_on()) for _ in range(50)]
    try:
        for cuts in range(1, 21):
            await submit(store)
            proxy.cut()
            await eventually_async(partial(line_was_made, cuts + 1))
    finally:
        stopping.set()
        await asyncio.gather(*submitting)


# -- servers ----------------------------------------------------------------------------------------------------------


async def test_a_server_that_restarts_costs_nothing_but_time(caplog: pytest.LogCaptureFixture):
    with NatsServer() as server:
        store = NatsStore(server.url)
        await store.open()
        ids = await submit_several(store, 50)
        running = await claim(store, 10)
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                server.stop()
                waiting = [asyncio.create_task(submit(store)) for _ in range(20)]
                await turns(3)
                server.start()
                ids += await asyncio.gather(*waiting)
        assert len([record for record in caplog.records if record.name == "tasklib.store"]) < 10
        await apply(store, *map(completed, running))
        taken = {claimed.id for claimed in await claim(store, 500)} | {claimed.id for claimed in running}
        assert taken == set(ids)
        await store.close()


async def test_a_server_that_stays_away_is_told_within_the_deadline():
    with NatsServer() as server:
        store = NatsStore(server.url, call_timeout=1.0)
        await store.open()
        server.kill9()
        with pytest.raises(StoreUnavailable, match="did not answer within 1 s"):
            await submit(store)
        server.start()
        assert await eventually_async(lambda: _submits(store), timeout=30)
        await store.close()


async def test_a_server_that_is_paused_leaves_a_doubt_that_is_resolved():
    """Fault 22, a server paused: calls end with their deadline, though the server has the messages and acts on them
    when it goes on; what is then asked again is found done, and is not done twice."""
    with NatsServer() as server:
        store = NatsStore(server.url, call_timeout=1.0)
        await store.open()
        await submit_several(store, 2)
        [claimed, other] = await claim(store, 2)
        task, keyed = new_task("doubt"), new_task("doubt", key="k")
        server.pause()
        try:
            for call in (
                store.insert([task]),
                store.insert([keyed]),
                store.settle([completed(claimed, "once")]),
                store.extend(WORKER_A, [lease_of(other)], 60),
            ):
                begun = time.monotonic()
                with pytest.raises(TRANSIENT):
                    await call
                assert time.monotonic() - begun < 2.5
        finally:
            server.resume()
        assert await eventually_async(lambda: _answers(store), timeout=30)
        assert [each.id for each in await store.insert([task, keyed])] == [task.id, keyed.id]
        assert await store.settle([completed(claimed, "once")]) in ([WriteResult.DUPLICATE], [WriteResult.APPLIED])
        assert (await store.extend(WORKER_A, [lease_of(other)], 60))[0].held
        figures = await store.stats()
        assert (figures["doubt"].pending, figures["work"].completed, figures["work"].running) == (2, 1, 1)
        await store.close()


async def _answers(store: NatsStore) -> bool:
    try:
        await store.stats()
    except TRANSIENT:
        return False
    return True


async def test_a_cluster_goes_on_without_one_of_its_nodes():
    """A call may end with its deadline while the others elect a leader; it is then made again, as a worker would."""
    with NatsCluster() as cluster:
        stores = [NatsStore(f"{cluster.url}?replicas=3&bucket=shop") for _ in range(3)]
        for store in stores:
            await store.open()
        submitted: list[UUID] = []
        done: dict[UUID, int] = {}
        stopping = asyncio.Event()

        async def submit_on(store: NatsStore) -> None:
            while not stopping.is_set():
                await eventually_async(lambda: len(submitted) - len(done) < 500, timeout=120)
                tasks = [new_task() for _ in range(20)]
                submitted.extend(task.id for task in tasks)
                await until_answered(partial(store.insert, tasks))

        async def work(store: NatsStore, name: str) -> None:
            while not (stopping.is_set() and len(done) == len(submitted)):
                try:
                    claims = await claim(store, 50, worker=name)
                except TRANSIENT:
                    claims = await until_answered(partial(store.claims_of_worker, name))
                write_results = await until_answered(partial(store.settle, [completed(each) for each in claims]))
                for each, write_result in zip(claims, write_results, strict=True):
                    if write_result in (WriteResult.APPLIED, WriteResult.DUPLICATE):
                        done[each.id] = done.get(each.id, 0) + 1

        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            submitting = group.create_task(submit_on(stores[0]))
            for place, store in enumerate(stores):
                group.create_task(work(store, f"worker-{place}"))
            await eventually_async(lambda: len(done) > 200, timeout=60)
            victim = await asyncio.to_thread(cluster.leader_of, "KV_shop")
            victim.kill9()
            before = len(done)
            await eventually_async(lambda: len(done) > before + 300, timeout=120)
            victim.start(wait=False)
            before = len(done)
            await eventually_async(lambda: len(done) > before + 300, timeout=120)
            stopping.set()
            await submitting
        assert set(done) == set(submitted)
        assert set(done.values()) == {1}
        stats = (await stores[1].stats())[WORK]
        assert (stats.completed, stats.pending, stats.running) == (len(submitted), 0, 0)
        for store in stores:
            await store.close()


async def until_answered(call: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await call()
        except TRANSIENT:
            continue


async def test_an_open_that_is_cancelled_ends_wherever_it_was(nats_url: str):
    for number in range(60):
        store = NatsStore(nats_url)
        opening = asyncio.create_task(store.open())
        await turns(number)
        opening.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait([opening])
            await store.close()
