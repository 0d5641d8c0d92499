"""tasklib.contrib.django in a project of Django's own: its tests run under Django's runner, on each database and with
each Django that is here; and a worker as a process, beside a PostgreSQL that goes away."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tasklib import Config
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tests.contrib.django.second_venv import found_pythons
from tests.databases import new_database
from tests.servers import QUICK, PostgresServer
from tests.waiting import eventually

PROJECT = Path(__file__).parent / "project"
PYTHONS = found_pythons()
PATIENCE = 120
"""Seconds. Processes that import Django start slowly on a machine that is busy."""


def environment(database_url: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TASKLIB_")}
    return {**kept, "DATABASE_URL": database_url, "PYTHONWARNINGS": "error", **more}


def manage(*arguments: str, env: dict[str, str], python: Path = PYTHONS["here"], cwd: Path | None = None) -> str:
    command = [str(python), str(PROJECT / "manage.py"), *arguments]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout + done.stderr


each_python = pytest.mark.parametrize("python", PYTHONS)
each_part = pytest.mark.parametrize("part", ["backend", "worker", "site"])


@each_python
@each_part
@pytest.mark.timeout(300)
def test_on_postgres(postgres_server: str, part: str, python: str):
    with new_database(postgres_server) as url:
        _test(part, url, PYTHONS[python])


@each_python
@each_part
@pytest.mark.timeout(300)
def test_on_sqlite(tmp_path: Path, part: str, python: str):
    """The queue is in memory then, as Django's database is."""
    _test(part, f"sqlite://{tmp_path}/db.sqlite3", PYTHONS[python])


def _test(part: str, url: str, python: Path) -> None:
    said = manage("test", "--noinput", f"jobs.{part}_tests", env=environment(url), python=python, cwd=PROJECT)
    assert "\nOK" in said


def test_without_django_the_error_says_what_to_install(tmp_path: Path):
    (tmp_path / "django.py").write_text("raise ModuleNotFoundError('No module named django')")
    script = "import sys; sys.path.insert(0, sys.argv[1]); import tasklib.contrib.django"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "MissingExtra: tasklib.contrib.django needs the package django" in done.stderr


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with PostgresServer(settings=QUICK) as server:
        yield server


class Queue:
    """The project's queue as others see it."""

    def __init__(self, url: str) -> None:
        self._engine = Engine(Config(database_url=url))

    def add(self, name: str, *args: Any) -> UUID:
        call = Call(f"jobs.tasks.{name}", {"args": list(args), "kwargs": {}}, {"max_retries": 0})
        return asyncio.run(self._engine.submit(call)).id

    def get(self, task_id: UUID) -> Task | None:
        return asyncio.run(self._engine.get(task_id))

    def state(self, task_id: UUID) -> str | None:
        task = self.get(task_id)
        return None if task is None else task.state

    def ended(self, *ids: UUID) -> list[tuple[str, int, Any]]:
        """State, attempts and result of each, once all are over."""

        def over() -> list[Task]:
            found = [task for task in map(self.get, ids) if task is not None and task.completed_at is not None]
            return found if len(found) == len(ids) else []

        return [(task.state, task.attempts, task.error or task.result) for task in eventually(over, PATIENCE, 0.1)]


class Worker:
    """`manage.py tasklib worker`, from another directory than the project's."""

    def __init__(self, env: dict[str, str], log: Path, *options: str, python: str = "here") -> None:
        self._log = log
        command = [str(PYTHONS[python]), str(PROJECT / "manage.py"), "tasklib", *options]
        with log.open("w") as file:
            self.process = subprocess.Popen(
                command, cwd=log.parent, env=env, stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        self.process.kill()
        self.process.wait()
        if kind is not None:
            print(self.log[-8000:])

    def tell(self, number: signal.Signals, answer: str) -> None:
        self.process.send_signal(number)
        eventually(lambda: answer in self.log, PATIENCE, 0.05)

    def ended_by(self, number: signal.Signals) -> bool:
        """Sends it again unless that was enough: a signal that follows at once is taken for the first one's echo."""
        self.process.send_signal(number)
        return self.process.poll() is not None

    def ends(self) -> int:
        return self.process.wait(PATIENCE)


@each_python
@pytest.mark.timeout(300)
def test_a_worker_outlives_its_database(own_server: PostgresServer, tmp_path: Path, python: str):
    """Each task has one attempt: what fails because of a connection that is gone, has failed. Django's connections are
    kept in this project (CONN_MAX_AGE is None), in threads, in the thread for coroutines, and in children."""
    env = environment(own_server.dsn, WITH_CHILDREN="1")
    manage("migrate", "--run-syncdb", "--verbosity", "0", env=env, python=PYTHONS[python])
    with psycopg.connect(own_server.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO jobs_parcel (id, name, shipped) VALUES (1, 'a book', false)")
    queue = Queue(own_server.dsn)

    def all_run() -> None:
        ids = [queue.add(name, 1) for name in ("ship", "ship_async", "count_in_child")]
        shipped, shipped_async, counted = queue.ended(*ids)
        assert shipped == shipped_async == ("completed", 1, {"value": "a book"})
        assert counted[:2] == ("completed", 1), counted
        assert counted[2]["value"][1:] == [1, 1]

    serve = ("worker", "--processes", "2", "--concurrency", "1")
    with Worker(env, tmp_path / "worker.log", *serve, python=python) as worker:
        for _ in range(2):
            all_run()
        own_server.restart()
        for _ in range(2):
            all_run()
        with psycopg.connect(own_server.dsn, autocommit=True) as connection:
            idle = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'jobs_parcel' AND pid <> %s"
            ended = connection.execute(idle, [connection.info.backend_pid]).fetchall()
        assert ended, "no connection of Django's was kept"
        for _ in range(2):
            all_run()
        worker.tell(signal.SIGTERM, "SIGTERM: stopping")
        assert worker.ends() == 0


@pytest.fixture(params=["postgres", "sqlite"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], Queue]]:
    """The environment of a project whose database is empty, and its queue. Workers make the tables."""
    if request.param == "sqlite":
        yield environment(f"sqlite://{tmp_path}/db.sqlite3"), Queue(f"sqlite:///{tmp_path}/db.tasks.sqlite3")
    else:
        with new_database(request.getfixturevalue("postgres_server")) as url:
            yield environment(url), Queue(url)


@pytest.mark.timeout(300)
def test_several_workers_run_each_task_once(project: tuple[dict[str, str], Queue], tmp_path: Path):
    """What a task ends in, SystemExit and KeyboardInterrupt included, ends no worker."""
    env, queue = project
    ids = [queue.add("anything", number) for number in range(20)]
    ending = [queue.add(name) for name in ("exits", "interrupts")]
    logs = [tmp_path / f"worker{number}.log" for number in range(3)]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(env, log, "worker", "--burst")) for log in logs]
        assert [worker.ends() for worker in workers] == [0, 0, 0]
        said = "".join(worker.log for worker in workers)
    assert [ended[:2] for ended in queue.ended(*ids)] == [("completed", 1)] * 20
    for state, attempts, error in queue.ended(*ending):
        assert (state, attempts) == ("failed", 1)
        assert error.endswith(("SystemExit: 3", "KeyboardInterrupt"))
    for task_id in (*ids, *ending):
        assert len(re.findall(f"{task_id} .*(completed|failed)", said)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.timeout(300)
def test_a_signal_to_stop_lets_the_running_task_finish(
    project: tuple[dict[str, str], Queue], tmp_path: Path, number: signal.Signals
):
    env, queue = project
    running, waiting = queue.add("wait_for", str(tmp_path / "go")), queue.add("add", 1)
    with Worker(env, tmp_path / "worker.log", "worker") as worker:
        eventually(lambda: queue.state(running) == "running", PATIENCE, 0.1)
        manage("tasklib", "cleanup", "--older-than", "0s", "--yes", env=env)
        assert queue.state(running) == "running", "what runs is not cleaned up"
        worker.tell(number, f"{number.name}: stopping")
        assert worker.process.poll() is None, "it waits for the task"
        (tmp_path / "go").touch()
        assert worker.ends() == 0
    assert (queue.state(running), queue.state(waiting)) == ("completed", "pending")


@pytest.mark.timeout(300)
def test_the_task_of_a_worker_that_is_gone_has_failed_and_says_so(
    project: tuple[dict[str, str], Queue], tmp_path: Path
):
    """A second Ctrl-C leaves at once, SIGKILL sooner still: another worker settles what was running. It had the one
    attempt that Django's tasks have."""
    env, queue = project
    env["LOCK_TIMEOUT"] = "1"
    ids = []
    for end in ("second Ctrl-C", "SIGKILL"):
        ids.append(queue.add("wait_for", "/never"))
        with Worker(env, tmp_path / "worker.log", "worker") as worker:
            eventually(lambda: queue.state(ids[-1]) == "running", PATIENCE, 0.1)
            if end == "SIGKILL":
                worker.process.kill()
                assert worker.ends() == -signal.SIGKILL
            else:
                worker.tell(signal.SIGINT, "SIGINT: stopping")
                eventually(lambda: worker.ended_by(signal.SIGINT), PATIENCE, 1)
                assert worker.ends() == 130
    with Worker(env, tmp_path / "other.log", "worker") as other:
        assert [ended[:2] for ended in queue.ended(*ids)] == [("failed", 1)] * 2
        other.tell(signal.SIGTERM, "SIGTERM: stopping")
        assert other.ends() == 0
    classes = f"[wait_for.get_result(each).errors[0].exception_class for each in {list(map(str, ids))}]"
    said = manage("shell", "--verbosity", "0", "-c", f"from jobs.tasks import wait_for; print({classes})", env=env)
    assert said.count("tasklib.TaskFailed") == 2, said


@pytest.mark.timeout(300)
def test_each_alias_is_a_queue_of_its_own(postgres_server: str, tmp_path: Path):
    with new_database(postgres_server) as url:
        env = {**environment(url), "SECOND_SCHEMA": "second"}
        first, second = Queue(url), Queue(f"{url}?schema=second")
        for options in (["worker", "--burst"], ["--backend", "second", "worker", "--burst"]):
            with Worker(env, tmp_path / "worker.log", *options) as worker:  # they make the tables
                assert worker.ends() == 0
        ids = first.add("add", 1), second.add("add", 2)
        with Worker(env, tmp_path / "worker.log", "--backend", "second", "worker", "--burst") as worker:
            assert worker.ends() == 0
        assert (first.state(ids[0]), second.state(ids[1])) == ("pending", "completed")
        assert str(ids[0]) in manage("tasklib", "list", "--json", env=env)
        listed = manage("tasklib", "--backend", "second", "list", "--json", env=env)
        assert str(ids[1]) in listed
        assert str(ids[0]) not in listed
        assert "Usage: manage.py tasklib list" in manage("tasklib", "list", "--help", env=env)
