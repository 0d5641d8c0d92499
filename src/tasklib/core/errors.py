"""Every error tasklib raises, as one tree. Each class has a stable `code`; data sits in attributes, not only in text.

TaskLibError
├── InvalidInput (ValueError)      a value, option or setting that is refused at the border
│   ├── TaskValidationError (TypeError)   arguments that the task's model refuses
│   ├── InvalidValue                      a payload, result or tag that is not portable JSON
│   ├── InvalidOption                     an option out of its range, or unknown
│   ├── InvalidConfig                     a setting out of its range, or unknown
│   ├── InvalidTask, InvalidWorkerId      the claim API's words for the same
│   └── TaskDefinitionError               a function that cannot be a task
├── TaskConflict                   the task is not in a state that allows this, or a unique index of yours is against it
│   ├── TaskAlreadyClaimed, TaskNotClaimed, WrongWorker, TaskCompleted, TaskFailed, TaskCancelled,
│   └── MaxAttemptsReached, TaskNotTerminal, TaskNotDue, TaskNotFailed, ScheduleConflict
├── TaskNotFound, ScheduleNotFound, FlowNotFound (LookupError)
├── FlowNotSent                    a task of a flow that is not stored, or not yet
├── WaitTimeout (TimeoutError)
├── WorkerNotFound (LookupError)
├── WorkerStopped                  it has ended, and nothing can be asked of it
├── WorkerExhausted                every slot is taken by a task that does not end
├── WouldDeadlock                  every slot would wait for tasks that need one
├── MissingExtra, Unsupported, QueueInUse
└── StoreError
    ├── StoreUnavailable           passing: try again
    │   └── StoreGone              until the process starts anew: its file was deleted, moved or replaced
    ├── StoreBusy                  passing: the store did not answer within its deadline
    ├── StoreFull                  passing once there is room
    ├── StoreRefused               lasting: wrong password, no such database, a trigger that drops what is stored
    ├── SchemaMismatch             lasting: older, newer or foreign schema
    └── StoreClosed
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tasklib.installed import DISTRIBUTION


class TaskLibError(Exception):
    """Base of everything tasklib raises on purpose."""

    code: ClassVar[str] = "tasklib_error"


class InvalidInput(TaskLibError, ValueError):
    """Refused at the border; nothing was written. `field` names what was wrong."""

    code = "invalid_input"
    at = ""
    """Of several tasks that were described together, which one: `tasks.3`."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class TaskValidationError(InvalidInput, TypeError):
    """The arguments do not fit the task. `errors` holds Pydantic's list, one entry for each field."""

    code = "invalid_arguments"

    def __init__(self, message: str, *, errors: list[dict[str, object]], field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.errors = errors


class InvalidValue(InvalidInput):
    code = "invalid_value"


class InvalidOption(InvalidInput):
    code = "invalid_option"


class InvalidConfig(InvalidInput):
    code = "invalid_config"


class InvalidTask(InvalidInput):
    code = "invalid_task"


class InvalidWorkerId(InvalidInput):
    code = "invalid_worker_id"


class TaskDefinitionError(InvalidInput):
    code = "invalid_task_definition"


class TaskNotFound(TaskLibError, LookupError):
    code = "task_not_found"

    def __init__(self, task_id: UUID | str | None = None, *, key: str | None = None) -> None:
        super().__init__(f"no task with id {task_id}" if key is None else f"no task with idempotency key {key!r}")
        self.task_id = task_id
        self.key = key


class TaskConflict(TaskLibError):
    """The task is in a state that does not allow this. `state` is the state it was found in; where the conflict is
    about a claim, `version` and `worker_id` say whose it is now. Also what a unique index that somebody put on the
    table keeps out: the text names the index."""

    code = "task_conflict"

    def __init__(
        self,
        message: str,
        *,
        task_id: UUID | None = None,
        state: str | None = None,
        version: int | None = None,
        worker_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.state = state
        self.version = version
        self.worker_id = worker_id


class TaskAlreadyClaimed(TaskConflict):
    code = "task_already_claimed"


class TaskNotClaimed(TaskConflict):
    code = "task_not_claimed"


class WrongWorker(TaskConflict):
    code = "wrong_worker"


class TaskCompleted(TaskConflict):
    code = "task_completed"


class TaskFailed(TaskConflict):
    code = "task_failed"


class TaskCancelled(TaskConflict):
    code = "task_cancelled"


class MaxAttemptsReached(TaskConflict):
    code = "max_attempts_reached"


class TaskNotTerminal(TaskConflict):
    code = "task_not_terminal"


class TaskNotDue(TaskConflict):
    code = "task_not_due"


class TaskNotFailed(TaskConflict):
    code = "task_not_failed"


class ScheduleConflict(TaskConflict):
    """The schedule is in a state that does not allow this."""

    code = "schedule_conflict"


class ScheduleNotFound(TaskLibError, LookupError):
    code = "schedule_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule is named {name!r:.80}")
        self.name = name


class FlowNotFound(TaskLibError, LookupError):
    code = "flow_not_found"

    def __init__(self, flow_id: UUID | str) -> None:
        super().__init__(f"no flow with id {flow_id}")
        self.flow_id = flow_id


class FlowNotSent(TaskLibError):
    """A flow's tasks are stored when its block has ended; until then, and if it raises, there are none."""

    code = "flow_not_sent"

    def __init__(self, message: str, *, task_id: UUID | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id


class WaitTimeout(TaskLibError, TimeoutError):
    """`state` is the state the task was last seen in, None if it was not."""

    code = "wait_timeout"

    def __init__(self, message: str, *, task_id: UUID | None = None, state: str | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.state = state


class WorkerNotFound(TaskLibError, LookupError):
    code = "worker_not_found"

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"there is no worker {worker_id!r:.120}; those that ended are forgotten after a day")
        self.worker_id = worker_id


class WorkerStopped(TaskLibError):
    """It has ended, and nothing can be asked of it."""

    code = "worker_stopped"


class WorkerExhausted(TaskLibError):
    """Every slot of a worker is taken by a handler that does not end. It has signed off; start a new process."""

    code = "worker_exhausted"


class WouldDeadlock(TaskLibError):
    """A handler was about to wait for a task of its own queue, with every slot of its worker waiting so."""

    code = "would_deadlock"

    def __init__(self, message: str, *, task_id: UUID | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id


class MissingExtra(TaskLibError, ImportError):
    """An optional dependency is not installed; the text holds the command that installs it."""

    code = "missing_extra"

    def __init__(self, extra: str, package: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}; install it with: pip install '{DISTRIBUTION}[{extra}]'"
        )
        self.extra = extra


class Unsupported(TaskLibError):
    """This backend cannot do what was asked, and says so instead of dropping it."""

    code = "unsupported"


class QueueInUse(TaskLibError):
    """What was asked for needs a queue that nobody works on."""

    code = "queue_in_use"


class StoreError(TaskLibError):
    code = "store_error"


class StoreUnavailable(StoreError):
    code = "store_unavailable"


class StoreGone(StoreUnavailable):
    code = "store_gone"


class StoreBusy(StoreError):
    code = "store_busy"


class StoreFull(StoreError):
    code = "store_full"


class StoreRefused(StoreError):
    code = "store_refused"


class SchemaMismatch(StoreError):
    code = "schema_mismatch"


class StoreClosed(StoreError):
    code = "store_closed"


TRANSIENT: tuple[type[StoreError], ...] = (StoreUnavailable, StoreBusy, StoreFull)
"""Errors that pass by themselves: workers retry them, HTTP answers 503."""

TRANSIENT_OR_SLOW: tuple[type[Exception], ...] = (*TRANSIENT, TimeoutError)
"""The same, for calls that were given a deadline of their own."""
