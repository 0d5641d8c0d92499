"""Keys and records: what people read in the bucket and write by hand, and what a submit that breaks off leaves."""

import asyncio
import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from tasklib.core.decide import WriteResult
from tasklib.stores.nats import NatsStore, keys
from tasklib.stores.nats.clock import written
from tasklib.stores.nats.kv import Entry, Write
from tasklib.stores.nats.record import decode, new_record
from tasklib.stores.values import Filter, Inserted
from tests.conformance.builders import WORK, apply, claim, claim_one, completed, fetch, new_task, next_id, submit
from tests.waiting import eventually_async, turns


def test_keys_stay_literal_where_they_can():
    assert keys.idem("order-123_process") == "tasks.idem.order-123_process"


def test_no_two_texts_share_a_key(rng: random.Random):
    odd = ["", ".", "a.b", "*", ">", " ", "=", "=YQ", "é", "名前", "a\nb", "A", "a" * 255, "é" * 127]
    odd += ["".join(rng.choices("ab.=*>-_ é", k=rng.randrange(1, 9))) for _ in range(300)]
    tokens = {text: keys.token_of(text) for text in odd}
    assert len(set(tokens.values())) == len(tokens)
    for text, token in tokens.items():
        assert keys.text_of(token) == text
        assert not set(token) & set(" .*>\n")


async def test_people_read_a_task_as_json(store: NatsStore, kv: Any):
    task_id = await submit(store, payload={"a": [1, "line\nbreak"]}, tags={"t": 1}, key="order-1")
    record = json.loads((await kv.get(f"tasks.task.{task_id}")).value)
    assert (record["id"], record["state"], record["kwargs"]) == (str(task_id), "pending", {"a": [1, "line\nbreak"]})
    assert json.loads((await kv.get("tasks.idem.order-1")).value)["id"] == str(task_id)


async def test_a_record_written_by_hand_is_found_and_run(store: NatsStore, kv: Any):
    assert await claim(store) == []  # the index is there before the task
    task_id = next_id()
    now = written(await store.now())
    record = {"id": str(task_id), "name": WORK, "state": "pending", "created_at": now, "kwargs": {"n": 1}}
    await kv.put(f"tasks.task.{task_id}", json.dumps(record, indent=2).encode())
    [claimed] = await eventually_async(lambda: claim(store))
    assert (claimed.id, json.loads(claimed.kwargs)) == (task_id, {"n": 1})
    await apply(store, completed(claimed, 2))
    assert (await fetch(store, task_id)).result == {"value": 2}


async def test_what_is_no_record_harms_nobody(store: NatsStore, kv: Any):
    await claim(store)
    await kv.put(f"tasks.task.{next_id()}", b"not json")
    await kv.put("tasks.task.no-id", b"{}")
    task_id = await submit(store)
    assert [claimed.id for claimed in await claim(store, 5)] == [task_id]


def test_a_foreign_record_is_read_as_far_as_it_is_one():
    record = decode(b'{"id":"x","name":"n","state":"pending","extra":1}', 3)
    assert (record.head["name"], record.head["max_retries"], record.revision) == ("n", 3, 3)
    assert json.loads(record.encode())["extra"] == 1


# -- keys of submits --------------------------------------------------------------------------------------------------


async def test_a_key_without_its_task_gets_its_task(store: NatsStore):
    """The submitter was killed between the two writes."""
    lost = new_task(payload={"n": 1}, key="half")
    await store._kv.write([Write(keys.idem("half"), 0, new_record(lost, await store.now()).encode())])
    assert await store.get([lost.id]) == [None]
    assert await store.insert([new_task(payload={"n": 2}, key="half")]) == [Inserted(lost.id, False)]
    assert (await fetch(store, lost.id)).kwargs == {"n": 1}
    assert [claimed.id for claimed in await claim(store, 5)] == [lost.id]


async def test_whoever_looks_a_key_up_writes_its_task_too(store: NatsStore):
    lost = new_task(key="half")
    await store._kv.write([Write(keys.idem("half"), 0, new_record(lost, await store.now()).encode())])
    found = await store.get_by_key("half")
    assert found is not None
    assert found == await fetch(store, lost.id)


async def test_a_key_whose_task_was_deleted_by_hand_is_free(store: NatsStore, kv: Any):
    for alone in (True, False):
        task_id = await submit(store, key="k")
        await kv.delete(f"tasks.task.{task_id}")
        assert await store.get_by_key("k") is None
        fresh = new_task(key="k")
        others = [] if alone else [new_task()]
        assert (await store.insert([fresh, *others]))[0] == Inserted(fresh.id, True)
        found = await store.get_by_key("k")
        assert found is not None
        assert found.id == fresh.id
        await kv.delete(f"tasks.task.{fresh.id}")


async def test_a_key_is_not_taken_over_on_a_stale_read(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    """A replica that is behind may show a key without its task."""
    kept, _ = await store.insert([new_task(key="k"), new_task()])
    read, hidden = store._kv.read_all, 0

    async def stale(wanted: Iterable[str]) -> dict[str, Entry]:
        nonlocal hidden
        found = await read(wanted)
        if not hidden and keys.task(kept.id) in found:
            del found[keys.task(kept.id)]
            hidden += 1
        return found

    monkeypatch.setattr(store._kv, "read_all", stale)
    assert await store.insert([new_task(key="k")]) == [Inserted(kept.id, False)]
    assert hidden == 1


async def test_a_deleted_task_leaves_nothing_behind(store: NatsStore, kv: Any):
    await submit(store, key="k")
    await apply(store, completed(await claim_one(store)))
    [task] = (await store.page(Filter(), limit=5)).tasks
    assert await store.delete([(task.id, task.version)]) == [WriteResult.APPLIED]
    left = {key for key in await kv.keys() if key.startswith(("tasks.task.", "tasks.idem."))}
    assert left == set()


async def test_a_caller_that_goes_away_leaves_no_half_key(store: NatsStore):
    for steps in range(8):
        task = new_task(key=f"key-{steps}")
        writing = asyncio.create_task(store.insert([task]))
        await turns(steps)
        writing.cancel()
        await asyncio.wait([writing])
        await store._submits.close()  # what was under way has ended
        both = await store._kv.read([keys.idem(f"key-{steps}"), keys.task(task.id)])
        assert len(both) in (0, 2)
