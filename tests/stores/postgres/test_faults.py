"""A line that is cut before a statement went out, or after it was carried out and before the answer came back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.errors import TRANSIENT, StoreUnavailable
from tasklib.core.flows import After
from tasklib.core.lifecycle import Phase
from tasklib.core.task import NewTask
from tasklib.core.unique import Unique
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import AuditEntry, ControlChange, Filter, Inserted
from tests.conformance.builders import (
    WORKER_A,
    apply,
    cancelled,
    claim,
    completed,
    failed,
    heartbeat_of,
    in_phase,
    lease_of,
    new_task,
    next_id,
    submit,
    submit_several,
)
from tests.stores.conftest import Fault, faults, number_of
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(proxy.url, pool_size=1)
    await store.open()
    yield store
    await store.close()


@faults
async def test_a_submit_makes_one_task(store: PostgresStore, proxy: Proxy, fault: Fault):
    """Fault 11: cut before the commit arrives, or before its answer does. One row, the same id."""
    await submit(store)  # its statement is prepared: what follows is one message
    task = new_task("doubt")
    fault(proxy, b"doubt")
    (inserted,) = await store.insert([task])
    assert (inserted.id, inserted.created) == (task.id, True)
    assert proxy.faults == 1
    assert await number_of(store) == 2


@faults
async def test_a_batch_is_stored_once(store: PostgresStore, proxy: Proxy, fault: Fault):
    await store.insert([new_task(), new_task()])
    tasks = [new_task("doubt") for _ in range(50)]
    fault(proxy, b"doubt")
    assert await store.insert(tasks) == [Inserted(task.id, True) for task in tasks]
    assert proxy.faults == 1
    assert await number_of(store) == 52


@faults
async def test_a_flow_is_stored_and_linked_once(store: PostgresStore, proxy: Proxy, fault: Fault):
    """Sent again, it finds itself; what has been released by then does not wait again."""
    parent = await submit(store, "parent")
    tasks = [new_task("doubt", key=f"k{n}")._replace(after=After((parent,))) for n in range(3)]
    await store.insert([task._replace(id=next_id(), idempotency_key=f"warm {task.id}") for task in tasks])
    fault(proxy, b"COMMIT\0")
    assert await store.insert(tasks) == [Inserted(task.id, True) for task in tasks]
    assert proxy.faults == 1
    assert (await store.feeds(parent, 10)).number == 6
    [found] = await store.get([tasks[0].id])
    assert found is not None
    assert found.waits == 1


@faults
async def test_an_end_that_cuts_off_is_written_once(store: PostgresStore, proxy: Proxy, fault: Fault):
    tasks = [new_task("head"), new_task("head")]
    await store.insert([*tasks, *(new_task()._replace(after=After((task.id,))) for task in tasks)])
    warm, held = await claim(store, 2, names=["head"])
    await apply(store, failed(warm, final=True))
    fault(proxy, b"COMMIT\0")
    [result] = await store.settle([failed(held, final=True)])
    assert result in (WriteResult.APPLIED, WriteResult.DUPLICATE)
    assert proxy.faults == 1
    assert (await store.stats())["work"].cancelled == 2


@faults
async def test_a_key_makes_one_task(store: PostgresStore, proxy: Proxy, fault: Fault):
    await store.insert([new_task(key="first")])
    keyed, keyless = new_task("doubt", key="second"), new_task()
    fault(proxy, b"doubt")
    assert await store.insert([keyed, keyless]) == [Inserted(keyed.id, True), Inserted(keyless.id, True)]
    assert proxy.faults == 1
    assert await number_of(store) == 3


@faults
async def test_an_outcome_is_recorded_once(store: PostgresStore, proxy: Proxy, fault: Fault):
    """Fault 11, an outcome: sent again it is recognised, and counted once."""
    await submit_several(store, 3)
    first, second, third = await claim(store, 3)
    await apply(store, completed(first))
    fault(proxy, b"doubt")
    write_result = await store.settle([completed(second, "doubt")])
    assert write_result == [WriteResult.APPLIED if fault is Proxy.lose_request else WriteResult.DUPLICATE]
    fault(proxy, b"boom")
    write_result = await store.settle([failed(third, "boom", final=True)])
    assert write_result == [WriteResult.APPLIED if fault is Proxy.lose_request else WriteResult.DUPLICATE]
    assert proxy.faults == 2
    figures = (await store.stats())["work"]
    assert (figures.completed, figures.failed) == (2, 1)


@faults
async def test_outcomes_of_both_kinds_are_recorded_in_one_transaction(store: PostgresStore, proxy: Proxy, fault: Fault):
    await submit_several(store, 4)
    claims = await claim(store, 4)
    await apply(store, completed(claims[0]), failed(claims[1], final=True))
    fault(proxy, b"COMMIT\0")
    write_results = await store.settle([completed(claims[2]), failed(claims[3], final=True)])
    assert set(write_results) == {WriteResult.APPLIED if fault is Proxy.lose_request else WriteResult.DUPLICATE}
    assert proxy.faults == 1
    figures = (await store.stats())["work"]
    assert (figures.completed, figures.failed) == (2, 2)


async def test_a_claim_in_doubt_is_not_repeated_but_can_be_found(store: PostgresStore, proxy: Proxy):
    await submit_several(store, 20)
    await claim(store, 1)
    proxy.lose_reply(b"doubtful")
    with pytest.raises(StoreUnavailable):
        await claim(store, 5, worker="doubtful")
    assert proxy.faults == 1
    held = await store.claims_of_worker("doubtful")
    assert len(held) == 5, "claimed once"
    await apply(store, *map(completed, held))


@faults
async def test_a_delete_in_doubt_is_done(store: PostgresStore, proxy: Proxy, fault: Fault):
    await submit_several(store, 2)
    claims = await claim(store, 2)
    await apply(store, *map(completed, claims))
    assert await store.delete([(claims[0].id, claims[0].version + 1)]) == [WriteResult.APPLIED]
    fault(proxy, claims[1].id.bytes)
    expected = WriteResult.APPLIED if fault is Proxy.lose_request else WriteResult.DUPLICATE
    assert await store.delete([(claims[1].id, claims[1].version + 1)]) == [expected]
    assert proxy.faults == 1


@faults
async def test_heartbeats_and_extensions_go_on(store: PostgresStore, proxy: Proxy, fault: Fault):
    await submit(store)
    claims = await claim(store, 1)
    await store.heartbeat(heartbeat_of(WORKER_A))
    await store.extend(WORKER_A, [lease_of(claims[0])], 600)
    fault(proxy, claims[0].id.bytes)
    assert (await store.extend(WORKER_A, [lease_of(claims[0])], 600))[0].held
    fault(proxy, b"anna")
    await store.heartbeat(heartbeat_of(WORKER_A))
    assert proxy.faults == 2


async def test_lines_that_are_cut_under_load_lose_and_double_nothing(postgres_url: str, proxy: Proxy):
    """Fault 10, lines reset under load: nothing is lost and nothing is done twice."""
    store = PostgresStore(proxy.url, pool_size=4)
    await store.open()
    submitted = 0
    ended = asyncio.Event()

    async def submit_some() -> None:
        nonlocal submitted
        while submitted < 600 or proxy.faults < 3:
            await submit(store)
            submitted += 1

    async def cut_again_and_again() -> None:
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), 0.15)
            except TimeoutError:
                if proxy.busy:
                    proxy.cut()

    async def work(worker: str) -> None:
        while not ended.is_set():
            try:
                claims = await claim(store, 5, worker=worker)
            except StoreUnavailable:
                claims = await store.claims_of_worker(worker)
            write_results = await store.settle([completed(claimed) for claimed in claims])
            assert set(write_results) <= {WriteResult.APPLIED, WriteResult.DUPLICATE}

    async def until_done() -> None:
        await asyncio.gather(*(submit_some() for _ in range(3)))
        while (await store.stats())["work"].completed < submitted:
            pass
        ended.set()

    async with asyncio.timeout(100):
        await asyncio.gather(cut_again_and_again(), work("a"), work("b"), until_done())
    assert proxy.faults >= 3
    assert await number_of(store) == submitted
    assert (await store.count(Filter(states=["completed"]), 100_000)).value == submitted
    await store.close()


async def test_a_silent_partition_lasts_no_longer_than_the_deadline(proxy: Proxy):
    """Fault 12: on a silent line every call ends with its deadline."""
    store = PostgresStore(proxy.url, call_timeout=1.0)
    await store.open()
    await submit_several(store, 4)
    await store.control(ControlChange(name="work", concurrency=3))
    claims = await claim(store, 2)
    proxy.freeze()
    loop = asyncio.get_running_loop()
    for call in (
        lambda: submit(store),
        lambda: claim(store, 1),
        lambda: store.settle([completed(claims[0]), failed(claims[1])]),
        lambda: store.page(Filter(), limit=5),
        lambda: store.extend(WORKER_A, [lease_of(claims[0])], 60),
        store.compact_stats,
    ):
        begun = loop.time()
        with pytest.raises(TRANSIENT):
            await call()
        assert loop.time() - begun < 2.5
    proxy.thaw()
    proxy.cut()
    assert await store.settle([completed(claims[0]), failed(claims[1])]) == [WriteResult.APPLIED] * 2
    await store.close()


@faults
async def test_an_action_in_doubt_has_one_entry(store: PostgresStore, proxy: Proxy, fault: Fault):
    """Cut before the commit arrives, or before its answer does: the second try finds what the first one did."""

    def of_ids(applied: Sequence[UUID]) -> list[AuditEntry]:
        return [AuditEntry(actor="ada", action="act", task_id=task_id) for task_id in applied]

    pending, done = await in_phase(store, Phase.PENDING), await in_phase(store, Phase.COMPLETED)
    fault(proxy, b"COMMIT\0")
    [cancel] = await store.settle([cancelled(pending)], audit=of_ids)
    assert cancel in (WriteResult.APPLIED, WriteResult.DUPLICATE)
    fault(proxy, b"COMMIT\0")
    [delete] = await store.delete([(done.id, done.version)], audit=of_ids)
    assert delete in (WriteResult.APPLIED, WriteResult.DUPLICATE)
    assert proxy.faults == 2
    assert [entry.task_id for entry in await store.list_audit()] == [done.id, pending.id]


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("way", ["plain", "keyed", "audited", "unique"])
async def test_a_submit_that_is_sent_again_brings_nothing_back_that_has_run_and_is_deleted(
    store: PostgresStore, proxy: Proxy, postgres_url: str, number: int, way: str
):
    """Its answer is lost, and before it is sent again all that it stored has run and is deleted."""

    def some(name: str) -> list[NewTask]:
        keys = [f"{name} {each}" for each in range(number)]
        return [
            new_task(name)._replace(
                idempotency_key=key if way == "keyed" else None,
                unique_rule=Unique(key) if way == "unique" else None,
            )
            for key in keys
        ]

    def entries(made: Sequence[UUID]) -> list[AuditEntry]:
        return [AuditEntry(actor="ada", action="submit", task_id=task_id) for task_id in made]

    async def insert(tasks: Sequence[NewTask]) -> Sequence[Inserted]:
        return await (store.insert(tasks, audit=entries) if way == "audited" else store.insert(tasks))

    await insert(some("before"))  # its statements are prepared
    await insert(some("before that"))
    tasks = some("doubt")
    in_transaction = way == "audited" or (way == "unique" and number > 1)
    proxy.lose_reply(b"COMMIT\0" if in_transaction else b"doubt")
    asked = asyncio.create_task(insert(tasks))
    await eventually_async(lambda: proxy.faults == 1, interval=0)
    proxy.freeze()
    direct = PostgresStore(postgres_url)
    await direct.open()

    async def all_there() -> bool:  # the server may still be at it when the line is gone
        return None not in await direct.get([task.id for task in tasks])

    await eventually_async(all_there)
    claims = await claim(direct, number, names=["doubt"])
    assert {each.id for each in claims} == {task.id for task in tasks}
    await apply(direct, *map(completed, claims))
    await direct.delete([(each.id, each.version + 1) for each in claims])
    proxy.thaw()
    assert [(each.id, each.created) for each in await asked] == [(task.id, True) for task in tasks]
    assert await direct.get([task.id for task in tasks]) == [None] * number
    await direct.close()
