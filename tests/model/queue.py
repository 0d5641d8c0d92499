"""The model: a queue as a plain dict, one task at a time, written from the promises and not from any store."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.decide import WriteResult
from tasklib.stores.values import NameStats
from tests.model.rows import Row

ALL = ""
PHASES = ("pending", "running", "waiting", "completed", "failed", "cancelled")
LOST = "WorkerLost"


class Held(NamedTuple):
    """A claim as its worker remembers it, however long ago that was."""

    id: UUID
    version: int
    worker: str
    retry_count: int


class Ending(NamedTuple):
    """What a worker says of its attempt."""

    kind: str
    """completed, failed, final, released, snoozed or stopped"""
    delay: int = 0
    text: str = "boom"


class Moved(NamedTuple):
    """What a write would make of a task."""

    state: str
    retry_count: int
    over: bool
    due: int | None = None
    error: str | None = None
    entry: Row | None = None
    result: Any = None
    if_asked: "Moved | None" = None
    """What it makes of a task that was asked to stop."""


@dataclass
class Worker:
    seen: int
    stopped: bool = False


@dataclass
class Queue:
    now: int = 0
    rows: dict[UUID, Row] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    most: dict[str, int] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    locks: dict[UUID, int] = field(default_factory=dict)
    """Counts the leases: two that end at the same time by the model's clock are still two."""

    # -- submit -------------------------------------------------------------------------------------------------------

    def insert(self, task_id: UUID, name: str, key: str | None, priority: int, due: int, max_retries: int) -> UUID:
        """The id that the caller gets: another's where the key is taken."""
        for row in self.rows.values():
            if key is not None and row["idempotency_key"] == key:
                return UUID(str(row["id"]))
        self.rows[task_id] = {
            "id": task_id,
            "name": name,
            "state": "pending",
            "scheduled_at": due,
            "created_at": self.now,
            "updated_at": self.now,
            "started_at": None,
            "completed_at": None,
            "next_retry_at": None,
            "result": None,
            "error": None,
            "retry_count": 0,
            "max_retries": max_retries,
            "worker_id": None,
            "locked_until": None,
            "priority": priority,
            "cancel_requested_at": None,
            "version": 0,
            "idempotency_key": key,
            "history": [],
            "last_worker_id": None,
            "copy_of": None,
            "waits": 0,
            "after": None,
            "flow_id": None,
        }
        return task_id

    # -- claim --------------------------------------------------------------------------------------------------------

    def is_due(self, row: Row) -> bool:
        return phase_of(row) in ("pending", "waiting") and _due(row) <= self.now

    def claimable(self, row: Row) -> bool:
        return self.is_due(row) and not self.paused & {ALL, row["name"]}

    def room(self, name: str) -> int | None:
        """How many more of a type, or of all, may run."""
        if name not in self.most:
            return None
        running = [row for row in self.rows.values() if row["state"] == "running" and name in (ALL, row["name"])]
        return max(0, self.most[name] - len(running))

    def claim(
        self, worker: str, names: Collection[str], slots: int, prefetch: int, lease: int, per_name: dict[str, int]
    ) -> list[Held]:
        wanted = slots if ALL in self.most else slots + prefetch
        room = {name: _least(wanted, self.room(name), per_name.get(name)) for name in names}
        best: list[Row] = []
        for row in self._in_order(row for row in self.rows.values() if row["name"] in names and self.claimable(row)):
            if room[row["name"]] > 0:
                room[row["name"]] -= 1
                best.append(row)
        best = best[: _least(wanted, self.room(ALL))]
        picked = best[:slots] + [row for row in best[slots:] if not _alone(row) and row["name"] not in self.most]
        return [self._mark(row, worker, lease) for row in picked]

    def take(self, task_id: UUID, version: int, worker: str, lease: int) -> Held | None:
        row = self.rows.get(task_id)
        if row is None or row["version"] != version or not self.claimable(row):
            return None
        if 0 in (self.room(ALL), self.room(row["name"])):
            return None
        return self._mark(row, worker, lease)

    def _in_order(self, rows: Iterable[Row]) -> list[Row]:
        """Rows are kept in the order they came in, and sorting keeps it among equals."""
        return sorted(rows, key=lambda row: (-row["priority"], row["created_at"]))

    def _mark(self, row: Row, worker: str, lease: int) -> Held:
        row.update(
            state="running",
            worker_id=worker,
            locked_until=self.now + lease,
            started_at=self.now,
            updated_at=self.now,
            next_retry_at=None,
            cancel_requested_at=None,
            version=row["version"] + 1,
        )
        self._locked(row["id"])
        return Held(row["id"], row["version"], worker, row["retry_count"])

    def _locked(self, task_id: UUID) -> None:
        self.locks[task_id] = self.locks.get(task_id, 0) + 1

    # -- settle -------------------------------------------------------------------------------------------------------

    def settle(self, held: Held, ending: Ending, started: int, max_retries: int) -> WriteResult:
        moved = _ended(held, ending, started, max_retries, self.now)
        return self.write(held.id, held.version, held.worker, moved)

    def write(
        self, task_id: UUID, version: int, worker: str | None, moved: Moved, lock: int | None = None
    ) -> WriteResult:
        row = self.rows.get(task_id)
        if row is None:
            return WriteResult.MISSING
        same_lock = lock is None or lock == self.locks.get(task_id)
        if row["version"] != version or row["worker_id"] != worker or not same_lock:
            done = any(_is_done(row, version, form) for form in (moved, moved.if_asked) if form is not None)
            return WriteResult.DUPLICATE if done else WriteResult.STALE
        if row["cancel_requested_at"] is not None and moved.if_asked is not None:
            moved = moved.if_asked
        waits, pending = moved.state == "failed" and not moved.over, moved.state == "pending"
        row.update(
            state=moved.state,
            retry_count=moved.retry_count,
            version=version + 1,
            updated_at=self.now,
            worker_id=None,
            last_worker_id=row["worker_id"] or row["last_worker_id"],
            locked_until=None,
            completed_at=self.now if moved.over else None,
            next_retry_at=moved.due if waits else None,
            result=moved.result,
        )
        if pending:
            row["cancel_requested_at"] = None
            row["scheduled_at"] = row["scheduled_at"] if moved.due is None else moved.due
        if moved.state == "completed":
            row["error"] = None
        elif moved.error is not None:
            row["error"] = moved.error
        if moved.entry is not None:
            row["history"] = [*row["history"], {**moved.entry, "ended": self.now}]
        return WriteResult.APPLIED

    def expire(self, seen: Row, lock: int | None) -> WriteResult:
        held = Held(seen["id"], seen["version"], seen["worker_id"], seen["retry_count"])
        moved = _ended(held, Ending("failed", 0, LOST), seen["started_at"], seen["max_retries"], self.now)
        assert moved.entry is not None
        moved.entry["lost"] = True  # in both forms: they share it
        return self.write(held.id, held.version, held.worker, moved, lock)

    # -- leases -------------------------------------------------------------------------------------------------------

    def extend(self, worker: str, task_id: UUID, version: int, lease: int) -> tuple[bool, bool]:
        """Whether it is held, and whether it is asked to stop."""
        row = self.rows.get(task_id)
        if row is None or (row["version"], row["worker_id"]) != (version, worker):
            return False, False
        row["locked_until"] = self.now + lease
        self._locked(task_id)
        return True, row["cancel_requested_at"] is not None

    def held_by(self, worker: str) -> set[tuple[UUID, int]]:
        return {(row["id"], row["version"]) for row in self.rows.values() if row["worker_id"] == worker}

    def lost(self, dead_after: int) -> set[UUID]:
        gone = {name for name, each in self.workers.items() if each.stopped or each.seen < self.now - dead_after}
        return {
            row["id"]
            for row in self.rows.values()
            if row["state"] == "running" and (row["locked_until"] <= self.now or row["worker_id"] in gone)
        }

    def beat(self, worker: str) -> None:
        self.workers[worker] = Worker(self.now)

    def deregister_worker(self, worker: str) -> None:
        if worker in self.workers:
            self.workers[worker].stopped = True

    # -- operate ------------------------------------------------------------------------------------------------------

    def ask_to_stop(self, task_id: UUID) -> bool:
        row = self.rows.get(task_id)
        if row is None or row["state"] != "running":
            return False
        if row["cancel_requested_at"] is None:
            row["cancel_requested_at"] = self.now
        row["updated_at"] = self.now
        return True

    def cancel(self, seen: Row) -> WriteResult:
        return self.write(seen["id"], seen["version"], None, Moved("cancelled", seen["retry_count"], True))

    def retry(self, seen: Row) -> WriteResult:
        return self.write(seen["id"], seen["version"], None, Moved("pending", 0, False, self.now))

    def resume(self, seen: Row) -> WriteResult | None:
        """The claim API's retry: attempts are kept, and what runs is taken from its worker. None: refused, or there is
        nothing to do."""
        runs, count = seen["state"] == "running", seen["retry_count"]
        attempts = count + (phase_of(seen) in ("running", "failed"))
        text = f"TaskRetried: taken back from worker {seen['worker_id']} by a retry"
        entry: Row = {"attempt": count + 1, "worker": seen["worker_id"], "started": seen["started_at"], "error": text}
        stopped = Moved("cancelled", count + 1, True, error=text, entry=entry) if runs else None
        if stopped is not None and seen["cancel_requested_at"] is not None:
            moved = stopped
        elif 0 <= seen["max_retries"] < attempts or self.is_due(seen):
            return None
        else:
            moved = Moved("pending", attempts, False, self.now, entry=entry if runs else None, if_asked=stopped)
        return self.write(seen["id"], seen["version"], seen["worker_id"], moved)

    def delete(self, task_id: UUID, version: int) -> WriteResult:
        row = self.rows.get(task_id)
        if row is None:
            return WriteResult.MISSING
        if row["version"] != version or row["completed_at"] is None:
            return WriteResult.STALE
        del self.rows[task_id]
        return WriteResult.APPLIED

    def prune(self, states: Collection[str], age: int) -> int:
        old = [
            row["id"]
            for row in self.rows.values()
            if row["state"] in states and row["completed_at"] is not None and row["completed_at"] <= self.now - age
        ]
        for task_id in old:
            del self.rows[task_id]
        return len(old)

    def control(self, name: str, paused: bool, most: int | None) -> None:
        (self.paused.add if paused else self.paused.discard)(name)
        self.most.pop(name, None)
        if most is not None:
            self.most[name] = most

    # -- look ---------------------------------------------------------------------------------------------------------

    def in_phase(self, *phases: str) -> list[UUID]:
        return [task_id for task_id, row in self.rows.items() if phase_of(row) in phases]

    def anything_due(self) -> bool:
        return any(map(self.claimable, self.rows.values()))

    def stats(self, names: Sequence[str]) -> dict[str, NameStats]:
        found = {}
        for name in names:
            rows = [row for row in self.rows.values() if row["name"] == name]
            number = Counter(phase_of(row) for row in rows)
            dues = [_due(row) for row in rows if phase_of(row) in ("pending", "waiting")]
            late = self.now - min(dues, default=self.now + 1)
            found[name] = NameStats(
                **{phase: number[phase] for phase in PHASES}, oldest_due_seconds=late if late >= 0 else None
            )
        return found


def phase_of(row: Row) -> str:
    """The state, or `waiting` for what failed and has a retry to come."""
    return "waiting" if row["state"] == "failed" and row["completed_at"] is None else str(row["state"])


def _due(row: Row) -> int:
    return int(row["scheduled_at"] if row["next_retry_at"] is None else row["next_retry_at"])


def _alone(row: Row) -> bool:
    """Its worker's death would cost it dear: it never waits in one."""
    last = 0 <= row["max_retries"] <= row["retry_count"]
    return last or (row["retry_count"] > 0 and bool(row["history"]) and row["history"][-1].get("lost", False))


def _least(first: int, *others: int | None) -> int:
    return min([first, *(other for other in others if other is not None)])


def _is_done(row: Row, version: int, moved: Moved) -> bool:
    """The row is as this very write would have left it."""
    return bool(
        row["version"] == version + 1
        and row["state"] == moved.state
        and row["retry_count"] == moved.retry_count
        and (row["completed_at"] is not None) == moved.over
        and moved.error in (None, row["error"])
    )


def _ended(held: Held, ending: Ending, started: int, max_retries: int, now: int) -> Moved:
    count = held.retry_count
    entry: Row = {"attempt": count + 1, "worker": held.worker, "started": started, "error": ending.text}
    if ending.kind == "completed":
        return Moved("completed", count, True, result={"value": ending.text})
    if ending.kind in ("released", "snoozed"):
        text = "cancelled before it could finish"
        stopped = Moved("cancelled", count + 1, True, error=text, entry={**entry, "error": text})
        if ending.kind == "released":
            return Moved("pending", count, False, if_asked=stopped)
        told = {name: entry[name] for name in ("attempt", "worker", "started")} | {"snoozed": ending.delay}
        return Moved("pending", count, False, now + ending.delay, entry=told, if_asked=stopped)
    stopped = Moved("cancelled", count + 1, True, error=ending.text, entry=entry)
    if ending.kind == "stopped":
        return stopped
    if ending.kind == "final" or 0 <= max_retries <= count:
        return Moved("failed", count, True, error=ending.text, entry=entry, if_asked=stopped)
    return Moved("failed", count + 1, False, now + ending.delay, error=ending.text, entry=entry, if_asked=stopped)
