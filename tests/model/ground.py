"""What all steps stand on: the model and the engines beside it, what was handed out and seen so far, and the comparison
after each step."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tasklib.core.decide import WriteResult
from tasklib.core.task import Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter, NameStats
from tests.model import laws
from tests.model.benches import PATIENCE, Bench, Benches
from tests.model.queue import Queue
from tests.model.rows import Row, row_of
from tests.model.steps import KEYS, NAMES, HeldEverywhere, Seen, on_the_grid

T = TypeVar("T")


def of_age(things: Sequence[T], age: int) -> T:
    return things[-1 - age % len(things)]


def has(phase: str) -> Callable[["Ground"], bool]:
    return lambda machine: bool(machine.model.in_phase(phase))


class Ground(RuleBasedStateMachine):
    """Steps that Hypothesis puts together are done on the model and on every engine, and compared."""

    benches: ClassVar[Benches]
    happened: ClassVar[Counter[str]]
    """What came about, so that a run in which too little did can be told."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Queue()
        self.tasks: list[UUID] = []
        self.claims: list[HeldEverywhere] = []
        self.looks: list[Seen] = []
        self.held: dict[UUID, HeldEverywhere] = {}
        """The latest claim of each task."""
        self.rows: dict[str, dict[UUID, Row]] = {}
        self.retried: set[UUID] = set()
        self.turn = 0
        self.begun_at = time.monotonic()
        self.benches.open()

    def teardown(self) -> None:
        self.benches.close()

    def agree(self, via: int, verb: Callable[[Bench, Store], Any], expected: T) -> T:
        """Every engine answers what the model does."""
        answers = self.benches.each(via, verb)
        assert answers == dict.fromkeys(answers, expected), verb.__name__
        self.happened[f"{verb.__name__}: {kind_of(expected)}"] += 1
        return expected

    def look_at(self, task: UUID, via: int) -> Seen:
        async def get(bench: Bench, store: Store) -> Task:
            [found] = await store.get([task])
            assert found is not None, bench.engine
            return found

        return self.saw(self.benches.each(via, get))

    def saw(self, found: dict[str, Task]) -> Seen:
        task_id = next(iter(found.values())).id
        self.looks.append(Seen(dict(self.model.rows[task_id]), self.model.locks.get(task_id), found))
        return self.looks[-1]

    @rule(seconds=st.sampled_from([1000, 1000, 2000, 3000, 100_000, -1000]))
    def jump(self, seconds: int) -> None:
        """Time passes; once in a while somebody sets the clock back."""
        self.model.now = max(0, self.model.now + seconds)
        self.benches.set_clock(self.model.now)

    @invariant()
    def all_agree(self) -> None:
        self.turn += 1
        assert time.monotonic() - self.begun_at < PATIENCE, "too slow to tell the model's times apart"

        async def look(
            bench: Bench, store: Store
        ) -> tuple[dict[UUID, Row], dict[str, NameStats], dict[str, UUID | None]]:
            page = await store.page(Filter(), limit=1000, oldest_first=True)
            owners = {key: await store.get_by_key(key) for key in KEYS}
            ids = {key: None if task is None else task.id for key, task in owners.items()}
            return {task.id: row_of(task, bench) for task in page.tasks}, await store.stats(), ids

        keys: dict[str, UUID | None] = dict.fromkeys(KEYS) | {
            row["idempotency_key"]: row["id"] for row in self.model.rows.values() if row["idempotency_key"]
        }
        for engine, (rows, stats, owners) in self.benches.each(self.turn % 2, look).items():
            for row in rows.values():
                laws.check_row(row)
            laws.check_keys(rows)
            laws.check_stats(rows, stats)
            laws.check_step(self.rows.get(engine, {}), rows, self.retried)
            self.rows[engine] = rows
            assert rows == self.model.rows, engine
            assert owners == keys, engine
            assert {name: on_the_grid(stats.get(name, NameStats())) for name in NAMES} == self.model.stats(NAMES), (
                engine
            )
        self.retried.clear()


def kind_of(answer: object) -> str:
    """What to count an answer as."""
    if isinstance(answer, list) and answer and isinstance(answer[0], WriteResult):
        return str(answer[0])
    return "some" if answer else "nothing"
