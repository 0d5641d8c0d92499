"""Flows on every engine against one model: links, ends and operators in any order, compared after every step. A child
starts after all it waits for, once; what is cut off and what is revived is so whole; at the end nothing waits."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar
from uuid import UUID

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tasklib.core import decide
from tasklib.core.decide import Change
from tasklib.core.flows import After, On
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import apply, claim, completed, failed, fetch, new_task, released
from tests.conftest import SEED
from tests.model.benches import Bench, Benches, settings_for
from tests.model.test_flows import Model, Node

EXAMPLES = int(os.environ.get("TASKLIB_MODEL_EXAMPLES", "4"))
STEPS = int(os.environ.get("TASKLIB_MODEL_STEPS", "25"))

ages = st.integers(0, 12)
vias = st.integers(0, 1)
ons: st.SearchStrategy[On] = st.sampled_from(["success", "success", "end"])
links = st.lists(st.tuples(st.lists(ages, max_size=3), ons), min_size=1, max_size=4)
ENDS: dict[str, Callable[[Claim], Change]] = {"completed": completed, "failed": failed, "pending": released}
"""By the state that they lead to."""
ends = st.lists(st.sampled_from(["completed", "completed", "completed", "failed", "pending"]), min_size=1, max_size=6)
WAYS: dict[str, tuple[Callable[[Task], Change | None], str]] = {
    "cancel": (decide.cancel, "cancelled"),
    "retry": (decide.retry_by_hand, "pending"),
    "revive": (decide.revive, "pending"),
}


class FlowSteps(RuleBasedStateMachine):
    benches: ClassVar[Benches]
    happened: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model({})
        self.benches.open()

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            self.benches.close()

    def each_once(self) -> None:
        """What a few random steps might miss: one is put before a task that waits; both that it waits for fail; another
        comes too late for that; then both are retried."""
        self.submit([([], "success"), ([0], "success")], whole=True, via=0)
        self.put_before(0, via=1)
        self.work(["failed"], via=0)
        self.submit([([0], "success")], whole=False, via=1)
        self.all_agree()
        for _ in range(2):
            self.operate("retry", 0, via=0)
            self.all_agree()
        self.teardown()

    # -- steps --------------------------------------------------------------------------------------------------------

    @rule(batch=links, whole=st.booleans(), via=vias)
    def submit(self, batch: list[tuple[list[int], On]], whole: bool, via: int) -> None:
        """Tasks that wait for some that are there, or for those before them in the batch."""
        tasks: list[NewTask] = []
        known = list(self.model.nodes)
        for wanted, on in batch:
            task = new_task(max_retries=0)
            parents = list(dict.fromkeys(known[-1 - age % len(known)] for age in wanted)) if known else []
            flow_id = (tasks[0].id if tasks else task.id) if whole else None
            tasks.append(task._replace(after=After(tuple(parents), on) if parents else None, flow_id=flow_id))
            known.append(task.id)
            self.model.nodes[task.id] = Node(parents, on)
        self.model.settle()
        self._each(via, lambda store: store.insert(tasks))
        self.happened["cut off at once"] += sum(self.model.nodes[task.id].cut for task in tasks)

    @precondition(lambda self: any(_waits(node) for node in self.model.nodes.values()))
    @rule(age=ages, via=vias)
    def put_before(self, age: int, via: int) -> None:
        """One more that something waits for, which waits already."""
        targets = [task_id for task_id, node in self.model.nodes.items() if _waits(node)]
        target, task = targets[age % len(targets)], new_task(max_retries=0)
        self.model.nodes[task.id] = Node([], "success")
        self.model.nodes[target].parents.append(task.id)
        self.model.settle()
        self._each(via, lambda store: store.insert([task._replace(before=(target,))]))
        self.happened["before"] += 1

    @precondition(lambda self: self._runnable())
    @rule(chosen=ends, via=vias)
    def work(self, chosen: list[str], via: int) -> None:
        """All that is due is claimed, and ends together: nothing else is, on any engine."""
        expected = self._runnable()
        becomes = {task_id: chosen[place % len(chosen)] for place, task_id in enumerate(expected)}

        async def work(store: Store) -> None:
            claims = await claim(store, len(expected) + 5)
            assert sorted(each.id for each in claims) == expected
            await apply(store, *(ENDS[becomes[each.id]](each) for each in claims))

        for task_id, state in becomes.items():
            self.model.nodes[task_id].state = state
        self.model.settle()
        self._each(via, work)
        self.happened["cut off"] += sum(node.cut for node in self.model.nodes.values())

    @precondition(lambda self: self.model.nodes)
    @rule(way=st.sampled_from(sorted(WAYS)), age=ages, via=vias)
    def operate(self, way: str, age: int, via: int) -> None:
        able = {
            "cancel": lambda node: node.state == "pending",
            "retry": lambda node: node.state == "failed",
            "revive": lambda node: node.state == "cancelled" and not node.cut,
        }[way]
        found = [task_id for task_id, node in self.model.nodes.items() if able(node)]
        if not found:
            return
        task_id, (decided, state) = found[age % len(found)], WAYS[way]
        down = sum(node.cut for node in self.model.nodes.values())
        self.model.nodes[task_id].state = state
        self.model.settle()

        async def operate(store: Store) -> None:
            change = decided(await fetch(store, task_id))
            assert change is not None
            await apply(store, change)

        self._each(via, operate)
        self.happened["revived"] += max(0, down - sum(node.cut for node in self.model.nodes.values()))

    # -- comparison ---------------------------------------------------------------------------------------------------

    @invariant()
    def all_agree(self) -> None:
        async def look(bench: Bench, store: Store) -> dict[UUID, tuple[str, int]]:
            page = await store.page(Filter(), limit=1000)
            return {task.id: (task.state, task.waits) for task in page.tasks}

        for engine, rows in self.benches.each(0, look).items():
            assert rows == self.model.rows(), engine

    def _drain(self) -> None:
        """Everything completes: then nothing is left that waits, but for what is cancelled, or cut off."""
        while self._runnable():
            self.work(["completed"], 0)
        self.all_agree()
        assert all(node.over for node in self.model.nodes.values())

    def _runnable(self) -> list[UUID]:
        return sorted(self.model.due())

    def _each(self, via: int, verb: Callable[[Store], Awaitable[Any]]) -> None:
        async def on(bench: Bench, store: Store) -> None:
            await verb(store)

        self.benches.each(via, on)


def _waits(node: Node) -> bool:
    return node.state == "pending" and not node.released


def test_flows_do_on_all_engines_what_the_model_does(benches: Benches):
    @hypothesis.seed(int(os.environ[SEED]))
    class Machine(FlowSteps):
        pass

    Machine.benches, Machine.happened = benches, Counter()
    Machine().each_once()
    run_state_machine_as_test(Machine, settings=settings_for(EXAMPLES, STEPS), _min_steps=STEPS)
    assert {"cut off", "revived", "before", "cut off at once"} <= {
        each for each, number in Machine.happened.items() if number
    }
