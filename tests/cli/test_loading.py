"""Modules that define tasks: found from here, by name or by path; and the real reason when one does not import."""

from pathlib import Path

import pytest

from tests.cli.running import run_process

TASK = "from tasklib import task\n@task\ndef hello() -> None: ...\n"


def serve(folder: Path, *modules: str, debug: bool = False):
    return run_process(["worker", *modules, "--burst", *(["--debug"] if debug else [])], folder)


@pytest.mark.parametrize("given", ["site_app.tasks", "site_app/tasks.py", "./site_app/tasks.py"])
@pytest.mark.parametrize("with_init", [True, False])
def test_a_module_of_a_package_here(tmp_path: Path, given: str, with_init: bool):
    (tmp_path / "site_app").mkdir()
    (tmp_path / "site_app/tasks.py").write_text(f"from site_app import names\n{TASK}")
    (tmp_path / "site_app/names.py").touch()
    if with_init:
        (tmp_path / "site_app/__init__.py").touch()
    ran = serve(tmp_path, given)
    assert ran.code == 0, ran
    assert "serving hello" in ran.err


def test_a_path_from_elsewhere(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "not-a-name" / "site_app"
    here.mkdir()
    there.mkdir(parents=True)
    (there / "__init__.py").touch()
    (there / "tasks.py").write_text(f"import site_app\n{TASK}")
    assert serve(here, str(there / "tasks.py")).code == 0


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
def test_the_real_reason(tmp_path: Path, source: str, said: str):
    (tmp_path / "bad.py").write_text(source)
    (tmp_path / "below.py").write_text("\n1 / 0\n")
    ran = serve(tmp_path, "bad")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: cannot import 'bad': ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_debug_shows_the_traceback(tmp_path: Path):
    (tmp_path / "bad.py").write_text("1 / 0")
    ran = serve(tmp_path, "bad", debug=True)
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "ZeroDivisionError" in ran.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere", "there is no module 'nowhere'"),
        ("site_app.tasks", "there is no module 'site_app.tasks': no 'site_app' was found"),
        ("nowhere.py", "there is no file 'nowhere.py'"),
        ("notes.txt/", "there is no file"),
        ("json", "no tasks are defined in json"),
    ],
)
def test_nothing_there(tmp_path: Path, given: str, said: str):
    ran = serve(tmp_path, given)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
