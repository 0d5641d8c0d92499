"""What steps are made of: strategies for their arguments, and what was handed out to workers and lookers."""

from dataclasses import dataclass
from uuid import UUID

from hypothesis import strategies as st

from tasklib.core import codec, decide
from tasklib.core.decide import Change
from tasklib.core.outcome import Cancelled, Completed, Failed, Outcome, Released, Snoozed
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.values import NameStats
from tests.model.benches import HALF, Bench
from tests.model.queue import LOST, Ending, Held
from tests.model.rows import Row

NAMES = ("a", "b")
KEYS = ("one", "two/§")
names = st.sampled_from(NAMES)
workers = st.sampled_from(["anna", "bert"])
vias = st.integers(0, 1)
places = st.integers(0, 3)
ages = st.integers(0, 9)
"""Of what was handed out or seen, the latest or one before it."""
rarely = st.sampled_from([False, False, False, True])
short = st.sampled_from([HALF, HALF, 1000 + HALF])
leases = st.sampled_from([HALF, HALF, 2000 + HALF, 400_000 + HALF])
endings = st.one_of(
    st.sampled_from([Ending("completed", text="x"), Ending("completed", text="y"), Ending("final")]),
    st.sampled_from(
        [Ending("failed"), Ending("failed", HALF), Ending("failed", 2000 + HALF), Ending("failed", text="")]
    ),
    st.sampled_from(
        [Ending("released"), Ending("snoozed"), Ending("snoozed", HALF), Ending("stopped", text="as asked")]
    ),
)

FITS = {
    "retry": ("failed", "waiting"),
    "cancel": ("pending", "waiting"),
    "expire": ("running",),
    "resume": ("running", "waiting", "failed"),
    "delete": ("completed", "failed", "cancelled"),
}
"""What operators and janitors do, and with what."""
verbs = st.sampled_from(sorted(FITS))


@dataclass(frozen=True)
class Order:
    """One task to submit."""

    name: str
    key: str | None
    priority: int
    delay: int | None
    at: int | None
    """Instead of a delay: an instant, seen from now."""
    max_retries: int


orders = st.builds(
    Order,
    name=names,
    key=st.none() | st.sampled_from(KEYS),
    priority=st.sampled_from([0, 0, 1]),
    delay=st.sampled_from([None, None, 0, HALF]),
    at=st.sampled_from([None, None, None, HALF, -HALF]),
    max_retries=st.sampled_from([0, 1, 2, -1]),
)


@dataclass(frozen=True)
class HeldEverywhere:
    """One claim, as each engine gave it."""

    model: Held
    max_retries: int
    started: int
    claims: dict[str, Claim]

    def under(self, worker: str | None) -> "HeldEverywhere":
        if worker is None:
            return self
        claims = {engine: claim._replace(worker_id=worker) for engine, claim in self.claims.items()}
        return HeldEverywhere(self.model._replace(worker=worker), self.max_retries, self.started, claims)

    def __repr__(self) -> str:
        return f"<claim of {self.model}>"


@dataclass(frozen=True)
class Seen:
    """A task as somebody saw it: perhaps long ago."""

    row: Row
    lock: int | None
    tasks: dict[str, Task]

    def __repr__(self) -> str:
        return f"<{self.row['id']} seen {self.row['state']} at version {self.row['version']}>"


def new_task(task_id: UUID, order: Order, bench: Bench, now: int) -> NewTask:
    return NewTask(
        id=task_id,
        name=order.name,
        kwargs="{}",
        max_retries=order.max_retries,
        delay_seconds=None if order.at is not None else order.delay,
        run_at=None if order.at is None else bench.moment(now + order.at),
        priority=order.priority,
        idempotency_key=order.key,
    )


def expired(task: Task) -> Change:
    return decide.expire(task, LOST)


def outcome(ending: Ending) -> Outcome:
    match ending.kind:
        case "completed":
            return Completed(codec.encode({"value": ending.text}, field="result"))
        case "failed" | "final":
            return Failed(ending.text, final=ending.kind == "final", delay=ending.delay)
        case "released":
            return Released()
        case "snoozed":
            return Snoozed(ending.delay)
        case _:
            return Cancelled(ending.text)


def on_the_grid(stats: NameStats) -> NameStats:
    late = stats.oldest_due_seconds
    rounded = None if late is None else round(late / HALF) * HALF
    return NameStats(
        pending=stats.pending,
        running=stats.running,
        waiting=stats.waiting,
        completed=stats.completed,
        failed=stats.failed,
        cancelled=stats.cancelled,
        oldest_due_seconds=rounded,
    )
