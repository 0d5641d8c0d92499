"""What failures and cancels make of those that wait, how an operator takes it back, and what is spared for them."""

import json
from typing import Any
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import TaskConflict
from tasklib.core.flows import NEVER, After
from tasklib.core.lifecycle import Phase
from tasklib.core.task import NewTask, Task
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    in_phase,
    new_task,
    submit_several,
)
from tests.conformance.flows import run, states, waiting

STATES = ["completed", "failed", "cancelled"]


def fail(claim: Any) -> Any:
    return failed(claim, final=True)


async def end_row(store: Store, task: NewTask) -> dict[str, Any]:
    """What is the same again when everything is taken back."""
    found = await fetch(store, task.id)
    return {name: getattr(found, name) for name in ("state", "waits", "after", "scheduled_at", "completed_at", "error")}


async def retry(store: Store, task: NewTask) -> None:
    await apply(store, decide.retry_by_hand(await fetch(store, task.id)))


class FlowEnds:
    async def test_a_failure_cuts_off_what_needs_its_success(self, store: Store):
        head = new_task("extract")
        second = waiting(head)
        third = waiting(second)
        aside = waiting(second, on="end")
        await store.insert([head, second, third, aside])
        await apply(store, fail(await claim_one(store, "extract")))
        assert await states(store, head, second, third, aside) == ["failed", "cancelled", "cancelled", "pending"]
        found = await fetch(store, second.id)
        assert found.error == f"DependencyFailed: task {head.id} (extract) failed"
        assert found.completed_at is not None
        assert found.version == 1
        assert (await fetch(store, third.id)).error == f"DependencyFailed: task {second.id} (work) was cancelled"
        figures = await store.stats()
        assert (figures["work"].cancelled, figures["work"].pending, figures["extract"].failed) == (2, 1, 1)
        await run(store, aside)

    async def test_the_end_of_a_waiting_task_is_told(self, store: Store):
        head = new_task()
        child = waiting(head)
        await store.insert([head, child])
        watching = store.watch(child.id)
        assert (await anext(watching)).state == "pending"  # type: ignore[union-attr]
        await run(store, head, how=fail)
        assert (await anext(watching)).state == "cancelled"  # type: ignore[union-attr]

    async def test_a_cancel_cuts_off_too(self, store: Store):
        """Of what waits for others, of what waits for its retry, and of what was asked to stop while it ran."""
        heads = [new_task(), new_task(), new_task()]
        children = [waiting(head) for head in heads]
        grandchild = waiting(children[0])
        await store.insert([*heads, *children, grandchild])
        await apply(store, cancelled(await fetch(store, children[0].id)))
        assert await states(store, heads[0], grandchild) == ["pending", "cancelled"]
        claims = {each.id: each for each in await claim(store, 3)}
        await apply(store, completed(claims[heads[0].id]), failed(claims[heads[1].id], delay=60))
        await apply(store, cancelled(await fetch(store, heads[1].id)))
        await store.request_cancel([heads[2].id])
        await apply(store, failed(claims[heads[2].id]))
        assert await states(store, *children) == ["cancelled"] * 3
        assert (await fetch(store, children[0].id)).error is None
        assert (
            await fetch(store, children[1].id)
        ).error == f"DependencyFailed: task {heads[1].id} (work) was cancelled"

    async def test_a_child_that_is_cancelled_with_its_parent_ends_as_it_was_told(self, store: Store):
        """It is not cut off: the parent's way back leaves it alone."""
        head = new_task()
        child = waiting(head)
        await store.insert([head, child])
        await apply(store, *[cancelled(await fetch(store, task.id)) for task in (head, child)])
        assert (await fetch(store, child.id)).error is None
        await apply(store, decide.revive(await fetch(store, head.id)))
        assert await states(store, head, child) == ["pending", "cancelled"]

    async def test_a_lost_worker_on_the_last_attempt_cuts_off(self, store: Store):
        head = new_task(max_retries=0)
        child = waiting(head)
        await store.insert([head, child])
        await claim(store, 1, lease=0.001)
        store.clock_offset += 60
        await apply(store, *(decide.expire(task, "lost") for task in await store.lost_leases(30, 10)))
        assert await states(store, head, child) == ["failed", "cancelled"]

    async def test_what_waits_for_one_that_has_failed_is_stored_cut_off(self, store: Store):
        gone = await in_phase(store, Phase.FAILED)
        stopped = await in_phase(store, Phase.CANCELLED)
        child = waiting(gone.id)
        grandchild, at_once = waiting(child), waiting(gone.id, stopped.id, on="end")
        other = waiting(stopped.id)
        await store.insert([child, grandchild, at_once, other])
        assert await states(store, child, grandchild, at_once, other) == [
            "cancelled",
            "cancelled",
            "pending",
            "cancelled",
        ]
        await run(store, at_once)
        await apply(store, decide.retry_by_hand(await fetch(store, gone.id)))
        assert await states(store, child, grandchild, other) == ["pending", "pending", "cancelled"]

    async def test_a_retry_is_the_exact_inverse(self, store: Store):
        """Three levels up, with children of every kind: what was cut off because of it waits again, and only that."""
        head, other = new_task("head"), new_task("other")
        one = waiting(head)
        two = waiting(one)
        three = waiting(two)
        two_parents = waiting(two, other)
        at_end = waiting(two, other, on="end")
        by_hand = waiting(two)
        released = waiting(one, on="end")
        tasks = [one, two, three, two_parents, at_end, by_hand, released]
        await store.insert([head, other, *tasks])
        await apply(store, cancelled(await fetch(store, by_hand.id)))
        before = [await end_row(store, task) for task in tasks]
        figures = await store.stats()
        await apply(store, fail(await claim_one(store, "head")))
        assert await states(store, *tasks) == [
            *["cancelled"] * 4,
            "pending",
            "cancelled",
            "pending",
        ]
        assert (await fetch(store, at_end.id)).waits == 1
        await run(store, released)
        await retry(store, head)
        after = [await end_row(store, task) for task in tasks]
        assert after[:-1] == before[:-1]
        assert (await fetch(store, released.id)).state == "completed"
        assert (await store.stats())["work"].cancelled == figures["work"].cancelled
        await apply(store, completed(await claim_one(store, "other")))
        await apply(store, completed(await claim_one(store, "head")))
        await run(store, one)
        await run(store, two)
        await run(store, three, two_parents, at_end)
        assert (await fetch(store, by_hand.id)).state == "cancelled"

    async def test_what_another_failure_holds_down_stays_down(self, store: Store):
        one, two = new_task("one"), new_task("two")
        child = waiting(one, two)
        await store.insert([one, two, child])
        await apply(store, fail(await claim_one(store, "one")))
        await apply(store, fail(await claim_one(store, "two")))
        await retry(store, one)
        found = await fetch(store, child.id)
        assert (found.state, found.error) == ("cancelled", f"DependencyFailed: task {two.id} (two) failed")
        with pytest.raises(TaskConflict, match=f"cut off by the end of task {two.id}"):
            decide.revive(found)
        await retry(store, two)
        assert await states(store, child) == ["pending"]
        for name in ("one", "two"):
            await apply(store, completed(await claim_one(store, name)))
        await run(store, child)

    async def test_a_revived_parent_takes_its_children_along(self, store: Store):
        head = new_task()
        child = waiting(head)
        grandchild = waiting(child)
        await store.insert([head, child, grandchild])
        before = [await end_row(store, task) for task in (child, grandchild)]
        await apply(store, cancelled(await fetch(store, head.id)))
        await apply(store, decide.revive(await fetch(store, head.id)))
        assert [await end_row(store, task) for task in (child, grandchild)] == before
        for task in (head, child, grandchild):
            await run(store, task)

    @pytest.mark.parametrize("child_first", [False, True])
    async def test_one_revived_with_a_parent_that_has_lost_another_ends_again(self, store: Store, child_first: bool):
        """For a moment it waits, and what waits for it was taken back with it."""
        first, second = new_task(), new_task()
        child, head = (first, second) if child_first else (second, first)
        lost, aside = new_task("lost"), new_task("aside")
        child = child._replace(after=After((head.id, lost.id)))
        needs, tries = waiting(child), waiting(child, aside, on="end")
        await store.insert([head, lost, aside, child, needs, tries])
        for task in (child, head):
            await apply(store, cancelled(await fetch(store, task.id)))
        await apply(store, fail(await claim_one(store, "lost")))
        assert await states(store, child, needs, tries) == ["cancelled", "cancelled", "pending"]
        await apply(store, *[decide.revive(await fetch(store, task.id)) for task in (head, child)])
        assert await states(store, head, child, needs, tries) == ["pending", "cancelled", "cancelled", "pending"]
        assert (await fetch(store, tries.id)).waits == 1
        assert (await fetch(store, child.id)).error == f"DependencyFailed: task {lost.id} (lost) failed"

    async def test_a_task_that_is_revived_waits_for_what_is_left(self, store: Store):
        """An operator cancelled it; what it waited for went on."""
        one, two, three = new_task("one"), new_task("two"), new_task("three")
        done, left, lost = waiting(one, delay_seconds=1), waiting(one, two), waiting(one, three)
        await store.insert([one, two, three, done, left, lost])
        for task in (done, left, lost):
            await apply(store, cancelled(await fetch(store, task.id)))
        await apply(store, completed(await claim_one(store, "one")))
        await apply(store, fail(await claim_one(store, "three")))
        store.clock_offset += 5
        for task in (done, left, lost):
            await apply(store, decide.revive(await fetch(store, task.id)))
        assert await states(store, done, left, lost) == ["pending", "pending", "cancelled"]
        assert (await fetch(store, left.id)).scheduled_at == NEVER
        await run(store, done)
        await apply(store, completed(await claim_one(store, "two")))
        await run(store, left)

    async def test_a_long_chain_whose_head_fails(self, store: Store):
        """And is retried: no recursion, and few statements."""
        length = 900 if store.traits.engine == "nats" else 5_000
        tasks = [new_task()]
        for _ in range(length):
            tasks.append(waiting(tasks[-1]))
        await store.insert(tasks)
        await run(store, tasks[0], how=fail)
        assert (await store.stats())["work"].cancelled == length
        await retry(store, tasks[0])
        assert (await store.stats())["work"].cancelled == 0
        await run(store, tasks[0])
        await run(store, tasks[1])
        assert await states(store, *tasks[1:4]) == ["completed", "pending", "pending"]

    async def test_many_parents_are_kept_beside_the_row(self, store: Store):
        if store.traits.engine == "nats":
            pytest.skip("it holds no more than 1,000 in one flow")
        parents = await submit_several(store, 2_500)
        child = new_task("child")._replace(
            after=After(tuple(parents), inputs=(("/a", parents[0]), ("/b", parents[-1])))
        )
        await store.insert([child])
        found = await fetch(store, child.id)
        assert (found.waits, found.after) == (2_500, {"on": "success", "parents": 2_500})
        assert await store.after_of(child.id) == child.after
        extra = new_task("extra")._replace(before=(child.id,))
        await store.insert([extra])
        after = await store.after_of(child.id)
        assert after is not None
        assert after.parents == (*parents, extra.id)
        claims = await claim(store, 2_500)
        await apply(store, *map(completed, claims[1:]))
        await apply(store, fail(claims[0]))
        assert await states(store, child) == ["cancelled"]
        await apply(store, decide.retry_by_hand(await fetch(store, claims[0].id)))
        assert (await fetch(store, child.id)).waits == 2
        await apply(store, completed(await claim_one(store, "extra")))
        await apply(store, completed(await claim_one(store)))
        await claim_one(store, "child")

    async def test_what_is_awaited_is_not_deleted(self, store: Store):
        head = new_task()
        child = waiting(head)
        await store.insert([head, child])
        await run(store, head)
        plain = await in_phase(store, Phase.COMPLETED)
        done = await fetch(store, head.id)
        guards = [(done.id, done.version - 1), (done.id, done.version), (plain.id, plain.version)]
        expected = [WriteResult.STALE, WriteResult.AWAITED, WriteResult.APPLIED]
        assert await store.delete(guards) == expected
        store.clock_offset += 1_000
        assert await store.prune(STATES, 500, 100) == 0
        assert (await store.feeds(done.id, 10))[:] == ([child.id], 1, 1)
        await run(store, child)
        assert (await store.feeds(done.id, 10))[:] == ([child.id], 1, 0)
        assert await store.delete([(done.id, done.version)]) == [WriteResult.APPLIED]

    async def test_pruning_takes_what_was_awaited(self, store: Store):
        head = new_task()
        child = waiting(head)
        await store.insert([head, child])
        await run(store, head)
        await run(store, child)
        store.clock_offset += 1_000
        assert await store.prune(STATES, 500, 100) == 2

    async def test_the_net_leaves_alone_what_still_waits_for_something(self, store: Store):
        first, second = new_task(), new_task()
        child = waiting(first)
        waits = waiting(child, second)
        await store.insert([first, second, child, waits])
        assert await store.release_stranded(100) == 0
        await run(store, first, second)
        assert await store.release_stranded(100) == 0
        assert await states(store, child, waits) == ["pending", "pending"]
        await run(store, child)

    async def test_flows_are_listed_and_drawn(self, store: Store):
        ids: list[UUID] = []
        for number in range(3):
            first = new_task(f"first-{number}")
            first = first._replace(flow_id=first.id, flow_name=f"flow {number}")
            second = waiting(first, name="second")._replace(flow_id=first.id)
            third = waiting(second, on="end", name="third")._replace(flow_id=first.id)
            await store.insert([first, second, third])
            ids.append(first.id)
        await apply(store, completed(await claim_one(store, "first-0"), {"rows": 7}))
        await apply(store, failed(await claim_one(store, "first-1"), delay=60))
        found = await store.flows(2)
        assert [(each.id, each.name) for each in found] == [(ids[2], "flow 2"), (ids[1], "flow 1")]
        assert found[1].counts == {"retrying": 1, "waiting": 2}
        [last] = await store.flows(10, ids[1])
        assert (last.id, last.counts) == (ids[0], {"completed": 1, "pending": 1, "waiting": 1})
        graph = await store.flow_graph(ids[0], 10)
        assert [(each.name, each.state, each.over, each.waits) for each in graph] == [
            (f"first-{0}", "completed", True, 0),
            ("second", "pending", False, 0),
            ("third", "pending", False, 1),
        ]
        assert graph[1].parents == (ids[0],)
        assert graph[1].feeds == (graph[2].id,)
        assert len(await store.flow_graph(ids[0], 2)) == 2
        [parent] = await store.parents([ids[0]])
        assert parent._replace(value=None) == (ids[0], "first-0", "completed", True, None, None)
        assert json.loads(parent.value or "") == {"rows": 7}
        [other] = await store.parents([ids[1]])
        assert (other.over, other.value, other.error) == (False, None, "boom")
        assert await store.after_of(ids[0]) is None
        assert await store.after_of(graph[2].id) == After((graph[1].id,), "end")

    async def test_what_is_spared_was_asked_for(self, store: Store):
        """A task whose children are all over, or gone, is deleted as ever."""
        head = new_task()
        child = waiting(head)
        await store.insert([head, child])
        await run(store, head)
        await run(store, child)
        rows: list[Task] = [await fetch(store, task.id) for task in (child, head)]
        for row in rows:
            assert await store.delete([(row.id, row.version)]) == [WriteResult.APPLIED]
