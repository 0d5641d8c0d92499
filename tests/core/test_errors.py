"""One tree, each class with its own stable code."""

import inspect
import re

import pytest

from tasklib.core import errors
from tasklib.core.errors import (
    TRANSIENT,
    InvalidInput,
    MissingExtra,
    StoreError,
    TaskConflict,
    TaskLibError,
    TaskNotFound,
    TaskValidationError,
)
from tasklib.core.ids import uuid7

# Codes are kept for ever: clients compare them.
CODES = {
    "TaskLibError": "tasklib_error",
    "InvalidInput": "invalid_input",
    "TaskValidationError": "invalid_arguments",
    "InvalidValue": "invalid_value",
    "InvalidOption": "invalid_option",
    "InvalidConfig": "invalid_config",
    "InvalidTask": "invalid_task",
    "InvalidWorkerId": "invalid_worker_id",
    "TaskDefinitionError": "invalid_task_definition",
    "TaskNotFound": "task_not_found",
    "ScheduleConflict": "schedule_conflict",
    "ScheduleNotFound": "schedule_not_found",
    "TaskConflict": "task_conflict",
    "TaskAlreadyClaimed": "task_already_claimed",
    "TaskNotClaimed": "task_not_claimed",
    "WrongWorker": "wrong_worker",
    "TaskCompleted": "task_completed",
    "TaskFailed": "task_failed",
    "TaskCancelled": "task_cancelled",
    "MaxAttemptsReached": "max_attempts_reached",
    "TaskNotTerminal": "task_not_terminal",
    "TaskNotDue": "task_not_due",
    "TaskNotFailed": "task_not_failed",
    "WaitTimeout": "wait_timeout",
    "WorkerNotFound": "worker_not_found",
    "WorkerStopped": "worker_stopped",
    "WorkerExhausted": "worker_exhausted",
    "FlowNotFound": "flow_not_found",
    "FlowNotSent": "flow_not_sent",
    "WouldDeadlock": "would_deadlock",
    "MissingExtra": "missing_extra",
    "Unsupported": "unsupported",
    "QueueInUse": "queue_in_use",
    "StoreError": "store_error",
    "StoreUnavailable": "store_unavailable",
    "StoreGone": "store_gone",
    "StoreBusy": "store_busy",
    "StoreFull": "store_full",
    "StoreRefused": "store_refused",
    "SchemaMismatch": "schema_mismatch",
    "StoreClosed": "store_closed",
}

CLASSES = {
    name: found for name, found in vars(errors).items() if inspect.isclass(found) and issubclass(found, TaskLibError)
}


def test_each_class_has_its_code():
    assert {name: found.code for name, found in CLASSES.items()} == CODES


def test_no_two_share_a_code():
    assert len(set(CODES.values())) == len(CODES)


@pytest.mark.parametrize("name", CODES)
def test_each_class_says_its_own_code_and_is_in_the_tree(name: str):
    assert "code" in vars(CLASSES[name])
    assert issubclass(CLASSES[name], TaskLibError)


def test_the_drawn_tree_names_every_class():
    assert set(re.findall(r"\b[A-Z]\w+", errors.__doc__ or "")) >= set(CODES)


@pytest.mark.parametrize(
    ("name", "also"),
    [
        ("InvalidInput", ValueError),
        ("InvalidValue", ValueError),
        ("TaskValidationError", TypeError),
        ("TaskValidationError", ValueError),
        ("TaskNotFound", LookupError),
        ("WaitTimeout", TimeoutError),
        ("MissingExtra", ImportError),
    ],
)
def test_errors_are_also_what_python_calls_them(name: str, also: type[Exception]):
    assert issubclass(CLASSES[name], also)


def test_families():
    def family(base: type[Exception]) -> set[str]:
        return {name for name, found in CLASSES.items() if issubclass(found, base)}

    assert family(TaskConflict) == {
        "ScheduleConflict",
        "TaskConflict",
        "TaskAlreadyClaimed",
        "TaskNotClaimed",
        "WrongWorker",
        "TaskCompleted",
        "TaskFailed",
        "TaskCancelled",
        "MaxAttemptsReached",
        "TaskNotTerminal",
        "TaskNotDue",
        "TaskNotFailed",
    }
    assert {found.__name__ for found in TRANSIENT} == {"StoreUnavailable", "StoreBusy", "StoreFull"}
    assert family(StoreError) == {name for name in CODES if name.startswith("Store")} | {"SchemaMismatch"}


def test_data_sits_in_attributes():
    task_id = uuid7(1, 2, 3)
    assert InvalidInput("wrong", field="delay").field == "delay"
    assert InvalidInput("wrong").field is None
    refused = TaskValidationError("wrong", errors=[{"loc": ("a",)}], field="a")
    assert (refused.errors, refused.field, str(refused)) == ([{"loc": ("a",)}], "a", "wrong")
    missing = TaskNotFound(task_id)
    assert missing.task_id == task_id
    assert str(task_id) in str(missing)
    conflict = TaskConflict("taken", task_id=task_id, state="running")
    assert (conflict.task_id, conflict.state, str(conflict)) == (task_id, "running", "taken")
    assert (conflict.version, conflict.worker_id) == (None, None)
    claimed = TaskConflict("taken", version=3, worker_id="anna")
    assert (claimed.version, claimed.worker_id) == (3, "anna")
    unknown = TaskNotFound(key="order-1")
    assert (unknown.task_id, unknown.key, str(unknown)) == (None, "order-1", "no task with idempotency key 'order-1'")
    extra = MissingExtra("postgres", "asyncpg", "a PostgreSQL store")
    assert extra.extra == "postgres"
    assert "pip install 'tasklib-queue[postgres]'" in str(extra)
