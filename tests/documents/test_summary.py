"""TaskLib's summary: every Python example runs as printed, on each backend. Its three files are in
`test_integration.py`, its SQL is in `test_sql.py`, its records are those of `test_records.py`."""

import asyncio
import os
import signal
from typing import Any
from uuid import UUID

import pytest

import tasklib
from tasklib.engine.engine import Engine
from tasklib.stores.values import ClaimRequest
from tasklib.testing.drain import drain_async
from tests.documents.printed import DEFINE, run_printed

# -- the dev experience -----------------------------------------------------------------------------------


async def test_import(names: dict[str, Any]):
    await run_printed("from tasklib import task, submit_task, Config, TaskWorker", names)
    assert names["task"] is tasklib.task


async def test_define_task(engine: Engine, names: dict[str, Any]):
    await run_printed(DEFINE, names)
    assert names["send_email"](to="user@example.com", subject="Hello") is True
    handle = await names["process_image"].submit_async("cat.png")
    stored = await handle.get_async()
    assert (stored.max_retries, stored.timeout_seconds) == (5, 30)
    await drain_async(engine)
    assert await handle.result_async(timeout=10) == "processed_cat.png"


SUBMIT = """
# Parameters are validated at submit time (not execution time)
task_id = await tasklib.submit_task(
    send_email,
    to="user@example.com",  # ← Pydantic validates: must be str
    subject="Hello"         # ← Pydantic validates: must be str
)

# This is rejected at submit time with helpful error:
await tasklib.submit_task(
    send_email,
    to=123,  # ❌ TypeError - expected str, not int
)
"""


async def test_submit_task(engine: Engine, names: dict[str, Any]):
    await run_printed(DEFINE, names)
    with pytest.raises(TypeError) as caught:
        await run_printed(SUBMIT, names)
    assert isinstance(caught.value, tasklib.TaskLibError)
    assert "for send_emailParams\nto: Input should be a valid string" in str(caught.value)
    assert [task.id for task in tasklib.list_tasks()] == [names["task_id"]]


RUN_WORKER = """
async def main():
    config = tasklib.Config(database_url="postgresql://...")
    worker = tasklib.TaskWorker(config, concurrency=4)
    await worker.run()  # Blocks until shutdown

# This worker:
# 1. Polls for tasks (SELECT FOR UPDATE - atomic locking)
# 2. Locks task with worker_id + locked_until timeout
# 3. Executes function with timeout
# 4. On success: writes result to DB
# 5. On failure: schedules retry with exponential backoff
"""


async def test_run_worker(engine: Engine, names: dict[str, Any], backend_url: str):
    await run_printed(DEFINE, names)
    await run_printed(RUN_WORKER, names, backend_url)
    handle = await names["send_email"].submit_async("user@example.com", "Hello")

    running = asyncio.create_task(names["main"]())
    assert await handle.result_async(timeout=30) is True
    assert not running.done()  # "Blocks until shutdown"
    os.kill(os.getpid(), signal.SIGTERM)  # the worker has run a task, so it listens for signals by now
    await asyncio.wait_for(running, 30)


# -- validation -------------------------------------------------------------------------------------------

GREET = """
@tasklib.task
def greet(name: str, age: int) -> str:
    return f"{name} is {age}"

# Pydantic model is generated automatically:
# class greetParams(BaseModel):
#     name: str
#     age: int
"""


async def test_at_define_time(names: dict[str, Any]):
    await run_printed(GREET, names)
    function, params, _ = tasklib.get_registered_tasks()["greet"]
    assert function(name="Alice", age=30) == "Alice is 30"
    assert params.__name__ == "greetParams"
    assert {name: field.annotation for name, field in params.model_fields.items()} == {"name": str, "age": int}
    assert all(field.is_required() for field in params.model_fields.values())


VALID = """
# ✅ Valid - matches types
await tasklib.submit_task(greet, name="Alice", age=30)
"""


async def test_at_submit_time_valid(engine: Engine, names: dict[str, Any]):
    await run_printed(GREET, names)
    await run_printed(VALID, names)
    assert [task.kwargs for task in tasklib.list_tasks(name="greet")] == [{"name": "Alice", "age": 30}]


INVALID_TYPE = """
# ❌ Invalid type - rejected immediately
await tasklib.submit_task(greet, name="Bob", age="not a number")
# TaskLibError: 1 validation error for greetParams
# age: value is not a valid integer (type=type_error.integer)
"""

MISSING_FIELD = """
# ❌ Missing required field - rejected immediately
await tasklib.submit_task(greet, name="Charlie")
# TaskLibError: 1 validation error for greetParams
# age: field required (type=value_error.missing)
"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [(INVALID_TYPE, "Input should be a valid integer"), (MISSING_FIELD, "Field required")],
    ids=["type", "missing"],
)
async def test_at_submit_time_invalid(engine: Engine, names: dict[str, Any], printed: str, reason: str):
    """Pydantic has changed its wording since; count, model and field are as printed."""
    await run_printed(GREET, names)
    with pytest.raises(tasklib.TaskLibError) as caught:
        await run_printed(printed, names)
    assert str(caught.value).startswith(f"1 validation error for greetParams\nage: {reason}")
    assert tasklib.list_tasks() == []


# -- helper functions -------------------------------------------------------------------------------------

HELPERS = """
from tasklib import (
    is_pending,      # state == 'pending'
    is_running,      # state == 'running'
    is_completed,    # state == 'completed'
    is_failed,       # state == 'failed'
    has_result,      # result is not None
    has_error,       # error is not None
    is_terminal,     # Won't change anymore
)

task = tasklib.get_task(task_id)

if is_completed(task):
    print(f"Success: {task.result['value']}")

elif is_failed(task):
    if is_terminal(task):
        print(f"Failed permanently: {task.error}")
    else:
        print(f"Will retry at: {task.next_retry_at}")

elif is_running(task):
    print(f"Running on: {task.worker_id}")
"""


async def test_helper_functions(engine: Engine, names: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    await run_printed(DEFINE, names)

    @tasklib.task
    def fail() -> None:
        raise RuntimeError("no luck")

    async def show(task_id: UUID) -> str:
        names["task_id"] = task_id
        await run_printed(HELPERS, names)
        return capsys.readouterr().out.strip()

    broken = await fail.options(max_retries=1).submit_async()
    assert await show(broken.id) == ""
    assert names["is_pending"](names["task"])
    await drain_async(engine)
    assert await show(broken.id) == f"Will retry at: {(await broken.get_async()).next_retry_at}"
    engine.advance(5)
    await drain_async(engine)
    said = await show(broken.id)
    assert said.startswith("Failed permanently: ")
    assert "RuntimeError: no luck" in said
    assert names["has_error"](names["task"])

    fine = await names["send_email"].submit_async("user@example.com", "Hello")
    await drain_async(engine)
    assert await show(fine.id) == "Success: True"
    assert names["has_result"](names["task"])
    assert names["is_terminal"](names["task"])

    running = await names["send_email"].submit_async("user@example.com", "Hello")
    await (await engine.store()).claim(ClaimRequest(worker_id="worker-a-uuid", names=["send_email"], slots=1))
    assert await show(running.id) == "Running on: worker-a-uuid"
    assert not names["is_terminal"](names["task"])
