"""Interleavings: every order of the calls of a few actors, random orders of more. One task, real databases, and a store
of its own for each actor."""

import itertools
import random
from collections.abc import Callable, Sequence

from tasklib.core.task import Claim
from tasklib.stores.protocol import Store
from tests.races.conftest import ROUNDS
from tests.races.scenes import Scene
from tests.races.turns import EverySchedule


async def test_a_worker_that_pauses_beyond_its_lease(stores: Sequence[Store]):
    """Fault 6. In every order of: a worker with a heartbeat, another slot of it that takes over, a janitor, and time
    that passes. One outcome is accepted, and whoever comes too late is told and changes nothing."""
    orders = EverySchedule()
    taken_over = 0
    for choose in orders:
        scene = Scene(stores)
        await scene.submit()
        scene.worker("anna", beats=True)
        scene.worker("bert", slot_of="anna")
        scene.janitor()
        scene.clock()
        await scene.play(choose)
        taken_over += {"anna", "bert"} <= {actor for actor, verb, _, _ in scene.turns.calls if verb == "settle"}
    assert orders.runs > 100
    assert taken_over


async def test_a_worker_that_dies_at_any_step(stores: Sequence[Store]):
    """Fault 2. Before its claim, between claim and heartbeat, before its outcome: what was claimed counts, what was not
    did not happen, and another worker brings the task to its end."""
    orders = EverySchedule()
    died = set()
    for choose in orders:
        scene = Scene(stores)
        await scene.submit()
        scene.worker("anna", beats=True)
        scene.janitor()
        scene.clock()
        await scene.play(choose, mortal=["anna"])
        died |= {step for step in scene.turns.trace if "dies" in step}
    assert died == {f"anna dies before {verb}" for verb in ("claim", "extend", "settle")}


ENDS: dict[str, Callable[[Scene, Claim], None]] = {
    "complete": lambda scene, held: scene.worker("anna", held=held),
    "fail": lambda scene, held: scene.worker("anna's other self", "final", held=held),
    "release": lambda scene, held: scene.worker("anna's third self", "released", held=held),
    "expire": lambda scene, held: scene.janitor(),
    "cancel": lambda scene, held: scene.operator("cancel"),
    "retry": lambda scene, held: scene.operator("retry"),
    "delete": lambda scene, held: scene.operator("delete"),
}


async def test_two_who_want_something_else(stores: Sequence[Store]):
    """Fault 20. Of complete, fail, release, expire, cancel, retry and delete any two, in every order of their reads and
    writes, on a task whose lease has run out, one that waits for its retry and one that failed: one wins each version,
    and after an accepted request to stop nothing but an end."""
    for pair, phase in itertools.product(itertools.combinations(ENDS, 2), ("running", "waiting", "failed")):
        for choose in EverySchedule():
            scene = Scene(stores)
            await scene.submit()
            held = await scene.claimed("anna")
            scene.advance()
            if phase != "running":
                await scene.fails(held, final=phase == "failed")
            for verb in pair:
                ENDS[verb](scene, held)
            await scene.play(choose)


async def test_many_at_once(stores: Sequence[Store], rng: random.Random):
    """Faults 2, 6 and 20 together, in orders that the seed in the report's header brings again."""
    won: set[str] = set()
    for _ in range(40 * ROUNDS):
        scene = Scene(stores)
        await scene.submit()
        for name in ("anna", "bert", "carla"):
            scene.worker(
                name, rng.choice(["completed", "failed", "final", "released", "stopped"]), beats=rng.random() < 0.3
            )
        scene.janitor("janitor")
        scene.janitor("another janitor")
        for verb in rng.sample(["cancel", "retry", "delete"], 2):
            scene.operator(verb)
        for number in range(rng.randrange(3)):
            scene.clock(f"time {number}")
        await scene.play(rng.randrange, mortal=rng.choice([[], ["anna", "bert"]]))
        won |= {actor for actor, verb, _, _ in scene.turns.calls if verb != "claim"}
    assert {"anna", "last"} <= won
    assert won & {"janitor", "another janitor"}
