"""A closed store says so at every verb, and does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tasklib.core.decide import Change
from tasklib.core.errors import StoreClosed
from tasklib.core.published import PublishedType
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest, ControlChange, Filter, Held, Token
from tests.conformance.builders import (
    WORKER_A,
    OpenStore,
    claim_one,
    completed,
    fetch,
    heartbeat_of,
    new_task,
    next_id,
    submit,
)

_CHANGE = Change(next_id(), 1, WORKER_A, None, TaskState.PENDING, 0, False)

VERBS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "now": lambda store: store.now(),
    "insert": lambda store: store.insert([new_task()]),
    "restore": lambda store: store.restore([]),
    "claim": lambda store: store.claim(ClaimRequest(worker_id=WORKER_A, names=["work"], slots=1)),
    "held": lambda store: store.claims_of_worker(WORKER_A),
    "extend": lambda store: store.extend(WORKER_A, [Held(next_id(), 1)], 10),
    "settle": lambda store: store.settle([_CHANGE]),
    "beat": lambda store: store.heartbeat(heartbeat_of(WORKER_A)),
    "farewell": lambda store: store.deregister_worker(WORKER_A),
    "lost_leases": lambda store: store.lost_leases(30, 10),
    "request_cancel": lambda store: store.request_cancel([next_id()]),
    "delete": lambda store: store.delete([(next_id(), 1)]),
    "prune": lambda store: store.prune(["completed"], 1, 10),
    "sample": lambda store: store.sample_backlog(),
    "tidy": lambda store: store.compact_stats(),
    "get": lambda store: store.get([next_id()]),
    "get_by_key": lambda store: store.get_by_key("key"),
    "page": lambda store: store.page(Filter(), limit=1),
    "count": lambda store: store.count(Filter(), 1),
    "stats": lambda store: store.stats(),
    "series": lambda store: store.series(60),
    "ages": lambda store: store.backlog_history(60),
    "failures": lambda store: store.latest_failures(None, 10),
    "versions": lambda store: store.versions(),
    "workers": lambda store: store.workers(),
    "publish": lambda store: store.publish([PublishedType("work", "{}", None)]),
    "published": lambda store: store.published(),
    "controls": lambda store: store.controls(),
    "control": lambda store: store.control(ControlChange(paused=True)),
    "add_token": lambda store: store.add_token(Token(id="t", label="t", role="admin", digest="0")),
    "tokens": lambda store: store.tokens(),
    "revoke_token": lambda store: store.revoke_token("t"),
    "noted": lambda store: store.list_audit(),
    "watch": lambda store: anext(store.watch(next_id())),
}


class Closing:
    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
    async def test_every_verb_of_a_closed_store_raises(
        self, store: Store, open_store: OpenStore, verb: Callable[[Store], Awaitable[object]]
    ) -> None:
        other = await open_store()
        await other.close()
        with pytest.raises(StoreClosed):
            await verb(other)
        assert (await store.controls()).get("") is None, "and nothing was done"
        assert (await store.count(Filter(), 10)).value == 0

    async def test_a_closed_store_cannot_be_listened_to(self, store: Store) -> None:
        await store.close()
        with pytest.raises(StoreClosed):
            store.listen(lambda _: None)

    async def test_closing_twice_is_fine(self, store: Store) -> None:
        await store.close()
        await store.close()

    async def test_stopping_to_listen_after_the_close_is_fine(self, store: Store) -> None:
        stop = store.listen(lambda _: None)
        await store.close()
        stop()

    async def test_a_watch_ends_with_its_store(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        watch = other.watch(await submit(store))
        assert await anext(watch) is not None
        waiting = asyncio.ensure_future(anext(watch))
        await other.close()
        with pytest.raises((StoreClosed, StopAsyncIteration)):
            await asyncio.wait_for(waiting, 20)

    async def test_closing_one_store_leaves_the_others_alone(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        task_id = await submit(other, payload=1)
        running = await claim_one(other)
        await other.close()
        await store.settle([completed(running, 2)])
        assert (await fetch(store, task_id)).result == {"value": 2}

    async def test_what_was_submitted_outlasts_its_store(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        ids = [entry.id for entry in await other.insert([new_task() for _ in range(20)])]
        await other.close()
        assert all(await store.get(ids))
