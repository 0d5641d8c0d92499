"""Flows against a plain model: a few rules that are applied until nothing changes any more."""

import os
import random
from dataclasses import dataclass
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.flows import After, On
from tasklib.core.task import NewTask
from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store
from tests.conformance.builders import apply, claim, completed, failed, fetch, new_task
from tests.conformance.flow_ends import STATES

SEEDS = int(os.environ.get("TASKLIB_MODEL_EXAMPLES", "4"))
LAYERS = (1, 9, 30, 70, 80, 70, 30, 9, 1)
"""A diamond of 300."""


@dataclass
class Node:
    parents: list[UUID]
    on: On
    state: str = "pending"
    cut: bool = False
    released: bool = False

    @property
    def over(self) -> bool:
        return self.state in STATES


class Model:
    def __init__(self, nodes: dict[UUID, Node]) -> None:
        self.nodes = nodes
        self.settle()

    def left(self, node: Node) -> int:
        """How many parents are not done."""
        ended = [self.nodes[parent] for parent in node.parents]
        return sum(not (parent.state == "completed" or (node.on == "end" and parent.over)) for parent in ended)

    def lost(self, node: Node) -> bool:
        return node.on == "success" and any(
            self.nodes[parent].state in ("failed", "cancelled") for parent in node.parents
        )

    def settle(self) -> None:
        while any(map(self._settle, self.nodes.values())):
            pass

    def _settle(self, node: Node) -> bool:
        before = (node.state, node.cut, node.released)
        if node.state == "pending" and not node.released and self.lost(node):
            node.state, node.cut = "cancelled", True
        elif node.cut and not self.lost(node):
            node.state, node.cut = "pending", False
        elif node.state in ("pending", "cancelled") and not node.cut and self.left(node) == 0:
            node.released = True
        return before != (node.state, node.cut, node.released)

    def due(self) -> set[UUID]:
        return {task_id for task_id, node in self.nodes.items() if node.state == "pending" and node.released}

    def rows(self) -> dict[UUID, tuple[str, int]]:
        return {task_id: (node.state, 0 if node.released else self.left(node)) for task_id, node in self.nodes.items()}


def diamond(seed: random.Random) -> list[NewTask]:
    tasks: list[NewTask] = []
    above: list[NewTask] = []
    for width in LAYERS:
        layer = []
        for _ in range(width):
            task = new_task(max_retries=0)
            if above:
                nearest = seed.sample(above, seed.randint(1, min(4, len(above))))
                parents = {parent.id for parent in nearest} | (
                    {seed.choice(tasks).id} if seed.random() < 0.2 else set()
                )
                task = task._replace(after=After(tuple(parents), "end" if seed.random() < 0.3 else "success"))
            layer.append(task._replace(flow_id=tasks[0].id if tasks else task.id))
            tasks += layer[-1:]
        above = layer
    return tasks


async def attack(store: Store, seed: random.Random) -> None:
    tasks = diamond(seed)
    flow = tasks[0].id
    links = {task.id: task.after or After(()) for task in tasks}
    model = Model({task_id: Node(list(after.parents), after.on) for task_id, after in links.items()})
    shuffled = tasks[:]
    seed.shuffle(shuffled)
    await store.insert(shuffled)
    for _ in range(60):
        await work(store, model, seed, fails=0.06)
        await operate(store, model, seed)
        await compare(store, model, flow)
        if all(node.over for node in model.nodes.values()) and seed.random() < 0.5:
            break
    while model.due():
        await work(store, model, seed, fails=0)
    await compare(store, model, flow)
    assert all(node.over for node in model.nodes.values()), "nothing is left that waits"


async def work(store: Store, model: Model, seed: random.Random, *, fails: float) -> None:
    """Some of what is due is claimed, nothing else is, and all of that ends at once."""
    claims = await claim(store, seed.randint(1, 40))
    expected = model.due()
    assert {each.id for each in claims} <= expected
    assert claims or not expected
    ends = []
    for each in claims:
        fails_now = seed.random() < fails
        ends.append(failed(each) if fails_now else completed(each))
        model.nodes[each.id].state = "failed" if fails_now else "completed"
    if ends:
        await apply(store, *ends)
    model.settle()


async def compare(store: Store, model: Model, flow: UUID) -> None:
    found = {each.id: (each.state, each.waits) for each in await store.flow_graph(flow, 1_000)}
    assert found == model.rows()


async def operate(store: Store, model: Model, seed: random.Random) -> None:
    """An operator comes by: cancels, retries and revives, one or many at once."""
    kind = seed.choice(["cancel", "retry", "revive", "nothing"])
    wanted = {
        "cancel": lambda node: node.state == "pending",
        "retry": lambda node: node.state == "failed",
        "revive": lambda node: node.state == "cancelled" and not node.cut,
        "nothing": lambda node: False,
    }[kind]
    found = [task_id for task_id, node in model.nodes.items() if wanted(node)]
    chosen = seed.sample(found, min(len(found), seed.choice([1, 1, 2, 5])))
    if kind == "cancel" and seed.random() < 0.7:
        chosen = []
    changes = []
    for task_id in chosen:
        row = await fetch(store, task_id)
        change = {"cancel": decide.cancel, "retry": decide.retry_by_hand, "revive": decide.revive}[kind](row)
        assert change is not None
        changes.append(change)
        model.nodes[task_id].state = "cancelled" if kind == "cancel" else "pending"
    if changes:
        await apply(store, *changes)
    model.settle()


@pytest.mark.parametrize("number", range(SEEDS))
async def test_a_diamond_with_random_failures(number: int, rng: random.Random):
    store = make_store(Config(database_url=f"memory://flow-model-{number}"))
    await store.open()
    try:
        await attack(store, rng)
    finally:
        await store.close()


@pytest.mark.parametrize("number", range(max(1, SEEDS // 8)))
@pytest.mark.parametrize("server", ["postgres", "nats"])
async def test_the_same_on_servers(request: pytest.FixtureRequest, server: str, number: int, rng: random.Random):
    store = make_store(Config(database_url=request.getfixturevalue(f"{server}_url")))
    await store.open()
    try:
        await attack(store, rng)
    finally:
        await store.close()
