"""TaskLib's specification and the story its schema document tells: every Python example runs as printed."""

import asyncio
import inspect
import os
from typing import Any
from uuid import UUID

import pytest

import tasklib
from tasklib.engine.config import Config
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async
from tests.documents.printed import DEFINE, run_printed

# -- the specification -------------------------------------------------------------------------------------------------


def test_core_functions(names: dict[str, Any]):
    """ "Interface", which is printed as signatures:

    tasklib.init(config: Config) -> None

    task_id = await tasklib.submit_task(
        func,
        delay_seconds=0,
        max_retries=None,
        timeout_seconds=None,
        priority=0,
        tags=None,
        **kwargs
    ) -> UUID

    task = tasklib.get_task(task_id: UUID) -> Optional[Task]
    tasks = tasklib.list_tasks(state=None, name=None, limit=100) -> list[Task]
    registered = tasklib.get_registered_tasks() -> dict[str, tuple]

    worker = TaskWorker(config, concurrency=1, poll_interval_seconds=1.0)
    await worker.run() -> None
    """
    assert list(inspect.signature(tasklib.init).parameters) == ["config"]
    submit = inspect.signature(tasklib.submit_task)
    printed = {"func", "delay_seconds", "max_retries", "timeout_seconds", "priority", "tags", "kwargs"}
    assert printed <= set(submit.parameters)
    assert inspect.iscoroutinefunction(tasklib.submit_task)
    assert list(inspect.signature(tasklib.get_task).parameters) == ["task_id"]
    listing = inspect.signature(tasklib.list_tasks).parameters
    assert [(name, listing[name].default) for name in ("state", "name", "limit")] == [
        ("state", None),
        ("name", None),
        ("limit", 100),
    ]
    assert tasklib.get_registered_tasks() == {}
    worker = list(inspect.signature(tasklib.TaskWorker).parameters.values())
    assert [(item.name, item.default) for item in worker[1:3]] == [("concurrency", 1), ("poll_interval_seconds", 1.0)]
    assert worker[0].name == "config"
    assert inspect.iscoroutinefunction(tasklib.TaskWorker.run)


SUBMIT_WITH_DEFAULTS = """
task_id = await tasklib.submit_task(
    func,
    delay_seconds=0,
    max_retries=None,
    timeout_seconds=None,
    priority=0,
    tags=None,
    **kwargs
)
"""


async def test_submit_with_the_printed_defaults(engine: Engine, names: dict[str, Any]):
    await run_printed(DEFINE, names)
    names |= {"func": names["send_email"], "kwargs": {"to": "user@example.com", "subject": "Hello"}}
    await run_printed(SUBMIT_WITH_DEFAULTS, names)
    stored = tasklib.get_task(names["task_id"])
    assert stored is not None
    assert stored.scheduled_at == stored.created_at
    assert (stored.max_retries, stored.timeout_seconds, stored.priority, stored.tags) == (3, None, 0, {})


def test_configuration(monkeypatch: pytest.MonkeyPatch):
    """The printed defaults:

    Config(
        database_url: str,                       # Required: PostgreSQL URL
        max_retries: int = 3,                    # Default max attempts
        base_retry_delay_seconds: float = 5.0,   # First retry delay
        retry_backoff_multiplier: float = 2.0,   # Exponential factor
        lock_timeout_seconds: int = 600,         # Worker lock duration
        default_task_timeout_seconds: Optional[int] = None,  # Execution timeout
        worker_id: Optional[str] = None,         # Worker identity (auto-generated)
    )
    """
    for name in list(os.environ):
        if name.startswith("TASKLIB_"):
            monkeypatch.delenv(name)
    config = Config(database_url="postgresql://localhost/tasks")
    assert config.database_url == "postgresql://localhost/tasks"
    assert (config.max_retries, config.base_retry_delay_seconds, config.retry_backoff_multiplier) == (3, 5.0, 2.0)
    assert (config.lock_timeout_seconds, config.default_task_timeout_seconds, config.worker_id) == (600, None, None)
    # "Default: 5s, 10s, 20s, then fail"
    assert [config.default_retry.delay(retry) for retry in (1, 2, 3)] == [5, 10, 20]


async def test_worker_concurrency(engine: Engine, names: dict[str, Any]):
    names |= {"config": engine.config, "TaskWorker": tasklib.TaskWorker}
    await run_printed(
        """
# 4 concurrent tasks per worker
worker = TaskWorker(config, concurrency=4)

# Each task runs in thread pool (asyncio.to_thread)
# No shared Python objects, no GIL contention
        """,
        names,
    )
    assert names["worker"].concurrency == 4


PRODUCTION = """
# application.py
tasklib.init(Config(
    database_url=os.getenv("DATABASE_URL"),
    max_retries=3,
))

@tasklib.task
def send_email(to: str):
    pass

# worker.py
worker = TaskWorker(
    config,
    concurrency=4,
    poll_interval_seconds=1.0,
)
await worker.run()
"""


async def test_production(engine: Engine, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", engine.config.database_url)
    names |= {"config": engine.config, "TaskWorker": tasklib.TaskWorker}
    running = asyncio.create_task(run_printed(PRODUCTION, names))
    while "worker" not in names:
        await asyncio.wait([running], timeout=0.01)
        assert not running.done(), running.result()
    assert default_engine() is not engine  # init has set another
    task_id = await tasklib.submit_task(names["send_email"], to="user@example.com")
    found = await tasklib.wait_for_async(task_id, timeout=30)
    assert (found.state, found.result) == ("completed", {"value": None})
    names["worker"].stop()
    await asyncio.wait_for(running, 30)


# -- the schema: the story of a task -----------------------------------------------------------------------------------

STORY_SUBMIT = """
task_id = await tasklib.submit_task(
    send_email,
    to="user@example.com",
    subject="Hello"
)
# Returns: UUID("550e8400-e29b-41d4-a716-446655440001")
"""

STORY_EXECUTE = """
result = await loop.run_in_executor(
    None,
    lambda: send_email(to="user@example.com", subject="Hello")
)
# Returns: True
"""

STORY_QUERY = """
task = tasklib.get_task(task_id)
if tasklib.is_completed(task):
    print(f"Task result: {task.result['value']}")
    # Output: Task result: True
"""


async def test_the_story_of_a_task(engine: Engine, names: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    await run_printed(DEFINE, names)
    await run_printed(STORY_SUBMIT, names)
    assert isinstance(names["task_id"], UUID)
    names["loop"] = asyncio.get_running_loop()
    await run_printed(STORY_EXECUTE, names)
    assert names["result"] is True
    await drain_async(engine)
    await run_printed(STORY_QUERY, names)
    assert capsys.readouterr().out == "Task result: True\n"
