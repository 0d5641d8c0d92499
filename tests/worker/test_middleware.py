"""Middleware: a step before each submit, an onion around each run, the same for every executor."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tasklib import (
    AsyncTaskManager,
    Config,
    Fail,
    InvalidConfig,
    InvalidOption,
    Middleware,
    RunningTask,
    Snooze,
    Submission,
    TaskDefinitionError,
    TaskManager,
    TaskQueue,
    TaskWorker,
    current_task,
    init,
    submit_many_sync,
    submit_task_sync,
    task,
    tq,
)
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing import QueueForTests, drain_async
from tasklib.testing.queue import fresh_queue
from tests.queues import as_default
from tests.waiting import turns
from tests.worker.middleware_app import NOTES, Absent, Noting, fails, noted, noted_async

KINDS = pytest.mark.parametrize("kind", ["def", "async def"])


def make(registry: Registry, kind: str, body: Any, **options: Any) -> Any:
    """The same task as a `def` and as an `async def`."""
    if kind == "def":

        @task(registry=registry, name="job", **options)
        def job(number: int = 0) -> int:
            return int(body(number))

        return job

    @task(registry=registry, name="job", **options)
    async def job_async(number: int = 0) -> int:
        await turns(1)
        return int(body(number))

    return job_async


class Ring(Middleware):
    def __init__(self, name: str, heard: list[object]) -> None:
        self.name, self.heard = name, heard

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        self.heard.append(f"{self.name} in")
        try:
            yield
        except BaseException as error:
            self.heard.append(f"{self.name} saw {type(error).__name__}")
            raise
        self.heard.append(f"{self.name} out")


@KINDS
def test_the_first_is_the_outermost(kind: str):
    heard: list[object] = []
    registry = Registry()

    def body(number: int) -> int:
        heard.append("handler")
        return number

    with fresh_queue(middleware=[Ring("a", heard), Ring("b", heard)]) as queue:
        handle = make(registry, kind, body).submit(7)
        queue.drain(registry=registry)
        assert handle.result() == 7
    assert heard == ["a in", "b in", "handler", "b out", "a out"]


@KINDS
def test_a_handlers_exception_passes_through_all_of_them(kind: str):
    heard: list[object] = []
    registry = Registry()

    def body(number: int) -> int:
        raise LookupError("no such thing")

    with fresh_queue(middleware=[Ring("a", heard), Ring("b", heard)]) as queue:
        handle = make(registry, kind, body, max_retries=0).submit()
        queue.drain(registry=registry)
        error = handle.get().error or ""
    assert heard == ["a in", "b in", "b saw LookupError", "a saw LookupError"]
    assert error.endswith("LookupError: no such thing")
    assert "in body" in error
    assert "runner.py" not in error, "from the handler on, whatever is around it"


@KINDS
def test_middleware_is_told_which_run_it_is_around(kind: str):
    seen: list[RunningTask] = []
    registry = Registry()

    class Looking(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            seen.append(task)
            task.arguments["number"] = 99  # a copy of its own
            assert current_task().id == task.id
            yield

    with fresh_queue(middleware=[Looking()]) as queue:
        job = make(registry, kind, lambda number: number, max_retries=0, tags={"team": "mail"})
        handle = job.submit(3)
        queue.drain(registry=registry)
        assert handle.result() == 3
    (run,) = seen
    assert (run.id, run.name, run.attempt, run.is_last) == (handle.id, "job", 1, True)
    assert (run.arguments, run.tags) == ({"number": 3}, {"team": "mail"})


@KINDS
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_middleware_raises_fails_the_attempt(kind: str, when: str):
    ran: list[int] = []
    registry = Registry()

    class Broken(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            if when == "before":
                raise ConnectionError("no session")
            yield
            raise ConnectionError("no session")

    def body(number: int) -> int:
        ran.append(number)
        return number

    with fresh_queue(middleware=[Broken()]) as queue:
        handle = make(registry, kind, body, max_retries=2).submit()
        queue.drain(registry=registry)
        found = handle.get()
    assert (found.state, found.retry_count, found.completed_at) == ("failed", 1, None)
    assert (found.error or "").endswith("ConnectionError: no session")
    assert ran == ([] if when == "before" else [0])


@KINDS
def test_what_middleware_raises_decides_as_a_handlers_would(kind: str):
    registry = Registry()

    class Translating(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            if task.tags.get("closed"):
                raise Snooze(delay=60)
            try:
                yield
            except LookupError as error:
                raise Fail("will never be there") from error

    def body(number: int) -> int:
        raise LookupError

    with fresh_queue(middleware=[Translating()]) as queue:
        job = make(registry, kind, body, max_retries=5)
        failed, closed = job.submit(), job.options(tags={"closed": True}).submit()
        queue.drain(registry=registry)
        assert (failed.get().state, failed.get().completed_at is None) == ("failed", False)
        assert (closed.get().state, closed.get().retry_count) == ("pending", 0)


@KINDS
def test_a_swallowed_failure_is_a_failure(kind: str):
    registry = Registry()

    class Swallowing(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            with suppress(LookupError):
                yield

    def body(number: int) -> int:
        raise LookupError("all the same")

    with fresh_queue(middleware=[Swallowing()]) as queue:
        handle = make(registry, kind, body, max_retries=0).submit()
        queue.drain(registry=registry)
        found = handle.get()
    assert found.state == "failed"
    assert (found.error or "").endswith("LookupError: all the same")


def test_around_async_awaits_for_async_tasks_and_around_is_for_the_rest():
    heard: list[str] = []
    registry = Registry()

    class Both(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            heard.append(f"{task.name}: sync")
            yield

        def around_async(self, task: RunningTask) -> AbstractAsyncContextManager[None]:
            return self._session(task)

        @asynccontextmanager
        async def _session(self, task: RunningTask) -> AsyncIterator[None]:
            await turns(1)
            heard.append(f"{task.name}: async")
            yield
            await turns(1)

    @task(registry=registry)
    def plain() -> None: ...

    @task(registry=registry)
    async def native() -> None: ...

    with fresh_queue(middleware=[Both()]) as queue:
        plain.submit()
        native.submit()
        queue.drain(registry=registry)
    assert sorted(heard) == ["native: async", "plain: sync"]


def test_it_runs_where_the_handler_does():
    """In the handler's own thread, and on the worker's loop: no second thread or loop for a task."""
    places: list[tuple[str, str, int]] = []
    registry = Registry()

    class Placing(Middleware):
        @contextmanager
        def around(self, task: RunningTask) -> Iterator[None]:
            places.append((task.name, "around", threading.get_ident()))
            yield

    @task(registry=registry)
    def plain() -> None:
        places.append(("plain", "handler", threading.get_ident()))

    @task(registry=registry)
    async def native() -> None:
        places.append(("native", "handler", threading.get_ident()))

    with fresh_queue(middleware=[Placing()]) as queue:
        plain.submit()
        native.submit()
        queue.drain(registry=registry)
    for name in ("plain", "native"):
        (around,) = {thread for task_name, what, thread in places if (task_name, what) == (name, "around")}
        assert (name, "handler", around) in places


async def test_a_timeout_leaves_through_the_middleware():
    heard: list[object] = []
    registry = Registry()

    @task(registry=registry, timeout_seconds=1, max_retries=0)
    async def endless() -> None:
        await asyncio.Event().wait()

    @task(registry=registry, timeout_seconds=1, max_retries=0)
    def endless_thread() -> None:
        never = threading.Event()
        while not never.wait(0.01):
            pass

    with fresh_queue(middleware=[Ring("a", heard)]) as queue:
        handles = [await endless.submit_async(), await endless_thread.submit_async()]
        await queue.drain_async(registry=registry)
        errors = [(await handle.get_async()).error or "" for handle in handles]
    assert all("ran longer than its timeout" in error for error in errors)
    assert sorted(map(str, heard)) == ["a in", "a in", "a saw CancelledError", "a saw TaskTimedOut"]


def test_tasks_that_run_where_they_are_submitted_have_it_too():
    heard: list[object] = []
    registry = Registry()
    with fresh_queue(middleware=[Ring("a", heard)]) as queue, queue.inline(registry=registry):
        make(registry, "def", lambda number: number).submit()
    assert heard == ["a in", "a out"]


# -- child processes --------------------------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(NOTES, str(tmp_path / "notes"))
    return tmp_path / "notes"


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_in_a_process_executor_it_runs_in_the_child(
    sqlite_url: str, notes: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setenv("TASKLIB_MIDDLEWARE", "tests.worker.middleware_app:Noting")
    job = noted if kind == "def" else noted_async
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        handle = await job.submit_async(5)
        await drain_async(engine, names=[job.name])
        assert await handle.result_async(5) == 5
    before, handler, after = notes.read_text().splitlines()
    child = handler.split()[1]
    assert int(child) != os.getpid()
    assert before == f"before {job.name} 1 {{'number': 5}} False {child}"
    assert after == f"after {job.name} 1"


async def test_a_child_that_does_not_have_it_is_refused_at_the_start(sqlite_url: str):
    config = Config(database_url=sqlite_url, middleware=[Absent()])
    with pytest.raises(TaskDefinitionError, match=r"has no middleware Absent.*TASKLIB_MIDDLEWARE"):
        await TaskWorker(config, names=["noted"], burst=True, handle_signals=False).run()


async def test_an_exception_in_a_child_has_been_seen_there(
    sqlite_url: str, notes: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TASKLIB_MIDDLEWARE", "tests.worker.middleware_app:Noting")
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        handle = await fails.submit_async()
        await drain_async(engine, names=["fails"])
        error = (await handle.get_async()).error or ""
    assert error.endswith("LookupError: no such thing")
    assert "runner.py" not in error
    assert notes.read_text().splitlines()[-1] == "after fails 1"


ROOT = Path(__file__).parents[2]
JOBS = """
from tasklib import task

@task(executor="process", name="apart")
def apart(number: int) -> int:
    return number
"""
HOOKS = """
import tasklib
from tests.worker.middleware_app import Noting

tasklib.init(tasklib.Config(middleware=[Noting()]))
"""


def test_a_child_imports_the_module_that_called_init(tmp_path: Path, sqlite_url: str, notes: Path):
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    (tmp_path / "shop_hooks.py").write_text(HOOKS)
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TASKLIB_DATABASE_URL": sqlite_url}
    for arguments in (
        ["-c", "import shop_jobs; shop_jobs.apart.submit(1)"],
        ["-m", "tasklib.cli", "worker", "shop_hooks", "shop_jobs", "--burst"],
    ):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    assert [line.split()[:3] for line in notes.read_text().splitlines()] == [
        ["before", "apart", "1"],
        ["after", "apart", "1"],
    ]


# -- submit -----------------------------------------------------------------------------------------------------------


class Tagging(Middleware):
    def __init__(self, **tags: object) -> None:
        self.tags, self.seen, self.threads = tags, list[Submission](), set[int]()

    def before_submit(self, task: Submission) -> Mapping[str, Any] | None:
        self.seen.append(task)
        self.threads.add(threading.get_ident())
        return self.tags or None


def test_a_submit_step_sees_the_task_and_adds_tags():
    registry = Registry()
    outer, inner = Tagging(tenant="acme", team="outer"), Tagging(team="inner", more=1)
    with fresh_queue(middleware=[outer, inner]):
        job = make(registry, "def", lambda number: number, tags={"own": True})
        handle = job.options(tags={"tenant": "mine"}).submit(4)
        assert handle.get().tags == {"own": True, "tenant": "mine", "team": "outer", "more": 1}
    (seen,) = inner.seen
    assert (seen.id, seen.name, seen.arguments) == (handle.id, "job", {"number": 4})
    assert seen.tags == {"own": True, "tenant": "mine", "team": "outer"}


class Refusing(Middleware):
    def before_submit(self, task: Submission) -> None:
        if task.arguments == {"number": 2} or task.arguments in ("no", {"no": 1}):
            raise PermissionError("not this one")


async def test_what_a_submit_step_raises_refuses_the_submit_through_every_api():
    job = task(name="refused_job")(_echo)
    with fresh_queue(middleware=[Refusing()]) as queue:
        async with AsyncTaskManager() as manager:
            for refused in (
                lambda: job.submit(number=2),
                lambda: submit_task_sync(job, number=2),
                lambda: job.submit_many([{"number": 1}, {"number": 2}]),
                lambda: submit_many_sync(job, [{"number": 1}, {"number": 2}]),
                lambda: tq("refused").add("no"),
                lambda: TaskManager().submit({"no": 1}),
            ):
                with pytest.raises(PermissionError, match="not this one"):
                    refused()
            for refused_async in (job.submit_async(number=2), manager.submit("no")):
                with pytest.raises(PermissionError, match="not this one"):
                    await refused_async
        assert queue.tasks() == []


def _echo(number: int) -> int:
    return number


def test_a_submit_step_runs_in_the_thread_that_submits():
    registry, tagging = Registry(), Tagging(a=1)
    with fresh_queue(middleware=[tagging]):
        make(registry, "def", lambda number: number).submit()
        TaskManager().submit({"a": 1})
        tq("crawl").add({"a": 1})
    assert (len(tagging.seen), tagging.threads) == (3, {threading.get_ident()})


def test_each_of_many_has_its_own_tags(postgres_url: str):
    registry = Registry()

    class Numbering(Middleware):
        def before_submit(self, task: Submission) -> Mapping[str, Any]:
            return {"number": task.arguments["number"]}

    for settings in ({}, {"database_url": postgres_url}):
        with fresh_queue(middleware=[Numbering()], **settings) as queue:
            make(registry, "def", lambda number: number).submit_many({"number": number} for number in range(3))
            assert [each.tags for each in queue.tasks()] == [{"number": number} for number in range(3)]


def test_tags_that_cannot_be_stored_refuse_the_submit():
    registry = Registry()
    with fresh_queue(middleware=[Tagging(bad=object())]) as queue:
        with pytest.raises(Exception, match="tags"):
            make(registry, "def", lambda number: number).submit()
        assert queue.tasks() == []
    wrong: Any = type("Wrong", (Middleware,), {"before_submit": lambda self, task: 7})()
    with fresh_queue(middleware=[wrong]), pytest.raises(InvalidOption, match="tags must be a mapping"):
        make(registry, "def", lambda number: number).submit()


# -- settings ---------------------------------------------------------------------------------------------------------


def test_middleware_is_named_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_MIDDLEWARE", "tests.worker.middleware_app:Noting, tests.worker.middleware_app:Absent")
    assert [type(each) for each in Config().middleware] == [Noting, Absent]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nowhere.at_all:Thing", "cannot be imported as module:name"),
        ("tests.worker.middleware_app:Nothing", "cannot be imported as module:name"),
        ("tests.worker.middleware_app:noted", "is not a Middleware"),
        ([Noting], "is not a Middleware; give an instance of it"),
        ([7], "7 is not a Middleware"),
        (7, "a list of Middleware is expected"),
    ],
)
def test_what_is_no_middleware_is_refused(given: Any, words: str):
    with pytest.raises(InvalidConfig, match=words) as refused:
        Config(middleware=given)
    assert refused.value.field == "middleware"


@dataclass
class Counting(Middleware):
    """A dataclass, which copies of settings must leave as it is."""

    runs: int = 0

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        self.runs += 1
        yield


def test_every_queue_of_the_process_has_what_init_was_given(tasklib_queue: QueueForTests):
    counting, registry = Counting(), Registry()
    init(Config(middleware=[counting]))
    make(registry, "def", lambda number: number).submit()
    tasklib_queue.drain(registry=registry)
    assert counting.runs == 1
    queue = TaskQueue(enable_worker=False)
    queue.register_handler("crawl", lambda payload: payload)
    queue.enqueue("crawl", {"url": "u"})
    assert queue.process_batch() == 1
    assert counting.runs == 2
