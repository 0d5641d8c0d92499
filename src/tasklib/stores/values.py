"""What stores are asked with and what they answer: plain values, the same for every engine. Verbs: see `protocol`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from tasklib.core.errors import Unsupported
from tasklib.core.limits import UNSET as UNSET
from tasklib.core.limits import ControlChange as ControlChange
from tasklib.core.limits import Controls as Controls
from tasklib.core.limits import Unset as Unset
from tasklib.core.options import DEFAULT_QUEUE
from tasklib.core.schedules import Schedule
from tasklib.core.task import Claim, Task

T = TypeVar("T")

SEARCHED_TASKS = 20_000
"""A search for what no index has looks at no more tasks at a time, of those that meet its other conditions."""
LONGEST_AMONG = 10_000
"""Of so many tasks, the newest that match, the longest are listed: no index has how long they ran."""
ERROR_END = 8_000


@dataclass(frozen=True, slots=True)
class Traits:
    """What an engine can and cannot do."""

    engine: str
    shared_between_processes: bool = True
    wakes: bool = True
    """False: no wake-ups can be had (PgBouncer in transaction mode), so polling must not back off."""
    joins_transactions: bool = True
    """Tasks can be submitted in the caller's own transaction."""
    keeps_links: bool = True
    """Tasks that wait for others can be copied to another queue or from one, with their links."""
    cheap_batches: bool = True
    """A few tasks in one insert cost hardly more than one."""
    drains_in_transactions: bool = False
    """Tasks can be claimed and settled in the caller's own transaction, for tests."""

    def unsupported(self, what: str, instead: str) -> Unsupported:
        """The refusal of what this engine cannot do."""
        return Unsupported(f"a {self.engine} queue cannot {what}: {instead}")


class Inserted(NamedTuple):
    id: UUID
    created: bool
    """False: a task with this idempotency key or unique key was there, and `id` is its id."""
    created_at: datetime | None = None
    """Only where it was asked for."""
    replaced: bool = False
    """A task with this unique key was there, and has taken over what was submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """What a worker asks for."""

    worker_id: str
    names: Sequence[str]
    """Only tasks of these names are claimed."""
    slots: int
    """How many can start at once."""
    prefetch: int = 0
    """How many more may be taken to wait in the worker; never tasks that must run alone, or types with limits."""
    lease_seconds: float = 600.0
    per_name: dict[str, int] = field(default_factory=dict)
    """At most this many of a name in this claim (a worker's own parallelism for a type)."""


class Claimed(NamedTuple):
    claims: list[Claim]
    """In the order of SPEC: priority, then first come first served."""
    next_due_in: float | None
    """Seconds until something may become claimable through time alone (a due time, a rate limit's next permit): a hint
    for how long to sleep, looked up only when fewer than `slots` were claimed. None: nothing waits."""


class DueSchedules(NamedTuple):
    schedules: list[Schedule]
    now: datetime
    """The store's clock at that look."""
    next_due_in: float | None
    """Seconds until the next falls due; 0: there are more. None: none will by itself."""


class Held(NamedTuple):
    """A lease as its holder knows it."""

    id: UUID
    version: int


class Extension(NamedTuple):
    id: UUID
    held: bool
    """False: the claim is no longer this worker's."""
    cancel_requested: bool


class CancelRequested(NamedTuple):
    """Running tasks were asked to stop."""

    ids: Sequence[UUID] = ()
    """None: more than are worth naming."""


class DrainRequested(NamedTuple):
    """A worker was asked to take nothing more, to finish what it runs, and to end."""

    worker_id: str


Hint: TypeAlias = str | CancelRequested | DrainRequested | None
"""What those who listen hear: something of this type may be claimable; tasks, or a worker, were asked to stop; None:
anything may be claimable, or a pause or a limit was changed."""


class Drain(NamedTuple):
    """What a worker is told that was asked to drain."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHeartbeat:
    """What a worker tells of itself with each heartbeat."""

    id: str
    hostname: str
    pid: int
    names: Sequence[str]
    concurrency: int
    """0: it is stopping. It finishes what it runs and takes nothing more."""
    running: int
    listening: bool = True
    """False: too busy to want wake-ups."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """The queues of those types that are not in the default one."""
    version: str | None = None
    """Of the application whose tasks it runs, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker as it was last heard of."""

    id: str
    hostname: str
    pid: int
    names: tuple[str, ...]
    concurrency: int
    running: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    """Set when it said goodbye; rows of stopped and long lost workers are pruned."""
    seconds_since_seen: float
    queues: Mapping[str, str] = field(default_factory=dict)
    """As in the beat."""
    version: str | None = None
    """Of the application that it runs; None: it has not told."""
    drain: Drain | None = None
    """Somebody asked it to finish what it runs, and to end."""

    def queue_of(self, name: str) -> str:
        return self.queues.get(name, DEFAULT_QUEUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list, a count or a bulk action is about. All given conditions must hold."""

    names: Sequence[str] | None = None
    name_prefix: str | None = None
    states: Sequence[str] | None = None
    terminal: bool | None = None
    """With `failed`: True for final failures only, False for those that wait for a retry."""
    tags: dict[str, Any] | None = None
    """Each pair must be in the task's tags."""
    tag_texts: dict[str, str] | None = None
    """The same, as people write them: 4711 is that text and that number, true is that text and the truth value."""
    worker_id: str | None = None
    """What runs under this worker."""
    error_text: str | None = None
    """Taken literally (no wildcards), case-insensitive."""
    created_after: datetime | None = None
    """This instant or later."""
    created_before: datetime | None = None
    """Earlier than this instant."""
    ended_after: datetime | None = None
    """Over since this instant or later."""
    ended_before: datetime | None = None
    """Over since before this instant."""
    not_due: bool | None = None
    """Only what waits for its time, or for that of its retry, and that has not come. Not what waits for other tasks."""
    ids: Sequence[UUID] | None = None
    short_ids: Sequence[str] | None = None
    """The last digits of ids, as lists show them: in small letters."""
    idempotency_key: str | None = None
    flow_id: UUID | None = None
    payload_texts: dict[tuple[str, ...], str] | None = None
    """By names in the payload, one inside the other: the value there, as people write it (see `tag_texts`). Payloads of
    more than `words.PAYLOAD_BYTES` are not looked at."""
    words: Sequence[str] | None = None
    """Each must be found somewhere in the task: see `words.is_found`."""
    secret_keys: Sequence[str] | None = None
    """Where no word is looked for: values under names like these; None: values of tags and payloads at all."""

    @property
    def searches(self) -> bool:
        """Asks for what no index has, so that tasks have to be looked at one by one."""
        return any(getattr(self, name) for name in SEARCHED)

    @property
    def without_search(self) -> Filter:
        """The conditions that an index can tell of."""
        return replace(self, **dict.fromkeys(SEARCHED), ended_after=None, ended_before=None)

    @property
    def by_end(self) -> bool:
        """Asks when tasks ended, so for none but those that have."""
        return self.ended_after is not None or self.ended_before is not None

    def tag_choices(self) -> list[tuple[str, list[Any]]]:
        """Each key must have one of its values."""
        exact = [(key, [value]) for key, value in (self.tags or {}).items()]
        return exact + [(key, _written_as(text)) for key, text in (self.tag_texts or {}).items()]

    def payload_choices(self) -> list[tuple[tuple[str, ...], list[Any]]]:
        """At each place must be one of its values."""
        return [(path, _written_as(text)) for path, text in (self.payload_texts or {}).items()]


SEARCHED = ("tags", "tag_texts", "error_text", "short_ids", "payload_texts", "words")
"""The conditions of a filter for which tasks have to be looked at one by one."""


def _written_as(text: str) -> list[Any]:
    """The values that are written like this: the text itself, and a number, a truth value or null."""
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    scalar = value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return [text, value] if scalar and text == text.strip() else [text]


class KeptLinks(NamedTuple):
    """What is kept of the links of tasks beside their records, for another queue."""

    feeds: Sequence[tuple[UUID, Sequence[UUID]]] = ()
    """Of those that others wait for: the others."""
    steps: Sequence[tuple[UUID, str, str]] = ()
    """Of those that wait for many: which, in the store's own words."""


NO_LINKS = KeptLinks()


@dataclass(frozen=True, slots=True)
class Page:
    """Tasks of a list, and where the next page begins."""

    tasks: list[Task]
    next_cursor: UUID | None
    """The id to continue behind; None at the end. A search that has looked at up to `SEARCHED_TASKS` has one too,
    whatever it found."""


class EndedCursor(NamedTuple):
    """A place in the order of ends. An id alone would not do: the task may be retried or deleted meanwhile."""

    completed_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class EndedPage:
    """The same, by the time of their end."""

    tasks: list[Task]
    next_cursor: EndedCursor | None
    """As in `Page`. Stores may look at `SEARCHED_TASKS` at a time whatever is asked for."""


class Count(NamedTuple):
    value: int
    capped: bool
    """True: there are more than `value`, or a search has looked at up to `SEARCHED_TASKS` and there are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameStats:
    """Counts of one type. Active states are counted, finished ones come from the counters that every settle keeps."""

    pending: int = 0
    running: int = 0
    waiting: int = 0
    """Failed, with a retry to come. `failed` does not include them."""
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    oldest_due_seconds: float | None = None
    """How long the longest-waiting due task of this type has been due."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of the series behind charts: moves of one kind in one minute."""

    minute: datetime
    name: str
    state: str
    """completed, failed, cancelled, or `retried` for a failure with attempts left; `waited` for how long tasks waited
    before their first start; `arrived` for those that came, also of all types together, under the empty name."""
    bucket: int
    """Index into decide.LATENCY_BOUNDS_MS; UNTIMED for moves that ran nothing."""
    count: int
    run_ms: int
    """Of `waited`, the time that they waited."""


class Age(NamedTuple):
    """One sample of the backlog, or the most of several."""

    minute: datetime
    name: str
    """Empty for all types; a type without one had nothing due when the others were sampled."""
    seconds: float
    """How long the longest-waiting due task had been due."""
    depth: int = 0
    """How many were due and waited."""


class Failure(NamedTuple):
    """What is known of a final failure without its task's payload."""

    id: UUID
    name: str
    completed_at: datetime
    error: str
    """The last `ERROR_END` characters of it: there a traceback says what happened."""


class VersionStart(NamedTuple):
    """When a version of the workers' application was first started."""

    version: str
    started_ms: int
    """Since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A key to the REST API. Only its hash is kept."""

    id: str
    """Public: what lists and revocations name it by."""
    label: str
    role: str
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    created_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what: an operator's action on a task, on many, or on a control."""

    actor: str
    action: str
    task_id: UUID | None = None
    name: str | None = None
    detail: str = "{}"
    """JSON text."""
    bulk_id: UUID | None = None
    """The mass action that it is a part of: what was done to one task, or, without a task, one of its batches."""
    done: int | None = None
    """Of a batch: how many tasks it was done to. Where batches are folded, of all of them."""
    at: datetime | None = None
    """The store's clock; None until it is stored."""
    cursor: str | None = None
    """Its place in the trail, in the store's own words; None until it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries; None is no condition."""

    task_id: UUID | None = None
    actor: str | None = None
    action: str | None = None
    name: str | None = None
    after: datetime | None = None
    """From this instant on."""
    before: datetime | None = None
    bulk_id: UUID | None = None
    """The batches of this mass action."""
    folded: bool = False
    """A mass action is one entry, its first batch with the count of all; what it did to each task is left out. With
    `name` it is the count of that type."""


ALL_AUDIT = AuditFilter()

Audit: TypeAlias = Callable[[Sequence[T]], Sequence[AuditEntry]]
"""The entries of an operator's action, given what it was applied to: asked in each transaction, between the guarded
write and the commit, and not at all where nothing was applied."""


class Finding(NamedTuple):
    level: str
    """ok, warning or error"""
    subject: str
    message: str
    advice: str = ""
