"""docs/django.md, followed word for word in a new project, beside a PostgreSQL that is restarted; and the example that
has the same files."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.contrib.django.second_venv import found_pythons
from tests.databases import new_database
from tests.pages import ROOT, blocks
from tests.servers import QUICK, PostgresServer
from tests.waiting import eventually

PAGE = ROOT / "docs" / "django.md"
EXAMPLE = ROOT / "examples" / "django_shop"
LOG = "worker.log"
PYTHONS = found_pythons()

FIRST_LOOK = """
from django.contrib.auth.models import User
from django.test import Client
from orders.models import Order
from orders.services import place
from tasklib import get_task, list_tasks, wait_for

try:
    place("eve@example.com", stolen=True)
except ValueError:
    pass
assert Order.objects.count() == 0, "the order was rolled back"
assert list_tasks(name="orders.tasks.confirm") == list_tasks(name="orders.tasks.charge") == [], "and so were its tasks"

result = place("ada@example.com")
wait_for(result.id, timeout=60)
result.refresh()
assert result.return_value == "mailed ada@example.com", result
(charge,) = list_tasks(name="orders.tasks.charge")
charge = wait_for(charge.id, timeout=60)
assert (charge.state, charge.attempts) == ("failed", 2) and "attempt 2: the bank" in charge.error, charge

User.objects.create_superuser("boss", password="secret")
User.objects.create_user("clerk", password="secret")
visitor = Client(SERVER_NAME="localhost", headers={"Accept": "text/html"})
assert visitor.get("/queue/").url == "/admin/login/?next=/queue/"
assert visitor.login(username="clerk", password="secret")
assert visitor.get("/queue/").status_code == 302, "not staff"
assert visitor.login(username="boss", password="secret")
assert b'<base href="/queue/">' in visitor.get("/queue/").content
assert str(charge.id) in visitor.get("/queue/api/tasks").content.decode()
assert b"orders.tasks.charge" in visitor.get("/admin/tasklib/task/?state=failed").content
visitor.post("/admin/tasklib/task/", {"action": "retry", "task": [str(charge.id)]})
assert get_task(charge.id).version > charge.version, "it was retried"
"""

SECOND_LOOK = """
from orders.services import place
from tasklib import wait_for

result = place("bob@example.com")
wait_for(result.id, timeout=60)
result.refresh()
assert result.return_value == "mailed bob@example.com" and result.attempts == 1, result
"""


def environment(dsn: str) -> dict[str, str]:
    where = psycopg.conninfo.conninfo_to_dict(dsn)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TASKLIB_", "PG"))}
    place = {"PGHOST": where["host"], "PGPORT": where["port"], "PGUSER": where["user"], "PGDATABASE": where["dbname"]}
    return {**kept, **{name: str(value) for name, value in place.items()}, "PYTHONWARNINGS": "error"}


class Reader:
    """Somebody who does what the page says."""

    def __init__(self, folder: Path, dsn: str, python: Path) -> None:
        self.folder = folder
        self.python = str(python)
        self.env = environment(dsn)
        self.done: list[str] = []
        self.worker: subprocess.Popen[bytes] | None = None

    def follow(self) -> None:
        for block in blocks(PAGE):
            if block.language == "python":
                first, _, text = block.text.partition("\n")
                with (self.folder / first.removeprefix("# ")).open("a") as file:
                    file.write(text + "\n")
            elif block.language == "bash":
                for line in block.text.splitlines():
                    self.obey(shlex.split(line))

    def obey(self, words: list[str]) -> None:
        match words:
            case ["pip", "install", *_]:
                return  # it is
            case ["cd", name]:
                self.folder = self.folder / name
                return
            case ["django-admin", *arguments]:
                command = [self.python, "-m", "django", *arguments]
            case ["python", *arguments]:
                command = [self.python, *arguments]
            case _:
                raise AssertionError(f"what is this? {words}")
        self.done.append(" ".join(words))
        if "worker" in words:
            with (self.folder / LOG).open("wb") as log:
                self.worker = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=log, stderr=log)
            eventually(lambda: " serves " in self.log, 60, 0.1)
        else:
            self.run(command)

    def run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}\n{self.log[-5000:]}"

    def look(self, script: str) -> None:
        self.run([self.python, "-c", f"import django; django.setup()\n{script}"])

    @property
    def log(self) -> str:
        path = self.folder / LOG
        return path.read_text(errors="replace") if path.exists() else ""

    def leave(self) -> None:
        if self.worker is not None:
            self.worker.terminate()
            assert self.worker.wait(60) == 0, self.log


@pytest.mark.timeout(300)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_page_word_for_word(tmp_path: Path, python: str):
    with PostgresServer(settings=QUICK) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
        reader = Reader(tmp_path, f"{server.dsn.rpartition('/')[0]}/shop", PYTHONS[python])
        try:
            reader.follow()
            assert "python manage.py tasklib worker --reload" in reader.done
            assert "python manage.py test" in reader.done
            assert "changed: starting anew" in reader.log, "files were written while it ran"
            reader.env["DJANGO_SETTINGS_MODULE"] = "shop.settings"
            reader.look(FIRST_LOOK)
            server.restart()
            reader.look(SECOND_LOOK)
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shop'"
                assert connection.execute(others).fetchall(), "the worker has connections"
            reader.look(SECOND_LOOK)
            assert "path=orders.tasks.confirm state=SUCCESSFUL" in reader.log
            assert "\nTask id=" not in reader.log, "with DEBUG Django prints it once more"
        finally:
            reader.leave()


def test_the_example_has_the_files_of_the_page(postgres_server: str):
    for block in blocks(PAGE):
        if block.language == "python":
            first, _, text = block.text.partition("\n")
            assert text in (EXAMPLE / first.removeprefix("# ")).read_text(), first
    with new_database(postgres_server) as url:
        command = [sys.executable, "manage.py", "test", "--noinput"]
        done = subprocess.run(command, cwd=EXAMPLE, env=environment(url), capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
