"""Tasks that wait for tasks, when two processes move one flow at once: on all engines, again and again."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tasklib.core import decide
from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store
from tests.conformance.builders import WORKER_A, WORKER_B, apply, claim, completed, failed, fetch, new_task
from tests.conformance.flows import states, waiting

AT_ONCE = 300
"""So many tasks are stored and claimed in one call, whatever the engine."""


@pytest.fixture(params=["sqlite", "postgres", "nats"])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Store]]:
    """Two on one queue, with connections of their own, as two processes have them."""
    url = request.getfixturevalue(f"{request.param}_url")
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(2):
            store = make_store(Config(database_url=url))
            await store.open()
            stack.push_async_callback(store.close)
            opened.append(store)
        yield opened[0], opened[1]


def portions(store: Store, number: int) -> list[range]:
    """So many rounds; on NATS, where each takes several messages, a tenth of them unless `make model` asks for all."""
    if store.traits.engine == "nats" and "TASKLIB_MODEL_RACES" not in os.environ:
        number //= 10
    return [range(start, min(start + AT_ONCE, number)) for start in range(0, number, AT_ONCE)]


async def test_two_last_parents_that_settle_at_once(stores: tuple[Store, Store]):
    """A look at the parents would see the other one running, and strand the child."""
    store, other = stores
    for portion in portions(store, 1_000):
        pairs = [(new_task("one"), new_task("two")) for _ in portion]
        children = [waiting(*pair) for pair in pairs]
        for tasks in (*zip(*pairs, strict=True), children):
            await store.insert(list(tasks))
        ones = {each.id: each for each in await claim(store, len(pairs), names=["one"], worker=WORKER_A)}
        twos = {each.id: each for each in await claim(other, len(pairs), names=["two"], worker=WORKER_B)}
        for one, two in pairs:
            await asyncio.gather(apply(store, completed(ones[one.id])), apply(other, completed(twos[two.id])))
        released = await claim(store, len(pairs) + 1)
        assert {each.id for each in released} == {child.id for child in children}
        await apply(store, *map(completed, released))


async def test_a_cancel_that_meets_the_end_of_what_it_waits_for(stores: tuple[Store, Store]):
    """Both want the child and what waits for it. Whoever is first, it is cancelled, and no deadlock reaches anyone."""
    store, other = stores
    for portion in portions(store, 500):
        parents = [new_task("parent") for _ in portion]
        children = [waiting(parent) for parent in parents]
        last = [waiting(child, parent) for child, parent in zip(children, parents, strict=True)]
        for tasks in (parents, children, last):
            await store.insert(tasks)
        claims = {each.id: each for each in await claim(store, len(parents), names=["parent"])}
        for place, (parent, child) in enumerate(zip(parents, children, strict=True)):
            held, cancel = claims[parent.id], decide.cancel(await fetch(store, child.id))
            assert cancel is not None
            end = completed(held) if place % 2 else failed(held, final=True)
            await asyncio.gather(apply(store, end), other.settle([cancel]))
        assert set(await states(store, *children, *last)) == {"cancelled"}
        assert await claim(store) == []


async def test_a_link_that_meets_the_end_of_what_it_waits_for(stores: tuple[Store, Store]):
    """Whoever is first, the child is released at once, or cut off, by those two alone."""
    store, other = stores
    for portion in portions(store, 300):
        parents = [new_task("parent", max_retries=0) for _ in portion]
        await store.insert(parents)
        claims = {each.id: each for each in await claim(store, len(parents), names=["parent"])}
        children = [waiting(parent) for parent in parents]
        at_end = [waiting(parent, on="end") for parent in parents]
        for place, parent in enumerate(parents):
            held = claims[parent.id]
            end = completed(held) if place % 2 else failed(held, final=True)
            await asyncio.gather(apply(store, end), other.insert([children[place], at_end[place]]))
        expected = [*children[1::2], *at_end]
        assert {each.id for each in await claim(store, len(expected) + 1)} == {task.id for task in expected}
        assert set(await states(store, *children[::2])) == {"cancelled"}
