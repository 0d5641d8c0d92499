"""A type's own options: the same row whichever API submitted it, where the type is known to the process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasklib import RetryPolicy, TaskQueue, submit_task_sync, task, tq
from tasklib.cli.main import run
from tasklib.core.registry import default_registry
from tasklib.server import ServerSettings, create_app
from tasklib.testing import QueueForTests

MODULE = """
from tasklib import RetryPolicy, task

@task(
    name="optioned", max_retries=7, timeout_seconds=40, priority=3, tags={"team": "a"}, retry=RetryPolicy(base=9.0)
)
def optioned(n: int) -> int:
    return n
"""


@pytest.fixture
def optioned() -> Any:
    @task(
        name="optioned", max_retries=7, timeout_seconds=40, priority=3, tags={"team": "a"}, retry=RetryPolicy(base=9.0)
    )
    def optioned(n: int) -> int:
        return n

    yield optioned
    default_registry.remove("optioned")


@pytest.fixture
def bare() -> Any:
    @task(name="optioned")
    def bare(n: int) -> int:
        return n

    yield bare
    default_registry.remove("optioned")


def _by_rest(queue: QueueForTests) -> None:
    from tasklib.api.sync import run_in_new_thread

    async def post() -> None:
        app = create_app(queue.engine, settings=ServerSettings(authenticate=False))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            answer = await client.post("/api/tasks", json={"type": "optioned", "payload": {"n": 1}})
            assert answer.status_code == 201, answer.text

    run_in_new_thread(post())


WAYS: dict[str, Callable[[Any, QueueForTests], object]] = {
    "submit_task": lambda kind, queue: submit_task_sync(kind, n=1),
    "tq": lambda kind, queue: tq("optioned").add({"n": 1}),
    "enqueue": lambda kind, queue: TaskQueue(enable_worker=False).enqueue("optioned", {"n": 1}),
    "REST": lambda kind, queue: _by_rest(queue),
}


@pytest.mark.parametrize("kind", ["optioned", "bare"])
@pytest.mark.parametrize("way", WAYS)
def test_every_api_stores_the_types_own_options(
    way: str, kind: str, request: pytest.FixtureRequest, tasklib_queue: QueueForTests
):
    known = request.getfixturevalue(kind)
    known.submit(n=1)
    WAYS[way](known, tasklib_queue)
    first, second = (_row(each) for each in tasklib_queue.tasks())
    assert first == second
    assert first["max_retries"] == (7 if kind == "optioned" else tasklib_queue.engine.config.max_retries)


def _row(stored: Any) -> dict[str, Any]:
    named = ("name", "kwargs", "max_retries", "timeout_seconds", "priority", "tags", "retry_policy")
    return {name: getattr(stored, name) for name in named}


def test_what_is_said_wins(optioned: Any, tasklib_queue: QueueForTests):
    queue = TaskQueue(enable_worker=False)
    queue.set_timeout("optioned", 5)
    queue.enqueue("optioned", {"n": 1}, max_attempts=2, priority=0, tags={"x": 1})
    [found] = tasklib_queue.tasks()
    assert (found.max_retries, found.timeout_seconds, found.priority) == (1, 5, 0)
    assert found.tags == {"team": "a", "x": 1}


def test_a_type_that_nobody_knows_has_the_apis_defaults(tasklib_queue: QueueForTests):
    TaskQueue(enable_worker=False).enqueue("stranger", {"n": 1})
    [found] = tasklib_queue.tasks()
    assert (found.max_attempts, found.timeout_seconds, found.priority, found.tags) == (3, None, 0, {})


def test_the_command_line_applies_them_with_a_module_and_says_so_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sqlite_url: str
):
    (tmp_path / "optioned_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TASKLIB_DATABASE_URL", sqlite_url)
    try:
        assert run(["submit", "optioned", "n:=1"]) == 0
        assert "arguments were not checked: no worker has told what optioned takes" in capsys.readouterr().err
        assert run(["submit", "optioned", "n:=1", "--module", "optioned_module"]) == 0
        assert "not checked" not in capsys.readouterr().err
    finally:
        default_registry.remove("optioned")
