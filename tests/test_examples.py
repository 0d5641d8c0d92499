"""The examples run as their heads say: as programs of their own, and as applications behind their frameworks."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import httpx
import pytest

import tasklib
from tasklib.api.sync import run_sync
from tasklib.core.registry import default_registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain, drain_async
from tests.databases import new_database
from tests.waiting import eventually

EXAMPLES = Path(__file__).parent.parent / "examples"
MANIFEST = EXAMPLES / "kubernetes" / "worker-deployment.yaml"


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[str]:
    """For examples that give the address to psycopg too, which knows no `?schema=`."""
    with new_database(postgres_server) as url:
        yield url


@contextmanager
def queue(url: str) -> Iterator[Engine]:
    """The queue for this process's own calls."""
    engine = Engine(Config(database_url=url))
    before = use_engine(engine)
    try:
        yield engine
    finally:
        use_engine(before)
        run_sync(engine.close())


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports an example the way a server does; what it registers and sets goes again at the end."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(default_registry, "_types", {})
    for name in [path.stem for path in EXAMPLES.glob("*.py")]:
        monkeypatch.delitem(sys.modules, name, raising=False)

    def load(name: str) -> ModuleType:
        module = importlib.import_module(name)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return load


def environment(url: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TASKLIB_")}
    return {**kept, "TASKLIB_DATABASE_URL": url, "PYTHONWARNINGS": "error", **more}


def run(script: str, url: str, cwd: Path) -> str:
    """The example's output; nothing may go wrong, and nothing may be said on stderr."""
    command = [sys.executable, str(EXAMPLES / script)]
    done = subprocess.run(command, cwd=cwd, env=environment(url), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@contextmanager
def worker(url: str, cwd: Path, script: str = "worker.py", **more: str) -> Iterator[subprocess.Popen[str]]:
    """A worker of its own process, which ends by SIGTERM and says that all went well."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / script)],
        cwd=cwd,
        env=environment(url, PYTHONPATH=str(EXAMPLES), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    except BaseException:
        process.kill()
        _, errors = process.communicate(timeout=30)
        print(errors)
        raise
    process.send_signal(signal.SIGTERM)
    try:
        _, errors = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, errors
    assert ("has stopped" in errors) == ("starts" in errors), errors  # neither: it was told before it had begun
    assert "Traceback" not in errors


def finished(name: str) -> tasklib.Task:
    def look() -> tasklib.Task | None:
        found = tasklib.list_tasks(state="completed", name=name)
        return found[0] if found else None

    task = eventually(look, timeout=30, interval=0.05)
    assert task is not None
    return task


def test_schedules_fire_while_their_worker_runs(sqlite_url: str, tmp_path: Path):
    with queue(sqlite_url), worker(sqlite_url, tmp_path, "schedules.py"):
        assert finished("heartbeat").tags["schedule"] == "heartbeat"
        names = [each.name for each in tasklib.schedules.all()]
        assert names == ["heartbeat", "nightly", "report-42", "report-43"]


def test_a_flow_runs_to_its_end(sqlite_url: str, tmp_path: Path):
    said = run("flows.py", sqlite_url, tmp_path)
    assert "read_page: failed, tasklib.Fail: https://example.com/gone answered 404" in said
    assert "longest: completed, the longest address of 4 has 27 characters" in said
    assert "has failed: {'completed': 6, 'failed': 1}" in said


def test_simple_submits_what_worker_runs(shared_url: str, tmp_path: Path):
    said = run("simple.py", shared_url, tmp_path)
    assert "refused: 1 validation error for send_emailParams\nto: " in said
    assert run("simple.py", shared_url, tmp_path).count("process_data pending") == 1  # by its key, only once

    with queue(shared_url):
        pending = tasklib.list_tasks(state="pending", name="send_email")
        assert [task.kwargs for task in pending] == [{"to": "user@example.com", "subject": "Welcome!"}] * 2
        assert tasklib.list_tasks(name="process_data")[0].tags == {"batch": "daily"}
        with worker(shared_url, tmp_path):
            assert finished("send_email").result == {"value": True}
            assert finished("count_words").result == {"value": 4}
        # It waits for its time: ten seconds after the submit.
        assert tasklib.list_tasks(name="process_data")[0].state in ("pending", "completed")


def test_without_a_setting_the_queue_is_a_file_here(tmp_path: Path):
    env = environment("", TASKLIB_TESTING="0")
    del env["TASKLIB_DATABASE_URL"]
    command = [sys.executable, str(EXAMPLES / "simple.py")]
    subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert (tmp_path / "tasklib.db").exists()


async def test_fastapi(load: Any, shared_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_DATABASE_URL", shared_url)
    before = use_engine(None)
    app = load("fastapi_app").app
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as client,
    ):
        answer = await client.post("/email", params={"to": "user@example.com"})
        assert answer.status_code == 202
        task_id = answer.json()["task_id"]
        seen = await client.get(f"/task/{task_id}")
        assert seen.json() == {"state": "pending", "result": None, "error": None}

        await drain_async()

        assert (await client.get(f"/task/{task_id}")).json()["result"] == {"value": True}
        assert (await client.get(f"/task/{UUID(int=0)}")).status_code == 404
    engine = use_engine(before)
    assert engine is not None
    await engine.close()


def test_flask(load: Any, shared_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_DATABASE_URL", shared_url)
    before = use_engine(None)
    client = load("flask_app").app.test_client()
    answer = client.post("/email?to=user@example.com")
    assert answer.status_code == 202
    task_id = answer.json["task_id"]
    assert client.get(f"/task/{task_id}").json == {"state": "pending", "result": None, "error": None}

    drain()

    assert client.get(f"/task/{task_id}").json["result"] == {"value": True}
    assert client.get(f"/task/{UUID(int=0)}").status_code == 404
    engine = use_engine(before)
    assert engine is not None
    run_sync(engine.close())


def test_transaction(postgres_database: str, tmp_path: Path):
    said = run("transaction.py", postgres_database, tmp_path)
    assert "bob's order was rolled back: the payment was refused" in said
    assert "orders: ['alice@example.com']" in said
    assert "e-mails: ['alice@example.com']" in said


DJANGO = """
import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

import tasklib

where = conninfo_to_dict(tasklib.Config().database_url)
database = {"ENGINE": "django.db.backends.postgresql", "NAME": where["dbname"], "USER": where["user"]}
database |= {"HOST": where["host"], "PORT": where["port"]}
settings.configure(DATABASES={"default": database}, USE_TZ=True)
django.setup()

from django.db import connection, transaction
from tasks import send_email


def register(customer, valid):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO customers (name) VALUES (%s)", [customer])
        send_email.options(connection=connection).submit(customer, subject="Welcome!")
        if not valid:
            raise ValueError("refused")


tasklib.list_tasks()
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE customers (name text)")
register("alice@example.com", True)
try:
    register("bob@example.com", False)
except ValueError:
    pass
print([task.kwargs["to"] for task in tasklib.list_tasks(name="send_email")])
connection.close()
"""


def test_django(postgres_database: str, tmp_path: Path):
    """In a program of its own: Django's settings are the process's."""
    env = environment(postgres_database, PYTHONPATH=str(EXAMPLES))
    done = subprocess.run(
        [sys.executable, "-c", DJANGO], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.strip() == "['alice@example.com']"


class TestKubernetes:
    def test_the_grace_period_is_longer_than_the_workers_own(self):
        text = MANIFEST.read_text()
        outer = re.search(r"terminationGracePeriodSeconds: (\d+)", text)
        inner = re.search(r"name: TASKLIB_SHUTDOWN_GRACE_SECONDS\n\s+value: \"(\d+)\"", text)
        assert outer is not None
        assert inner is not None
        assert int(outer[1]) >= int(inner[1]) + 10

    def test_it_sets_what_there_is_to_set(self):
        names = re.findall(r"name: TASKLIB_([A-Z_]+)\n", MANIFEST.read_text())
        assert names
        assert {name.lower() for name in names} <= set(Config.model_fields)

    def test_the_probes_tell_the_living_from_the_dead(self, sqlite_url: str, tmp_path: Path):
        alive = tmp_path / "alive"
        probes = [json.loads(line) for line in re.findall(r"exec:\n\s+command: (\[.*\])", MANIFEST.read_text())]
        commands = [[part.replace("/run/worker/alive", str(alive)) for part in probe] for probe in probes]
        assert len(commands) == 2

        def well() -> list[bool]:
            return [subprocess.run(command, capture_output=True).returncode == 0 for command in commands]

        assert well() == [False, False]
        with worker(sqlite_url, tmp_path, "kubernetes/worker.py", ALIVE_FILE=str(alive)):
            assert eventually(lambda: well() == [True, True], timeout=30)
        long_ago = alive.stat().st_mtime - 300
        os.utime(alive, (long_ago, long_ago))
        assert well() == [True, False]

    def test_the_worker_of_the_manifest_is_the_one_here(self):
        assert re.search(r'command: \["python", "worker\.py"\]', MANIFEST.read_text())
        assert (MANIFEST.parent / "worker.py").exists()
