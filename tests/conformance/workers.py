"""Workers: known by their heartbeats, until long after they are gone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

from tasklib.core.published import PublishedType
from tasklib.stores.protocol import Store
from tasklib.stores.values import Drain
from tests.conformance.audited import ENTRY
from tests.conformance.builders import WORKER_A, WORKER_B, OpenStore, claim_one, heartbeat_of, submit


class Workers:
    async def test_a_heartbeat_makes_a_worker_known(self, store: Store) -> None:
        assert await store.workers() == []
        before = await store.now()
        await store.heartbeat(heartbeat_of(WORKER_A, names=["a", "naïve ✓"], concurrency=8, running=3))
        after = await store.now()
        [worker] = await store.workers()
        assert (worker.id, worker.hostname, worker.pid) == (WORKER_A, "host", 4711)
        assert (sorted(worker.names), worker.concurrency, worker.running) == (["a", "naïve ✓"], 8, 3)
        assert before <= worker.started_at <= after
        rounding = timedelta(milliseconds=5)  # it is kept by the clock of leases and shown by the other
        assert before - rounding <= worker.seen_at <= after + rounding
        assert worker.stopped_at is None
        assert 0 <= worker.seconds_since_seen < 20

    async def test_each_heartbeat_tells_the_latest(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A, names=["a"], running=0))
        [first] = await store.workers()
        store.clock_offset += 10
        await store.heartbeat(heartbeat_of(WORKER_A, names=["a", "b"], running=2))
        [second] = await store.workers()
        assert (second.started_at, second.running, sorted(second.names)) == (first.started_at, 2, ["a", "b"])
        assert 9.99 <= (second.seen_at - first.seen_at).total_seconds() < 30

    async def test_a_heartbeat_tells_the_queues_of_its_types(self, store: Store) -> None:
        queues = {"b": "mail", "naïve ✓": 'of "things" ✓'}
        await store.heartbeat(replace(heartbeat_of(WORKER_A, names=["a", "b", "naïve ✓"]), queues=queues))
        [worker] = await store.workers()
        assert (sorted(worker.names), worker.queues) == (["a", "b", "naïve ✓"], queues)
        await store.heartbeat(heartbeat_of(WORKER_A, names=["a"]))
        [worker] = await store.workers()
        assert (worker.names, worker.queues) == (("a",), {})

    async def test_silence_is_measured_by_the_stores_clock(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        store.clock_offset += 45
        [worker] = await store.workers()
        assert 45 <= worker.seconds_since_seen < 65

    async def test_a_farewell_is_remembered(self, store: Store, open_store: OpenStore) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await store.heartbeat(heartbeat_of(WORKER_B))
        other = await open_store()
        await other.deregister_worker(WORKER_A)
        stopped = {worker.id: worker.stopped_at is not None for worker in await store.workers()}
        assert stopped == {WORKER_A: True, WORKER_B: False}

    async def test_a_farewell_of_a_stranger_is_no_error(self, store: Store) -> None:
        await store.deregister_worker("nobody")
        assert [worker.id for worker in await store.workers()] == []

    async def test_those_long_gone_are_forgotten(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await store.heartbeat(heartbeat_of("stopped"))
        await store.deregister_worker("stopped")
        await store.compact_stats()
        assert WORKER_A in {worker.id for worker in await store.workers()}
        store.clock_offset += 400 * 86400
        await store.heartbeat(heartbeat_of(WORKER_B))
        await store.compact_stats()
        assert [worker.id for worker in await store.workers()] == [WORKER_B]

    async def test_one_that_stopped_is_remembered_for_a_day(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of("stopped"))
        await store.deregister_worker("stopped")
        for hours, known in ((23, True), (25, False)):
            store.clock_offset = hours * 3600
            await store.compact_stats()
            assert [worker.id for worker in await store.workers()] == ["stopped"] * known

    async def test_one_that_holds_something_is_not_forgotten(self, store: Store) -> None:
        """Its silence is how the janitor knows, long before the lease ends."""
        await store.heartbeat(heartbeat_of(WORKER_A))
        task_id = await submit(store)
        await claim_one(store, worker=WORKER_A, lease=400 * 86400)
        store.clock_offset += 3 * 86400
        await store.compact_stats()
        assert [task.id for task in await store.lost_leases(30, 10)] == [task_id]

    async def test_a_worker_is_told_that_it_was_asked_to_drain(self, store: Store, open_store: OpenStore) -> None:
        assert await store.heartbeat(heartbeat_of(WORKER_A)) is None
        other = await open_store()
        before = await store.now()
        assert await other.request_drain(WORKER_A, "ada ✓", audit=[ENTRY]) is True
        after = await store.now()
        assert await other.request_drain(WORKER_A, "bob", audit=[ENTRY]) is False, "once is enough"
        assert await store.heartbeat(heartbeat_of(WORKER_B)) is None
        told: Drain | None = None
        for _ in range(2):
            told = await store.heartbeat(heartbeat_of(WORKER_A))
            assert told is not None
            assert (told.by, before <= told.at <= after) == ("ada ✓", True)
        assert {each.id: each.drain for each in await store.workers()} == {WORKER_A: told, WORKER_B: None}
        await store.deregister_worker(WORKER_B)
        for gone in (WORKER_B, "nobody"):
            assert await store.request_drain(gone, "ada", audit=[ENTRY]) is False
        assert len(await store.list_audit()) == 1

    async def test_many_may_beat_at_once(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, await open_store()]
        await asyncio.gather(*(stores[turn % 2].heartbeat(heartbeat_of(f"worker-{turn % 5}")) for turn in range(20)))
        assert {worker.id for worker in await store.workers()} == {f"worker-{number}" for number in range(5)}


class PublishedTypes:
    async def test_what_is_published_comes_back_by_name(self, store: Store, open_store: OpenStore) -> None:
        assert await store.published() == []
        types = [
            PublishedType("naïve ✓.mail", '{"max_retries":7,"tags":{"team":"✓"}}', '{"type":"object"}'),
            PublishedType("bare", "{}", None),
        ]
        await store.publish(types)
        found = await (await open_store()).published()
        assert [(each.name, _value(each.options), _value(each.schema)) for each in found] == [
            ("bare", {}, None),
            ("naïve ✓.mail", {"max_retries": 7, "tags": {"team": "✓"}}, {"type": "object"}),
        ]

    async def test_who_publishes_last_is_believed(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        await store.publish([PublishedType("a", '{"priority":1}', "{}"), PublishedType("b", "{}", None)])
        await other.publish([PublishedType("a", '{"priority":2}', None)])
        await other.publish([])
        found = {each.name: (_value(each.options), _value(each.schema)) for each in await store.published()}
        assert found == {"a": ({"priority": 2}, None), "b": ({}, None)}

    async def test_many_may_publish_at_once(self, store: Store, open_store: OpenStore) -> None:
        others = [await open_store() for _ in range(4)]
        types = [PublishedType(f"type {number}", "{}", "{}") for number in range(20)]
        publishing = [each.publish(types if place % 2 else types[::-1]) for place, each in enumerate(others)]
        await asyncio.gather(*publishing)
        assert len(await store.published()) == 20


def _value(text: str | None) -> object:
    return None if text is None else json.loads(text)
