"""The seam between decisions and engines: small protocols by subject, with the contracts of their verbs in the
docstrings. `Store` is their sum.

Rules that hold for every verb:

- Durations in, instants out: the store's own clock decides what is due and what has expired. `clock_offset` (seconds,
  zero outside tests) is added to it in every statement.
- Every write carries its guard in the statement itself.
- A call either returns, or raises one of `core.errors`: transient ones (`errors.TRANSIENT`) once the store's own
  retries and deadline are used up, lasting ones at once. A doubt about a lost reply is resolved inside the verb.
- A cancelled call leaves nothing half-written.
- What `audit` gives is kept in the transaction of the write, or neither is. A write without a guard that is sent again
  after a lost reply (a control, a request to stop) may be in the trail twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable
from uuid import UUID

from tasklib.core.alert_state import Alert
from tasklib.core.decide import Change, WriteResult
from tasklib.core.flows import After, Feeds, FlowSummary, FlowTask, Parent
from tasklib.core.published import PublishedType
from tasklib.core.schedules import Schedule, ScheduleWrite
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.values import (
    ALL_AUDIT,
    NO_LINKS,
    Age,
    Audit,
    AuditEntry,
    AuditFilter,
    Claimed,
    ClaimRequest,
    ControlChange,
    Controls,
    Count,
    Drain,
    DueSchedules,
    EndedCursor,
    EndedPage,
    Extension,
    Failure,
    Filter,
    Finding,
    Held,
    Hint,
    Inserted,
    KeptLinks,
    NameStats,
    Page,
    Point,
    Token,
    Traits,
    VersionStart,
    WorkerHeartbeat,
    WorkerInfo,
)


class Lifecycle(Protocol):
    """Opening, closing, and the clock."""

    @property
    def traits(self) -> Traits: ...

    clock_offset: float
    """Seconds added to the engine's clock. Tests move it; everybody else leaves it at zero."""

    async def open(self) -> None:
        """Connects; gives an empty database its schema; refuses an older, newer or foreign one with SchemaMismatch.
        Several processes may open an empty database at once."""
        ...

    async def close(self) -> None:
        """Releases everything. Every later call raises StoreClosed. Closing twice is fine."""
        ...

    async def now(self) -> datetime:
        """The store's clock, offset included. It decides what is due."""
        ...

    async def lease_now(self) -> datetime:
        """The clock that leases and heartbeats are judged by. The same, unless the store's can be set meanwhile."""
        ...


class WorkStore(Protocol):
    """The road of a task: submit, claim, settle, and the leases in between."""

    async def insert(
        self,
        tasks: Sequence[NewTask],
        *,
        dated: bool = False,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> Sequence[Inserted]:
        """Stores all or none, in one transaction, and returns after commit. In the order given. Two tasks of the batch
        with one key become one. Delays are a century at most. Wakes listening workers when something is due soon.
        `dated`: the answer for tasks without keys may say when they were created. `copy_of`: the task that they repeat.
        `audit` tells of those that were created.

        What tasks wait for is in the same batch or there already: InvalidOption names what is not, more than
        `FLOW_FEEDS_LIMIT` that wait for one, and what waits no longer and is to wait for one more (`before`). A key
        that is taken links nothing; where it is the key of a flow's first task, nothing of that flow is stored."""
        ...

    def insert_on(
        self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False
    ) -> Sequence[Inserted] | Awaitable[Sequence[Inserted]]:
        """The same on the caller's own connection, inside the caller's transaction. A sync connection is used at once,
        in this thread; an async one gives an awaitable. The store need not be open. Raises Unsupported by name."""
        ...

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Picks due tasks in order (priority descending, created_at, id), marks them running under the worker and
        returns them, in one transaction. Never more than slots + prefetch. Paused names give nothing; limits are exact
        for the whole fleet, and what they defer uses no attempt. Promotes what has become due first."""
        ...

    async def claim_by_id(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        """Claims this one task by hand: if it is still at `version`, claimable, due, not paused and within its limits;
        otherwise None, and nothing is written. The limits are those of `claim`, and exact together with it."""
        ...

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        """All that runs under this worker: how a worker finds claims whose reply was lost."""
        ...

    async def settle(self, changes: Sequence[Change], *, audit: Audit[UUID] | None = None) -> list[WriteResult]:
        """Writes guarded changes in one transaction: of workers, of the janitor, of operators. One result for each, in
        order. A change that lost its guard does not touch its row. The counters move with the rows, and so does what
        `audit` says of those that were applied."""
        ...

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        """Prolongs leases from now; versions stay. A lease that ran out but was not taken is still its holder's."""
        ...

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        """Running tasks whose lease ran out, or whose worker has registered and then been silent for longer than
        `dead_after_seconds` or has said goodbye."""
        ...


class ReadStore(Protocol):
    """Looking at tasks and at what has been counted of them. Nothing is written."""

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]: ...

    async def get_by_key(self, key: str) -> Task | None: ...

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        """By id, newest first unless asked otherwise. `cursor` continues behind that id, without gaps or repeats for
        the rows that were there when paging began. A store may take `ended_after` and `ended_before` for a search."""
        ...

    async def page_ended(
        self, where: Filter, *, limit: int, cursor: EndedCursor | None = None, offset: int = 0
    ) -> EndedPage:
        """What is over, latest end first, without gaps or repeats. `where.states` are given and hold no `completed`:
        no index has the order in which tasks were completed."""
        ...

    async def page_longest(self, where: Filter, *, limit: int, offset: int = 0) -> Page:
        """The longest runs first, among the `LONGEST_AMONG` newest tasks that match (of a search: among those that its
        first page looks at). What runs counts until now; what has not run comes last. There is no next page."""
        ...

    async def count(self, where: Filter, cap: int) -> Count: ...

    async def stats(self) -> dict[str, NameStats]: ...

    async def series(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Point]:
        """The counters since so long ago and until so long ago, summed over steps of whole minutes, oldest first.
        `minute` is a step's begin. With a name, of that type, and what has the empty name."""
        ...

    async def backlog_history(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Age]:
        """What `sample_backlog` saw in that time, oldest first. The same for a name."""
        ...

    async def latest_failures(self, name: str | None, limit: int) -> Sequence[Failure]:
        """The final failures that ended last, of one type or of all, latest first. Of the latest `SEARCHED_TASKS` that
        failed or were cancelled: a type may have others before them."""
        ...

    async def versions(self) -> Sequence[VersionStart]:
        """The versions of the workers' application that `sample_backlog` has seen, first started first."""
        ...

    def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        """Yields the task as it is now, then again whenever it may have finished; woken, with slow polling as the
        fallback. Ends when the caller stops asking."""
        ...


class FleetStore(Protocol):
    """Workers: who lives, which task types they have published, and how they are woken."""

    async def heartbeat(self, worker: WorkerHeartbeat) -> Drain | None:
        """Records that the worker lives. Answers whether it was asked to drain."""
        ...

    async def request_drain(self, worker_id: str, by: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        """Asks a worker to take nothing more and to end; those who listen are told. False, and no entry: it is not
        known, has ended, or was asked before."""
        ...

    async def deregister_worker(self, worker_id: str) -> None:
        """Records that the worker stopped by itself."""
        ...

    async def workers(self) -> list[WorkerInfo]: ...

    async def publish(self, types: Sequence[PublishedType]) -> None:
        """Keeps what a worker tells of its types; who tells last is believed."""
        ...

    async def published(self) -> list[PublishedType]:
        """All types that any worker has told of, by name."""
        ...

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        """Calls `wake` in this loop whenever something may be claimable, was asked to stop, or a control changed. A
        hint, never the truth: it may come late, twice or not at all. Returns how to stop."""
        ...


class ControlStore(Protocol):
    """Pauses and limits."""

    async def controls(self) -> dict[str, Controls]:
        """All that is set, by name; the empty name is for all types."""
        ...

    async def control(self, change: ControlChange, *, audit: Sequence[AuditEntry] = ()) -> Controls:
        """Changes what is given and wakes everybody."""
        ...


class AccessStore(Protocol):
    """Tokens of the server, and the audit trail of operators."""

    async def add_token(self, token: Token, *, audit: Sequence[AuditEntry] = ()) -> None:
        """One that is there already adds no entry."""
        ...

    async def tokens(self) -> list[Token]:
        """All that were ever made and not forgotten, oldest first, revoked ones too."""
        ...

    async def revoke_token(self, token_id: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        """False, and no entry: there is no such token, or it was revoked before."""
        ...

    async def list_audit(
        self, where: AuditFilter = ALL_AUDIT, *, limit: int = 100, cursor: str | None = None
    ) -> list[AuditEntry]:
        """The latest actions that match, newest first. `cursor` continues behind the entry that has it; one that no
        entry of this store can have raises InvalidValue."""
        ...


class AlertStore(Protocol):
    """The states of alert rules."""

    async def alerts(self) -> list[Alert]:
        """All that were ever kept, by name."""
        ...

    async def put_alert(self, alert: Alert) -> bool:
        """Keeps it in place of the version before its own, or where there is none of its name. False: another version
        is there, and stays. So it may be after a lost reply, too."""
        ...


class UpkeepStore(Protocol):
    """What operators and janitors do to tasks, and to what is kept beside them."""

    async def request_cancel(self, ids: Sequence[UUID], *, audit: Audit[UUID] | None = None) -> list[UUID]:
        """Marks running tasks as asked to stop and returns which; versions stay. Those who listen are told."""
        ...

    async def delete(
        self, guards: Sequence[tuple[UUID, int]], *, audit: Audit[UUID] | None = None
    ) -> list[WriteResult]:
        """Deletes finished tasks, each under its version; not what an unfinished one waits for."""
        ...

    async def prune(
        self,
        states: Sequence[str],
        older_than_seconds: float,
        limit: int,
        *,
        dry_run: bool = False,
        audit: Audit[str] | None = None,
    ) -> int:
        """Deletes up to `limit` finished tasks of these states that completed longer ago; returns how many
        (dry run: how many there are, `limit` aside). What an unfinished one waits for is put off. `audit` is given the
        state of each, transaction by transaction."""
        ...

    async def kept_links(self, tasks: Sequence[Task]) -> KeptLinks:
        """What `restore` needs of these tasks beside their records."""
        ...

    async def restore(self, tasks: Sequence[Task], links: KeptLinks = NO_LINKS) -> list[WriteResult]:
        """Writes whole records of another queue as they are, each whole or not at all: applied; duplicate, where
        that very record is here; stale, where another one has its id or its idempotency key. Finished ones are
        counted."""
        ...

    async def compact_stats(self) -> None:
        """Housekeeping beside the tasks: merges counters, forgets workers long gone."""
        ...

    async def sample_backlog(self) -> None:
        """Keeps how many tasks of each type wait now and for how long, how many came since the minute before, and new
        versions of workers, once in a minute however many ask."""
        ...


class ScheduleStore(Protocol):
    """Schedules: values that are read, and written back under their version."""

    async def schedules(self, names: Sequence[str] | None = None) -> list[Schedule]:
        """Those of these names, or all, by name."""
        ...

    async def due_schedules(self, limit: int) -> DueSchedules:
        """Those whose time has come, longest due first. Not those of code that no worker has declared for a day."""
        ...

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, audit: Sequence[AuditEntry] = (), wait: bool = True
    ) -> list[Sequence[Inserted] | None]:
        """Each under the version it was made of, its tasks with it, all in one transaction; how the tasks were stored.
        None: the schedule has changed since, or was made or deleted by another, and nothing of it was written. The
        tasks become its latest runs. `wait=False`: what another writes at this moment counts as changed. A change
        without slots wakes everybody."""
        ...

    async def delete_schedule(self, name: str, version: int, *, audit: Sequence[AuditEntry] = ()) -> bool: ...

    async def keep_schedules(self, names: Sequence[str]) -> None:
        """A live worker has these in its code. Versions stay."""
        ...


class FlowStore(Protocol):
    """Tasks that wait for tasks. Their release is part of `settle`."""

    async def parents(self, ids: Sequence[UUID]) -> list[Parent]:
        """What became of these tasks, in no order; of those that are there."""
        ...

    async def after_of(self, task_id: UUID) -> After | None:
        """All that a task waits for, of however many. None: of nothing, or there is no such task."""
        ...

    async def feeds(self, task_id: UUID, limit: int) -> Feeds:
        """Those that wait, or waited, for it."""
        ...

    async def flows(self, limit: int, cursor: UUID | None = None) -> list[FlowSummary]:
        """Newest first; `cursor`: those before this flow."""
        ...

    async def flow_graph(self, flow_id: UUID, limit: int) -> list[FlowTask]:
        """The tasks of a flow, oldest first."""
        ...

    async def release_stranded(self, limit: int) -> int:
        """Looks again at tasks that wait although nothing they wait for is still to end, and gives how many it helped:
        the net under a worker that died between a settle and its second look."""
        ...


class Store(
    Lifecycle,
    WorkStore,
    ReadStore,
    FlowStore,
    FleetStore,
    ControlStore,
    ScheduleStore,
    AccessStore,
    AlertStore,
    UpkeepStore,
    Protocol,
):
    """One engine's hold on the tables. An instance belongs to the event loop it was opened in.

    What needs a part of it asks for that part: its signature then says what it can do to the queue."""


@runtime_checkable
class InsertsInThread(Protocol):
    """A store that can do without its loop."""

    def insert_sync(self, tasks: Sequence[NewTask]) -> Sequence[Inserted] | None:
        """`Store.insert` for sync code, in the calling thread. None: that is not possible now, and nothing was
        stored."""
        ...


class Admin(Protocol):
    """What the command line needs beyond the verbs: schema changes and a check-up."""

    async def schema_version(self) -> int | None:
        """None: there is no schema yet."""
        ...

    async def migrate(self, *, plan: bool = False) -> list[str]:
        """Brings the schema up to date and returns the names of the steps taken (`plan`: that would be taken). Safe to
        run twice, and twice at once."""
        ...

    def migration_sql(self) -> list[tuple[str, str]]:
        """Name and SQL text of every step."""
        ...

    async def check_up(self) -> list[Finding]: ...
