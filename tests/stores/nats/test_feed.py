"""What a store knows of its bucket: the feed that brings it changes, and what it keeps of them."""

import asyncio

import pytest
from nats.aio.msg import Msg

from tasklib.core.errors import StoreClosed
from tasklib.core.task import Claim
from tasklib.stores.nats import NatsStore, keys
from tasklib.stores.nats.feed import Feed
from tasklib.stores.values import ControlChange
from tests.conformance.builders import WORK, apply, claim, claim_one, completed, fetch, submit, submit_several
from tests.waiting import eventually_async


async def test_a_claim_knows_all_that_was_there_when_it_began(
    store: NatsStore, nats_url: str, monkeypatch: pytest.MonkeyPatch
):
    received, flowing = Feed._received, asyncio.Event()

    async def late(self: Feed, message: Msg) -> None:
        await flowing.wait()
        await received(self, message)

    async def claim_late() -> list[Claim]:
        """With a feed that is held up for a while."""
        claiming = asyncio.create_task(claim(other))
        done, _ = await asyncio.wait([claiming], timeout=0.1)
        assert not done, "it waits for the feed"
        flowing.set()
        return await claiming

    monkeypatch.setattr(Feed, "_received", late)
    other = NatsStore(nats_url)
    await other.open()
    flowing.set()
    assert await claim(other) == []
    flowing.clear()
    task_id = await submit(store)
    assert [claimed.id for claimed in await claim_late()] == [task_id]
    await submit(store)
    flowing.clear()
    await store.control(ControlChange(name=WORK, paused=True))
    assert await claim_late() == []
    await other.close()


async def test_a_claim_that_waits_ends_with_its_store(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    async def deaf(self: Feed, message: Msg) -> None:
        pass

    monkeypatch.setattr(Feed, "_received", deaf)
    await submit(store)
    claiming = asyncio.create_task(claim(store))
    await eventually_async(lambda: store._cache._goals)
    await store.close()
    with pytest.raises(StoreClosed):
        await claiming


async def test_a_change_that_got_lost_on_the_way_is_fetched_again(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    received, lost = Feed._received, 0

    async def forgetful(self: Feed, message: Msg) -> None:
        nonlocal lost
        if "Tasklib-Note" in (message.headers or {}) and not lost:
            lost += 1
            return
        await received(self, message)

    assert await claim(store) == []
    monkeypatch.setattr(Feed, "_received", forgetful)
    await store._cache._feed.stop()  # type: ignore[union-attr]
    store._cache._feed.start()  # type: ignore[union-attr]
    ids = [await submit(store) for _ in range(5)]
    assert [claimed.id for claimed in await claim(store, 10)] == ids
    assert lost == 1


# -- limits -----------------------------------------------------------------------------------------------------------


async def test_claims_under_a_limit_exclude_each_other(store: NatsStore):
    """Whoever counted what runs before another claimed must count again: the control's revision tells."""
    await store.control(ControlChange(name=WORK, concurrency=1))
    await submit_several(store, 2)
    before = (await store._kv.read([keys.control(WORK)]))[keys.control(WORK)]
    assert len(await claim(store, 2)) == 1
    after = (await store._kv.read([keys.control(WORK)]))[keys.control(WORK)]
    assert after.revision > before.revision


# -- memory -----------------------------------------------------------------------------------------------------------


async def test_the_leader_is_not_asked_in_the_midst_of_a_load(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    """Its answer would come behind all that is under way, which would pile up until then. A heartbeat means that all of
    it has come."""
    await submit(store)
    await store._cache.sync()
    feed = store._cache._feed
    assert feed is not None
    asked: list[int] = []

    async def has(first: int, last: int) -> bool:
        asked.append(first)
        return True

    monkeypatch.setattr(store._kv, "has", has)
    feed._anew, feed._behind = True, feed._told + 10
    flow = {"Status": "100", "Description": "FlowControl Request"}
    beat = {"Status": "100", "Description": "Idle Heartbeat", "Nats-Last-Consumer": str(feed._delivered)}
    await feed._received(Msg(store._kv.connection.client, headers=flow))
    assert not asked
    await feed._received(Msg(store._kv.connection.client, headers=beat))
    assert asked == [feed._told + 1]


async def test_a_store_that_only_submits_keeps_no_index(store: NatsStore):
    await submit_several(store, 10, key=None)
    await fetch(store, await submit(store, key="k"))
    assert store._cache._feed is None


async def test_a_worker_keeps_no_list_of_all_tasks(store: NatsStore):
    """It claims, looks after leases, samples the backlog and tidies: for none of that it needs what is finished."""
    await submit_several(store, 3)
    await apply(store, completed(await claim_one(store)))
    await store.lost_leases(30, 10)
    await store.sample_backlog()
    await store.compact_stats()
    assert len(await claim(store, slots=5)) == 2
    assert store._cache.all_tasks is None
