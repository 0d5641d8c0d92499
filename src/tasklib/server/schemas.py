"""The JSON of the API, in camelCase."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tasklib.core.task import TaskState
from tasklib.engine.diagnose import Cause, WorkerState
from tasklib.engine.filters import MOST_WORDS
from tasklib.server.fields import (
    Attempts,
    Cursor,
    Flag,
    Instant,
    Key,
    Length,
    Name,
    Priority,
    SearchText,
    Seconds,
    ShortId,
    split_by_comma,
)
from tasklib.server.tokens import Role

PAGE_LIMIT = 100
DEFAULT_PAGE = 50
MOST_LINKS = 10_000
"""Tasks that a submit may name to wait for, or to let wait."""
MOST_INPUTS = 1_000
LARGEST_OFFSET = 100_000
"""Further on, pages go by cursor: an offset has to walk over all that it skips."""


class RequestModel(BaseModel):
    """What a client sends. Unknown fields are refused, our own spelling of them too."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class ResponseModel(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Status(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def state(self) -> str:
        return TaskState.RUNNING if self is Status.PROCESSING else self.value


class Finished(StrEnum):
    """What a clean-up may delete."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Sort(StrEnum):
    """The order of a list."""

    CREATED = "created"
    ENDED = "ended"
    DURATION = "duration"


class ExportFormat(StrEnum):
    CSV = "csv"
    JSON = "json"


class LargeField(StrEnum):
    """What a list sends in full only when asked for."""

    PAYLOAD = "payload"
    RESULT = "result"
    ERROR = "error"
    HISTORY = "history"


# -- submit -----------------------------------------------------------------------------------------------------------


class UniqueRule(RequestModel):
    """One task of its type for a key: `Unique`, `debounce` and `throttle` of the library."""

    key: Key
    until: Literal["started", "finished", "elapsed"] = Field(
        default="finished", description="When the key is given up; elapsed: `seconds` after the submit (a throttle)."
    )
    conflict: Literal["join", "replace"] = Field(
        default="join", description="replace: what has not started takes over the newest payload and options."
    )
    seconds: Length | None = Field(
        default=None,
        description="With elapsed; or with started and replace: it starts so long after the latest.",
    )
    at_most: Length | None = Field(default=None, description="And not later than this after the first (a debounce).")


class CommonOptions(RequestModel):
    """What can be said of a task, however it is submitted."""

    max_attempts: Attempts | None = Field(default=None, description="3 unless given; 0 is unlimited.")
    priority: Priority | None = Field(default=None, description="Higher goes first; 0 unless given.")
    tags: dict[str, Any] | None = None
    timeout_seconds: Seconds | None = None


On: TypeAlias = Literal["success", "end"]
ON: Any = Field(
    default=None,
    description="success, unless given: all it waits for must complete, else it is cancelled. "
    "end: whatever becomes of them.",
)


class SubmitOptions(CommonOptions):
    run_after: Instant | None = None
    idempotency_key: Key | None = Field(default=None, description="One task for each key, however often it is sent.")
    unique: UniqueRule | None = None


class Options(SubmitOptions):
    after: list[UUID] | None = Field(
        default=None, max_length=MOST_LINKS, description="Tasks that it waits for; they may be over already."
    )
    on: On | None = ON
    before: list[UUID] | None = Field(
        default=None, max_length=MOST_LINKS, description="Tasks that wait already, and are to wait for this one, too."
    )
    inputs: dict[str, UUID] | None = Field(
        default=None,
        max_length=MOST_INPUTS,
        description="Where results of others go: a JSON pointer into the payload, and the task, which it waits for.",
    )


class Submit(RequestModel):
    type: Name
    payload: Any = Field(description="Any JSON value; for a type that is known or published, its arguments.")
    options: Options | None = None


VALIDATED: Any = Field(description="Whether the payload was checked; false: nobody has told what the type takes.")


class Submitted(ResponseModel):
    id: UUID
    type: str
    status: str
    created_at: datetime
    validated: bool = VALIDATED


# -- tasks ------------------------------------------------------------------------------------------------------------


class Attempt(ResponseModel):
    """An attempt that did not complete."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    attempt: int | None = None
    worker: str | None = None
    started: str | None = None
    ended: str | None = None
    error: str | None = None
    type: str | None = Field(default=None, description="The class of the exception, with its module.")
    lost: bool = Field(default=False, description="Its worker vanished, or (type ChildProcessDied) its child process.")
    run_ms: int | None = Field(default=None, description="How long the handler ran; null: not known, or less than 1.")
    snoozed: float | None = Field(
        default=None, description="The handler asked to run again so many seconds later: the attempt does not count."
    )


class AfterView(ResponseModel):
    """What a task waits, or waited, for."""

    on: str = Field(description="success: all of them must complete; end: whatever becomes of them.")
    parents: list[UUID] | int = Field(description="Their ids; of more than 1,000, how many.")
    inputs: dict[str, UUID] = Field(description="Where their results go: JSON pointers into the payload.")
    delay: float | None = Field(description="Seconds that it waits from then on; null: none.")
    run_at: str | None = Field(description="Not before this time, either; null: at once.")
    cut_by: UUID | None = Field(description="The task whose end cancelled it; null: none did.")


class TaskView(ResponseModel):
    id: UUID
    type: str
    payload: Any
    status: str = Field(description="pending, processing, completed, failed or cancelled.")
    attempts: int
    max_attempts: int = Field(description="0 is unlimited.")
    last_attempt_at: datetime | None
    next_retry_at: datetime | None = Field(description="Set while a failed task waits for its retry.")
    result: Any
    error: str | None
    run_after: datetime | None = Field(description="Null: when it was submitted, or once all it waits for is over.")
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    worker_id: str | None = Field(description="Who runs it.")
    last_worker_id: str | None = Field(description="Who ran the latest attempt that is over.")
    run_ms: int | None = Field(description="How long the handler ran in that attempt; null: not known.")
    locked_until: datetime | None
    timeout_seconds: int | None
    priority: int
    tags: dict[str, Any]
    cancel_requested_at: datetime | None
    version: int
    idempotency_key: str | None
    unique_key: str | None = Field(description="No other task of its type has it; null once it is given up.")
    copy_of: UUID | None = Field(description="The task that it repeats under an id of its own.")
    waits: int = Field(description="How many tasks it still waits for.")
    after: AfterView | None = Field(description="What it waits, or waited, for; null for most.")
    flow_id: UUID | None = Field(description="The flow that it is in: the id of the flow's first task.")
    history: list[Attempt]


class Found(TaskView):
    """The task that an idempotency key or a unique key stands for."""

    validated: bool = VALIDATED
    replaced: bool = Field(description="It has taken over what was sent.")


class WaitingReason(ResponseModel):
    cause: Cause
    text: str
    until: datetime | None = Field(description="When time alone ends it; null: somebody has to, or a task's end.")


class LinkedTask(ResponseModel):
    id: UUID
    type: str
    status: str


class LinkedTasks(ResponseModel):
    tasks: list[LinkedTask] = Field(description="The first 20 that are there; parents that are not over come first.")
    total: int
    unfinished: int = Field(description="Of all; of parents, those that it still waits for.")


class TaskDetail(TaskView):
    waiting_for: list[WaitingReason] = Field(description="Why it has not started; empty once it has.")
    parents: LinkedTasks = Field(description="What it waits, or waited, for.")
    feeds: LinkedTasks = Field(description="The tasks that wait, or waited, for this one.")


PREVIEW = "The first 200 characters of {0} where that is larger, and `{0}` is null; null where `{0}` is whole."


class ListedTask(TaskView):
    """A task in a list: what is large is cut, unless `fields` asks for it."""

    payload_preview: str | None = Field(default=None, description=PREVIEW.format("payload"))
    payload_bytes: int = Field(default=0, description="Size of the whole as JSON.")
    result_preview: str | None = Field(default=None, description=PREVIEW.format("result"))
    result_bytes: int = Field(default=0, description="Size of the whole as JSON; 0: there is none.")
    error_preview: str | None = Field(default=None, description=PREVIEW.format("error"))
    error_bytes: int = Field(default=0, description="Size of the whole; 0: there is none.")
    error_line: str | None = Field(default=None, description="What the error says in the end, up to 200 characters.")
    history: list[Attempt] = Field(
        description="The latest entry only, its error cut after 200 characters, unless `fields` asks for all."
    )


class TaskPage(ResponseModel):
    tasks: list[ListedTask]
    total: int
    total_capped: bool = Field(
        description="True: there are more than `total`, or a search has not looked at all tasks."
    )
    limit: int
    offset: int
    next_cursor: str | None = Field(
        description="Send as `cursor` for the next page; null at the end. A search by tag, error or end that has "
        "looked at up to 20,000 tasks has one even if it found nothing: the next page looks at the next ones."
    )


class Retried(ResponseModel):
    id: UUID
    status: str
    attempts: int
    next_retry_at: datetime | None


class Copy(RequestModel):
    payload: Any = Field(
        default=None,
        description="Other arguments; those of the task unless given. What is masked in them, as the API shows it, is "
        "taken from the task.",
    )


SHORT_IDS: Any = Field(max_length=PAGE_LIMIT, description="The last 12 digits of an id, as lists show them.")
IN_PAYLOAD = (
    "The value under that name in the payload is this text, or the number, true, false or null that is written so; "
    "names with dots between them lead further in. Payloads of more than 10,000 bytes are not looked at."
)
IN_A_TASK = (
    "In the type, the idempotency key or the error, or in a value of the tags or of the payload (up to 10,000 bytes), "
    "or the last 12 digits of the id. All given words must be found."
)


class QueryFilter(RequestModel):
    """Which tasks, in the query of a request. All given conditions must hold."""

    id: Annotated[list[UUID] | None, Field(max_length=PAGE_LIMIT, description="May be repeated.")] = None
    short_id: Annotated[list[ShortId] | None, SHORT_IDS] = None
    type: Annotated[list[Name] | None, Field(description="May be repeated.")] = None
    status: Annotated[list[Status] | None, Field(description="May be repeated.")] = None
    word: Annotated[list[SearchText] | None, Field(max_length=MOST_WORDS, description=IN_A_TASK)] = None
    tag: Annotated[
        list[SearchText] | None,
        Field(
            description="key:value; may be repeated. The value is a text, or the number, true, false or null that is "
            "written so."
        ),
    ] = None
    payload: Annotated[
        list[SearchText] | None,
        Field(max_length=MOST_WORDS, description=f"key:value; may be repeated. {IN_PAYLOAD}"),
    ] = None
    idempotency_key: Key | None = None
    flow: Annotated[UUID | None, Field(description="In this flow.")] = None
    name_prefix: Name | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    ended_after: Instant | None = None
    ended_before: Instant | None = None
    error: Annotated[SearchText | None, Field(description="Text in the error, taken literally.")] = None
    worker: Annotated[SearchText | None, Field(description="Running under this worker.")] = None
    finished: Annotated[
        bool | None, Field(description="With status=failed: true for final failures, false for waiting retries.")
    ] = None
    fields: Annotated[
        list[LargeField] | None,
        BeforeValidator(split_by_comma),
        Field(description="Sent whole, however large: payload, result, error, history; by commas or repeated."),
    ] = None


class ListQuery(QueryFilter):
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = DEFAULT_PAGE
    offset: Annotated[int, Field(ge=0, le=LARGEST_OFFSET)] = 0
    cursor: Cursor | None = None
    sort: Annotated[
        Sort,
        Field(
            description="ended: what is over, latest end first; where status is failed or cancelled, or both. "
            "duration: the longest first, among the newest 10,000 that match; pages by offset."
        ),
    ] = Sort.CREATED


class ExportQuery(QueryFilter):
    format: ExportFormat
    cursor: Annotated[UUID | None, Field(description="Where the file before ended, to go on from there.")] = None


class Export(ResponseModel):
    """All tasks that match, as `format=json` writes them."""

    tasks: list[ListedTask]
    next_cursor: UUID | None = Field(description="Set where there are more; send it as `cursor`.")


# -- bulk -------------------------------------------------------------------------------------------------------------


class BulkFilter(RequestModel):
    """All given conditions must hold; an empty filter is everything."""

    type: list[Name] | None = Field(default=None, max_length=1000)
    status: list[Status] | None = None
    tags: dict[str, Any] | None = Field(
        default=None, description="A text also finds the number, true, false or null that is written so, as in lists."
    )
    name_prefix: Name | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    ended_after: Instant | None = None
    ended_before: Instant | None = None
    error: SearchText | None = None
    worker: SearchText | None = None
    finished: Flag | None = None
    ids: list[UUID] | None = Field(default=None, max_length=1000)
    short_ids: Annotated[list[ShortId] | None, SHORT_IDS] = None
    idempotency_key: Key | None = None
    flow: UUID | None = None
    payload: dict[str, Any] | None = Field(default=None, max_length=MOST_WORDS, description=IN_PAYLOAD)
    words: list[SearchText] | None = Field(default=None, max_length=MOST_WORDS, description=IN_A_TASK)


BULK_ID = "The `bulkId` of the answer before, when it is sent again to go on: one mass action in the audit trail."


class BulkSteps(RequestModel):
    dry_run: Flag = False
    cursor: UUID | None = Field(default=None, description="The `nextCursor` of the answer before, to go on from there.")
    bulk_id: UUID | None = Field(default=None, description=BULK_ID)


class Bulk(BulkSteps):
    filter: BulkFilter


class BulkDone(ResponseModel):
    matched: int = Field(description="How many tasks the action can be done to (dry run), or was done to.")
    matched_capped: bool = Field(
        description="True: there are more than `matched`, or a search counted among the newest "
        "20,000 tasks that meet the other conditions; the action itself goes on to the end."
    )
    done: int
    more: bool = Field(description="True: time ran out before all were done; send it again with `nextCursor`.")
    next_cursor: UUID | None = Field(description="Send as `cursor` to go on; null at the end.")
    bulk_id: UUID | None = Field(description="Of the audit trail: send it with `cursor`. Null for a dry run.")
    dry_run: bool


class Cleaned(ResponseModel):
    deleted: int
    matched: int = Field(description="How many there are to delete (dry run), or were deleted.")
    more: bool = Field(description="True: time ran out before all were deleted; send it again.")
    bulk_id: UUID | None = Field(description="Of the audit trail: send it along. Null for a dry run.")
    dry_run: bool


class CleanupQuery(RequestModel):
    older_than: Instant
    status: Annotated[list[Finished] | None, Field(description="completed unless given; may be repeated.")] = None
    dry_run: Annotated[bool, Field(description="Count only.")] = False
    bulk_id: Annotated[UUID | None, Field(description=BULK_ID)] = None


# -- figures ----------------------------------------------------------------------------------------------------------


class Counts(ResponseModel):
    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = Field(default=0, description="All with status failed, those that wait for a retry too.")
    cancelled: int = 0
    waiting: int = Field(default=0, description="Of the failed, those that wait for a retry.")


class TypeCounts(Counts):
    oldest_due_seconds: float | None = None
    handled: bool = Field(description="False: no live worker has a handler for this type.")


class Stats(Counts):
    by_type: dict[str, TypeCounts]


class WorkerView(ResponseModel):
    id: str
    hostname: str
    pid: int
    version: str | None = Field(description="Of the application that it runs; null: not known.")
    types: list[str]
    queues: list[str] = Field(description="The queues of these types.")
    concurrency: int = Field(description="How many tasks it runs at once; 0 while it stops.")
    running: int = Field(description="0 for one that is lost or has stopped.")
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    seconds_since_seen: float
    state: WorkerState = Field(
        description="stopping: finishes what it runs; lost: not heard of for too long; what it ran is taken over."
    )
    live: bool = Field(description="Whether it takes tasks.")
    drain_requested_at: datetime | None = Field(description="When somebody asked it to finish what it runs and to end.")
    drain_requested_by: str | None


class WorkerDetail(WorkerView):
    earlier: list[WorkerView] = Field(
        description="Its restarts: those of its name, or of its host where it has none, that ended in the last day "
        "before it started, latest first."
    )


class Workers(ResponseModel):
    workers: list[WorkerView]


# -- people -----------------------------------------------------------------------------------------------------------


class Login(RequestModel):
    token: Annotated[str, Field(min_length=1, max_length=1000)]


class About(ResponseModel):
    version: str = Field(description="Of tasklib.")
    environment: str | None = Field(description="What the operator calls this queue; null: nothing.")
    engine: str = Field(description="What keeps the tasks.")
    server_time: datetime = Field(description="By the clock that decides what is due.")


class Session(ResponseModel):
    label: str
    role: Role
    may: list[str]


class AuditView(ResponseModel):
    at: datetime | None
    actor: str
    action: str
    task_id: UUID | None
    type: str | None
    detail: Any
    bulk_id: UUID | None = Field(description="The mass action that it is a part of.")
    done: int | None = Field(description="How many tasks a batch was done to; folded: the whole mass action.")


class Audit(ResponseModel):
    entries: list[AuditView]
    next_cursor: str | None


class Health(ResponseModel):
    status: str


# -- problems ---------------------------------------------------------------------------------------------------------


class Fault(ResponseModel):
    field: str
    message: str


class Problem(ResponseModel):
    """RFC 9457, with a stable `code`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    errors: list[Fault] | None = None
    current_status: str | None = Field(default=None, description="The status that the task was found in.")
