"""tasklib: a durable task queue. Decorate a function, submit it, and it runs."""

from typing import TYPE_CHECKING

__version__ = "0.2.0"
__distribution__ = "tasklib-queue"

from tasklib.core.errors import (
    FlowNotFound,
    FlowNotSent,
    InvalidConfig,
    InvalidInput,
    InvalidOption,
    InvalidTask,
    InvalidValue,
    InvalidWorkerId,
    MaxAttemptsReached,
    MissingExtra,
    QueueInUse,
    ScheduleConflict,
    ScheduleNotFound,
    SchemaMismatch,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreGone,
    StoreRefused,
    StoreUnavailable,
    TaskAlreadyClaimed,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskDefinitionError,
    TaskFailed,
    TaskLibError,
    TaskNotClaimed,
    TaskNotDue,
    TaskNotFailed,
    TaskNotFound,
    TaskNotTerminal,
    TaskValidationError,
    Unsupported,
    WaitTimeout,
    WorkerExhausted,
    WorkerNotFound,
    WorkerStopped,
    WouldDeadlock,
    WrongWorker,
)
from tasklib.core.outcome import Fail, Retry, Snooze, TaskStopped, TaskTimedOut

if TYPE_CHECKING:
    from tasklib.api.decorator import TaskFunction, task
    from tasklib.api.flow import Flow, flow, get_flow
    from tasklib.api.fluent import tq
    from tasklib.api.functions import (
        cancel_task,
        cancel_task_async,
        delete_task,
        delete_task_async,
        get_registered_tasks,
        get_task,
        get_task_async,
        list_tasks,
        list_tasks_async,
        retry_task,
        retry_task_async,
        submit_many,
        submit_many_sync,
        submit_task,
        submit_task_sync,
        wait_for,
        wait_for_async,
    )
    from tasklib.api.handle import TaskHandle
    from tasklib.api.manager import AsyncTaskManager, ManagedTask, TaskManager, TaskStatus
    from tasklib.api.queue import TaskQueue
    from tasklib.api.remote import RemoteQueue
    from tasklib.api.schedules import ScheduleHandle, schedules
    from tasklib.core.cron import cron, every
    from tasklib.core.flows import FlowSummary
    from tasklib.core.registry import TaskOptions
    from tasklib.core.retry import RetryPolicy
    from tasklib.core.schedules import Schedule
    from tasklib.core.task import (
        Task,
        TaskState,
        has_error,
        has_result,
        is_completed,
        is_failed,
        is_pending,
        is_running,
        is_terminal,
    )
    from tasklib.core.unique import Unique, debounce, throttle
    from tasklib.engine.config import Config
    from tasklib.engine.current import RunningTask, current_task
    from tasklib.engine.default import init
    from tasklib.engine.log_context import TaskLogFilter
    from tasklib.engine.middleware import Middleware, Submission, TaskEvent
    from tasklib.worker.worker import TaskWorker
else:
    from importlib import import_module as _import_module

    # Half of what `import tasklib` would take is for names that a program does not use. So each is imported when it is
    # first asked for: a web application never loads the worker, nor the command line all APIs.
    _NAMES = {
        "tasklib.api.decorator": "TaskFunction task",
        "tasklib.api.flow": "Flow flow get_flow",
        "tasklib.api.fluent": "tq",
        "tasklib.api.functions": (
            "cancel_task cancel_task_async delete_task delete_task_async get_registered_tasks get_task "
            "get_task_async list_tasks list_tasks_async retry_task retry_task_async submit_many submit_many_sync "
            "submit_task submit_task_sync wait_for wait_for_async"
        ),
        "tasklib.api.handle": "TaskHandle",
        "tasklib.api.manager": "AsyncTaskManager ManagedTask TaskManager TaskStatus",
        "tasklib.api.queue": "TaskQueue",
        "tasklib.api.remote": "RemoteQueue",
        "tasklib.api.schedules": "ScheduleHandle schedules",
        "tasklib.core.cron": "cron every",
        "tasklib.core.flows": "FlowSummary",
        "tasklib.core.registry": "TaskOptions",
        "tasklib.core.retry": "RetryPolicy",
        "tasklib.core.schedules": "Schedule",
        "tasklib.core.task": (
            "Task TaskState has_error has_result is_completed is_failed is_pending is_running is_terminal"
        ),
        "tasklib.core.unique": "Unique debounce throttle",
        "tasklib.engine.config": "Config",
        "tasklib.engine.current": "RunningTask current_task",
        "tasklib.engine.default": "init",
        "tasklib.engine.log_context": "TaskLogFilter",
        "tasklib.engine.middleware": "Middleware Submission TaskEvent",
        "tasklib.worker.worker": "TaskWorker",
    }
    _MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

    def __getattr__(name: str) -> object:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module 'tasklib' has no attribute {name!r}")
        value = globals()[name] = getattr(_import_module(module), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "AsyncTaskManager",
    "Config",
    "Fail",
    "Flow",
    "FlowNotFound",
    "FlowNotSent",
    "FlowSummary",
    "InvalidConfig",
    "InvalidInput",
    "InvalidOption",
    "InvalidTask",
    "InvalidValue",
    "InvalidWorkerId",
    "ManagedTask",
    "MaxAttemptsReached",
    "Middleware",
    "MissingExtra",
    "QueueInUse",
    "RemoteQueue",
    "Retry",
    "RetryPolicy",
    "RunningTask",
    "Schedule",
    "ScheduleConflict",
    "ScheduleHandle",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Snooze",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreGone",
    "StoreRefused",
    "StoreUnavailable",
    "Submission",
    "Task",
    "TaskAlreadyClaimed",
    "TaskCancelled",
    "TaskCompleted",
    "TaskConflict",
    "TaskDefinitionError",
    "TaskEvent",
    "TaskFailed",
    "TaskFunction",
    "TaskHandle",
    "TaskLibError",
    "TaskLogFilter",
    "TaskManager",
    "TaskNotClaimed",
    "TaskNotDue",
    "TaskNotFailed",
    "TaskNotFound",
    "TaskNotTerminal",
    "TaskOptions",
    "TaskQueue",
    "TaskState",
    "TaskStatus",
    "TaskStopped",
    "TaskTimedOut",
    "TaskValidationError",
    "TaskWorker",
    "Unique",
    "Unsupported",
    "WaitTimeout",
    "WorkerExhausted",
    "WorkerNotFound",
    "WorkerStopped",
    "WouldDeadlock",
    "WrongWorker",
    "cancel_task",
    "cancel_task_async",
    "cron",
    "current_task",
    "debounce",
    "delete_task",
    "delete_task_async",
    "every",
    "flow",
    "get_flow",
    "get_registered_tasks",
    "get_task",
    "get_task_async",
    "has_error",
    "has_result",
    "init",
    "is_completed",
    "is_failed",
    "is_pending",
    "is_running",
    "is_terminal",
    "list_tasks",
    "list_tasks_async",
    "retry_task",
    "retry_task_async",
    "schedules",
    "submit_many",
    "submit_many_sync",
    "submit_task",
    "submit_task_sync",
    "task",
    "throttle",
    "tq",
    "wait_for",
    "wait_for_async",
]

for _public in [globals().get(_name) for _name in __all__]:
    if isinstance(_public, type) and issubclass(_public, BaseException):
        _public.__module__ = "tasklib"  # tracebacks name an exception as people import it
