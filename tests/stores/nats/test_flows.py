"""Flows in a bucket: what is its own, beside what all stores show."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import InvalidOption, Unsupported
from tasklib.core.flows import After
from tasklib.core.task import NewTask
from tasklib.stores.nats import NatsStore
from tests.conformance.builders import claim, completed, failed, fetch, new_task


def _flow(size: int) -> list[NewTask]:
    """So many tasks; the last waits for all others."""
    tasks = [new_task(max_retries=0) for _ in range(size)]
    last = tasks[-1]._replace(after=After(tuple(task.id for task in tasks[:-1])))
    return [task._replace(flow_id=tasks[0].id) for task in (*tasks[:-1], last)]


async def test_a_flow_of_a_thousand_goes_in_and_a_larger_one_is_refused_by_name(store: NatsStore) -> None:
    whole = _flow(1000)
    assert len(await store.insert(whole)) == 1000
    assert (await fetch(store, whole[-1].id)).waits == 999
    [summary] = await store.flows(10)
    assert summary.counts == {"pending": 999, "waiting": 1}
    larger = _flow(1001)
    with pytest.raises(Unsupported, match="a flow has at most 1,000 tasks, got 1,001"):
        await store.insert(larger)
    assert await store.get([task.id for task in larger]) == [None] * 1001


async def test_ends_of_many_parents_at_once_release_their_child_once(store: NatsStore, nats_url: str) -> None:
    tasks = _flow(41)
    await store.insert(tasks)
    claims = await claim(store, 40)
    other = NatsStore(nats_url)
    await other.open()
    stores = [store, other]
    await asyncio.gather(*(stores[place % 2].settle([completed(each)]) for place, each in enumerate(claims)))
    [last] = await claim(store, 10)
    assert last.id == tasks[-1].id
    await other.close()


async def test_more_than_a_batch_holds_cannot_wait_for_one_task(store: NatsStore) -> None:
    parent = new_task()
    await store.insert([parent])
    children = [new_task()._replace(after=After((parent.id,))) for _ in range(901)]
    with pytest.raises(InvalidOption, match="more than 900 tasks would wait"):
        await store.insert(children)
    await store.insert(children[:900])
    [held] = await claim(store, 1)
    await store.settle([completed(held)])
    assert len(await claim(store, 1000)) == 900


async def test_what_a_dead_process_left_waiting_is_found(store: NatsStore, kv: object) -> None:
    tasks = _flow(3)
    await store.insert(tasks)
    claims = await claim(store, 2)
    # As if the record of the end had been written alone.
    for each in claims:
        await _forget_children(store, each.id)
    await store.settle([completed(each) for each in claims])
    assert not await claim(store, 1)
    assert (await store.release_stranded(100), await store.release_stranded(100)) == (1, 0)
    assert [each.id for each in await claim(store, 1)] == [tasks[-1].id]


async def test_a_chain_is_cut_off_and_revived_whole(store: NatsStore) -> None:
    tasks = [new_task(max_retries=0) for _ in range(500)]
    for place in range(1, 500):
        tasks[place] = tasks[place]._replace(after=After((tasks[place - 1].id,)))
    await store.insert(tasks)
    [head] = await claim(store, 10)
    await store.settle([failed(head)])
    cut = await store.get([task.id for task in tasks[1:]])
    assert {task and (task.state, task.waits) for task in cut} == {("cancelled", 1)}
    await store.settle([decide.retry_by_hand(await fetch(store, head.id))])
    revived = await store.get([task.id for task in tasks[1:]])
    assert {task and (task.state, task.waits) for task in revived} == {("pending", 1)}
    assert [each.id for each in await claim(store, 10)] == [head.id]


async def test_two_parents_that_are_retried_at_once_revive_their_child(store: NatsStore, nats_url: str) -> None:
    """Each sees the other as failed, unless the second has to look again."""
    other = NatsStore(nats_url)
    await other.open()
    for _ in range(20):
        one, two = new_task(max_retries=0), new_task(max_retries=0)
        child = new_task()._replace(after=After((one.id, two.id)))
        await store.insert([one, two, child])
        await store.settle([failed(each) for each in await claim(store, 2)])
        assert (await fetch(store, child.id)).state == "cancelled"
        first, second = [decide.retry_by_hand(await fetch(store, task.id)) for task in (one, two)]
        await asyncio.gather(store.settle([first]), other.settle([second]))
        found = await fetch(store, child.id)
        assert (found.state, found.waits) == ("pending", 2)
        await store.settle([completed(each) for each in await claim(store, 2)])
        assert [each.id for each in await claim(store, 2)] == [child.id]
    await other.close()


async def _forget_children(store: NatsStore, task_id: UUID) -> None:
    kv = store._kv
    from tasklib.stores.nats.claim import read_records, write_of

    record = (await read_records(kv, [task_id]))[task_id]
    await kv.write([write_of(record.changed(feeds=[]))])


@pytest.mark.parametrize(
    "edit",
    [
        {"after": [1]},
        {"after": {"parents": 7}},
        {"after": {"on": 5, "parents": ["x", 7], "delay": "soon"}},
        {"after": {"on": "success", "parents": None, "runAt": 5}},
        {"waits_for": "x"},
        {"waits_for": [7, "x"]},
        {"feeds": {"a": 1}},
        {"feeds": ["x", 7, str(UUID(int=7))]},
    ],
    ids=str,
)
async def test_a_record_that_somebody_edited_is_shown_and_what_is_beside_it_goes_on(
    store: NatsStore, kv: Any, edit: dict[str, Any]
) -> None:
    head = new_task(max_retries=0)
    odd, good, behind = (new_task()._replace(after=After((head.id,)), flow_id=head.id) for _ in range(3))
    behind = behind._replace(after=After((odd.id,)))
    await store.insert([head._replace(flow_id=head.id), odd, good, behind])
    key = f"tasks.task.{odd.id}"
    await kv.put(key, json.dumps({**json.loads((await kv.get(key)).value), **edit}).encode())
    assert (await fetch(store, odd.id)).state == "pending"
    assert len(await store.flow_graph(head.id, 10)) == 4
    assert (await store.feeds(head.id, 10)).number == 2
    await store.after_of(odd.id)
    assert (await store.feeds(odd.id, 10)).number <= 1
    await store.release_stranded(10)
    [held] = await claim(store, 1)
    assert await store.settle([failed(held)]) == [WriteResult.APPLIED]
    assert (await fetch(store, good.id)).state == "cancelled"
    await store.settle([decide.retry_by_hand(await fetch(store, head.id))])
    assert (await fetch(store, good.id)).state == "pending"
    [held] = [each for each in await claim(store, 10) if each.id == head.id]
    assert await store.settle([completed(held)]) == [WriteResult.APPLIED]
    assert good.id in {each.id for each in await claim(store, 10)}
