"""Modules that define tasks: found from here, by name or by path; and the real reason when one does not import."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasklib.core.registry import default_registry
from tests.cli.running import Cli, run_process

TASK = "from tasklib import task\n@task\ndef hello() -> None: ...\n"


@pytest.fixture(autouse=True)
def _forget_what_was_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = set(sys.modules)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]
    default_registry.remove("hello")


@pytest.mark.parametrize("given", ["site_app.tasks", "site_app/tasks.py", "./site_app/tasks.py"])
@pytest.mark.parametrize("with_init", [True, False])
def test_a_module_of_a_package_here(cli: Cli, tmp_path: Path, given: str, with_init: bool):
    (tmp_path / "site_app").mkdir()
    (tmp_path / "site_app/tasks.py").write_text(f"from site_app import names\n{TASK}")
    (tmp_path / "site_app/names.py").touch()
    if with_init:
        (tmp_path / "site_app/__init__.py").touch()
    ran = cli("submit", "hello", "--module", given)
    assert ran.code == 0, ran


def test_a_path_from_elsewhere(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there = tmp_path / "not-a-name" / "site_app"
    there.mkdir(parents=True)
    (there / "__init__.py").touch()
    (there / "tasks.py").write_text(f"import site_app\n{TASK}")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli("submit", "hello", "--module", str(there / "tasks.py")).code == 0
    assert cli("submit", "hello", "--module", "../not-a-name/site_app/tasks.py").code == 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import pandas_of_mine", "ModuleNotFoundError: No module named 'pandas_of_mine', at bad.py:1"),
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax, at bad.py:2"),
        ("import json\n\njson.loads('{')", "at bad.py:3"),
        ("import below", "ZeroDivisionError: division by zero, at below.py:2"),
        ("raise SystemExit(3)", "it ended the program with sys.exit(3), at bad.py:1"),
        (
            "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
            "Odd: (its text cannot be shown), at bad.py:3",
        ),
        ("raise RuntimeError('postgresql://ada:geheim@h/db')", "RuntimeError: postgresql://ada:***@h/db"),
        (
            "from tasklib import task\n@task\ndef f(priority: int) -> None: ...",
            "TaskDefinitionError: f: parameters named like submit options: priority; rename them, at bad.py:2",
        ),
    ],
)
def test_the_real_reason(cli: Cli, tmp_path: Path, source: str, said: str):
    (tmp_path / "bad.py").write_text(source)
    (tmp_path / "below.py").write_text("\n1 / 0\n")
    ran = cli("submit", "hello", "--module", "bad")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: cannot import 'bad': ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere", "there is no module 'nowhere'"),
        ("site_app.tasks", "there is no module 'site_app.tasks': no 'site_app' was found"),
        ("nowhere.py", "there is no file 'nowhere.py'"),
        ("no/where", "there is no file 'no/where'"),
        ("notes/x", "is not a Python file"),
        ("1.py", "is not a Python name"),
        (".tasks", "cannot import '.tasks'"),
    ],
)
def test_nothing_there(cli: Cli, tmp_path: Path, given: str, said: str):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/x").touch()
    (tmp_path / "1.py").touch()
    ran = cli("submit", "hello", "--module", given)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_worker_says_the_same(tmp_path: Path):
    (tmp_path / "bad.py").write_text("import pandas_of_mine")
    ran = run_process(["worker", "bad"], tmp_path)
    assert ran.code == 2
    assert ran.err == "error: cannot import 'bad': ModuleNotFoundError: No module named 'pandas_of_mine', at bad.py:1\n"
    loud = run_process(["worker", "bad", "--debug"], tmp_path)
    assert loud.code == 2
    assert "Traceback" in loud.err


def test_a_module_without_tasks(tmp_path: Path):
    ran = run_process(["worker", "json"], tmp_path)
    assert ran.code == 2
    assert ran.err == "error: no tasks are defined in json: decorate functions with @task\n"


def test_a_project_of_django_is_told_its_command(cli: Cli, tmp_path: Path):
    (tmp_path / "shop_models.py").write_text("from django.contrib.auth.models import User\n")
    ran = cli("worker", "shop_models")
    assert ran.code == 2
    assert "python manage.py tasklib worker" in ran.err
