"""Tasks that wait for tasks: how they are linked, and when they are released."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import InvalidOption, TaskConflict, TaskNotDue
from tasklib.core.flows import FLOW_FEEDS_LIMIT, NEVER, After, On
from tasklib.core.task import NewTask, Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    WORK,
    WORKER_B,
    alike_tasks,
    apply,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    look,
    new_task,
    settle,
    submit,
)


def waiting(*parents: NewTask | UUID, on: On = "success", name: str = WORK, **options: Any) -> NewTask:
    """A new task that waits for these."""
    ids = tuple(parent.id if isinstance(parent, NewTask) else parent for parent in parents)
    return new_task(name, **options)._replace(after=After(ids, on))


async def states(store: Store, *tasks: NewTask) -> list[str]:
    return [(await fetch(store, task.id)).state for task in tasks]


async def run(store: Store, *tasks: NewTask, how: Any = completed) -> None:
    """All of these are due, and nothing else is; they end at once, in one batch."""
    claims = await claim(store, len(tasks) + 1)
    assert {each.id for each in claims} == {task.id for task in tasks}
    await apply(store, *(how(each) for each in claims))


class Flows:
    async def test_a_chain_runs_one_after_the_other(self, store: Store):
        first = new_task()
        second = waiting(first)
        third = waiting(second)
        assert all(each.created for each in await store.insert([first, second, third]))
        found = await fetch(store, second.id)
        assert (found.state, found.waits, found.scheduled_at) == ("pending", 1, NEVER)
        assert found.after == {"on": "success", "parents": [str(first.id)]}
        for task in (first, second, third):
            await run(store, task)
        found = await fetch(store, third.id)
        assert (found.state, found.waits) == ("completed", 0)
        assert found.scheduled_at < NEVER
        assert (await look(store)).next_due_in is None

    async def test_what_waits_is_not_due_whatever_is_asked(self, store: Store):
        first = new_task()
        second = waiting(first)
        await store.insert([first, second])
        found = await fetch(store, second.id)
        assert await store.claim_by_id(second.id, found.version, WORKER_B, 60) is None
        with pytest.raises(TaskNotDue, match="waits for 1 tasks"):
            decide.run_now(found, await store.now())
        assert (await store.count(Filter(not_due=True), 10)).value == 0, "no mass action runs it now"
        await claim_one(store)
        claimed = await look(store)
        assert (claimed.claims, claimed.next_due_in) == ([], None)
        figures = (await store.stats())[WORK]
        assert (figures.pending, figures.oldest_due_seconds) == (1, None)

    async def test_a_fan_in_waits_for_all_and_a_fan_out_releases_all(self, store: Store):
        head = new_task()
        middle = [waiting(head) for _ in range(5)]
        last = waiting(*middle, head)
        await store.insert([head, *middle, last])
        assert (await fetch(store, last.id)).waits == 6
        await run(store, head)
        claims = await claim(store, 10)
        assert {each.id for each in claims} == {task.id for task in middle}
        await apply(store, *map(completed, claims[:3]))
        await apply(store, completed(claims[3]))
        assert (await fetch(store, last.id)).waits == 1
        assert await claim(store) == []
        await apply(store, completed(claims[4]))
        await run(store, last)

    async def test_its_own_delay_counts_from_the_release(self, store: Store):
        first = new_task()
        later, at = waiting(first, delay_seconds=60), await store.now() + timedelta(hours=1)
        dated = waiting(first, run_at=at)
        await store.insert([first, later, dated])
        store.clock_offset += 600
        await run(store, first)
        assert await claim(store) == []
        due = (await fetch(store, later.id)).scheduled_at - await store.now()
        assert timedelta(seconds=50) < due <= timedelta(seconds=60)
        assert abs((await fetch(store, dated.id)).scheduled_at - at) < timedelta(milliseconds=2)
        store.clock_offset += 61
        await run(store, later)
        store.clock_offset += 3600
        await run(store, dated)

    async def test_a_claim_says_what_it_is_in_a_flow(self, store: Store):
        first = new_task()
        first = first._replace(flow_id=first.id, flow_name="import 42")
        second = waiting(first)._replace(flow_id=first.id)
        plain = new_task("plain")
        await store.insert([first, second])
        await store.insert([plain])
        one = await claim_one(store)
        assert one.feeds
        assert one.flow is not None
        assert "import 42" in one.flow
        assert str(first.id) in one.flow
        await apply(store, completed(one, 7))
        two = await claim_one(store)
        assert two.flow is not None
        assert not two.feeds
        assert (await claim_one(store, "plain")).flow is None
        assert (await fetch(store, second.id)).flow_id == first.id
        found = await store.page(Filter(flow_id=first.id), limit=10)
        assert [task.id for task in found.tasks] == [second.id, first.id]

    async def test_a_link_to_what_is_there(self, store: Store):
        """Waiting, running and over: what is over counts at once."""
        over = await submit(store)
        await apply(store, completed(await claim_one(store)))
        running = await submit(store)
        claimed = await claim_one(store)
        assert not claimed.feeds
        pending = await submit(store, "other")
        child = waiting(over, running, pending)
        at_once = waiting(over)
        await store.insert([child, at_once])
        assert (await fetch(store, child.id)).waits == 2
        await run(store, at_once)
        await apply(store, completed(claimed))  # it does not know of the link
        assert (await fetch(store, child.id)).waits == 1
        await apply(store, completed(await claim_one(store, "other")))
        await run(store, child)

    async def test_on_end_runs_whatever_became_of_it(self, store: Store):
        first, second, third = new_task(), new_task(), new_task()
        child = waiting(first, second, third, on="end")
        await store.insert([first, second, third, child])
        one, two, three = await claim(store, 4)
        await apply(store, completed(one), failed(two, final=True))
        await store.request_cancel([three.id])
        await apply(store, failed(three))
        assert await states(store, first, second, third) == ["completed", "failed", "cancelled"]
        await run(store, child)

    async def test_a_retry_to_come_is_no_end(self, store: Store):
        first = new_task()
        child = waiting(first, on="end")
        await store.insert([first, child])
        await apply(store, failed(await claim_one(store)))
        assert (await fetch(store, child.id)).waits == 1
        await run(store, first)
        await run(store, child)

    async def test_a_parent_that_ran_twice_releases_once(self, store: Store):
        first, second = new_task(), new_task()
        child = waiting(first, second)
        await store.insert([first, second, child])
        [old] = await claim(store, 1, lease=0.001)
        store.clock_offset += 60
        for task in await store.lost_leases(30, 10):
            await apply(store, decide.expire(task, "lost"))
        again = {each.id: each for each in await claim(store, 3, worker=WORKER_B)}
        assert await settle(store, completed(again[old.id])) is WriteResult.APPLIED
        assert await settle(store, completed(old)) is WriteResult.STALE
        assert await settle(store, completed(again[old.id])) is WriteResult.DUPLICATE
        assert (await fetch(store, child.id)).waits == 1

    async def test_a_key_that_is_taken_links_nothing(self, store: Store):
        there = await submit(store, key="k")
        parent = new_task()
        again = waiting(parent, key="k")
        child = waiting(again)
        inserted = await store.insert([parent, again, child])
        assert [(each.id, each.created) for each in inserted] == [
            (parent.id, True),
            (there, False),
            (child.id, True),
        ]
        assert (await fetch(store, there)).waits == 0
        assert (await fetch(store, child.id)).after == {"on": "success", "parents": [str(there)]}
        claims = await claim(store, 3)
        assert {each.id for each in claims} == {there, parent.id}
        await apply(store, *map(completed, claims))
        await run(store, child)

    async def test_a_key_that_is_free_is_linked(self, store: Store):
        parent = new_task(key="p")
        child = waiting(parent, key="c", delay_seconds=60)
        await store.insert([parent, child])
        assert (await fetch(store, child.id)).scheduled_at == NEVER
        await run(store, parent)
        store.clock_offset += 61
        await run(store, child)

    async def test_the_key_of_a_flow_is_that_of_its_first_task(self, store: Store):
        """All or none: what is there answers for each of its tasks."""

        def made() -> list[NewTask]:
            first = new_task(key="flow 1")
            first = first._replace(flow_id=first.id, flow_name="f")
            return [first, waiting(first)._replace(flow_id=first.id), new_task()._replace(flow_id=first.id)]

        there = await store.insert(made())
        again = await store.insert(made())
        assert [(each.id, each.created) for each in again] == [(each.id, False) for each in there]
        assert (await store.count(Filter(), 10)).value == 3

    async def test_what_is_not_there_cannot_be_waited_for(self, store: Store):
        missing = new_task()
        with pytest.raises(InvalidOption, match=str(missing.id)) as error:
            await store.insert([new_task(), waiting(missing)])
        assert error.value.field == "after"
        first = new_task()
        second = waiting(first)
        with pytest.raises(InvalidOption, match="wait for each other"):
            await store.insert([first._replace(after=After((second.id,))), second])
        assert (await store.count(Filter(), 10)).value == 0

    async def test_so_many_may_wait_for_one(self, store: Store):
        if store.traits.engine == "nats":
            pytest.skip("tests/stores/nats/test_flows.py shows its limits")
        parent = await submit(store)
        batch = alike_tasks(FLOW_FEEDS_LIMIT)
        batch.first = batch.first._replace(after=After((parent,)))
        assert len(await store.insert(batch)) == FLOW_FEEDS_LIMIT
        with pytest.raises(InvalidOption, match=r"10001 tasks would wait for task .*, at most 10000 can"):
            await store.insert([waiting(parent)])
        assert (await fetch(store, batch[-1].id)).waits == 1
        await apply(store, completed(await claim_one(store)))
        assert len(await claim(store, FLOW_FEEDS_LIMIT + 1)) == FLOW_FEEDS_LIMIT

    async def test_before_adds_to_what_is_awaited(self, store: Store):
        first = new_task()
        total = waiting(first)
        await store.insert([first, total])
        claimed = await claim_one(store)
        extra = new_task()._replace(before=(total.id,))
        await store.insert([extra])
        found: Task = await fetch(store, total.id)
        assert found.waits == 2
        assert found.after == {"on": "success", "parents": [str(first.id), str(extra.id)]}
        await apply(store, completed(claimed))
        await run(store, extra)
        with pytest.raises(TaskConflict, match="released already"):
            await store.insert([new_task()._replace(before=(total.id,))])
        await run(store, total)

    async def test_a_link_that_is_said_from_both_sides_is_one(self, store: Store):
        total = new_task()
        first, second = (new_task()._replace(before=(total.id,)) for _ in range(2))
        await store.insert([first, second, waiting(first)._replace(id=total.id)])
        found = await fetch(store, total.id)
        assert (found.waits, (found.after or {})["parents"]) == (2, [str(first.id), str(second.id)])
        await run(store, first, second)
        await run(store, total)

    async def test_before_cannot_make_a_circle(self, store: Store):
        first = new_task()
        second = waiting(first)
        third = waiting(second, on="end")
        await store.insert([first, second, third])
        with pytest.raises(InvalidOption, match="cannot wait for what waits for it"):
            await store.insert([waiting(third)._replace(before=(second.id,))])
        assert (await store.count(Filter(), 10)).value == 3
