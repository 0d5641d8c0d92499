"""Start-up: what is imported when. Nothing is timed here: `make bench ONLY=startup` does that."""

import ast
import gc
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

import tasklib
from tasklib.cli import commands, main
from tasklib.cli.commands import COMMANDS

DRIVERS = {"apsw", "asyncpg", "nats"}
SERVER = {"fastapi", "starlette", "uvicorn", "tasklib.server"}
WORKER = {"tasklib.worker.worker", "tasklib.worker.fetcher", "ctypes"}
COMMAND_LINE = {"typer", "rich", "tasklib.cli"}
APIS = {"tasklib.api.manager", "tasklib.api.fluent", "tasklib.api.remote", "tasklib.api.flow"}
OTHERS = {"opentelemetry", "httpx", "sqlalchemy", "django", "jsonschema_rs", "tasklib.testing"}
LAYERS = {"tasklib.api", "tasklib.engine", "tasklib.stores", "tasklib.worker"}

ROOT = Path(tasklib.__file__).parent


def loaded(code: str, tmp_path: Path) -> set[str]:
    """The modules that a fresh interpreter has imported in the end."""
    program = f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    url = {"TASKLIB_DATABASE_URL": f"sqlite:///{tmp_path}/queue.db"}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=os.environ | url, capture_output=True, text=True, check=True, cwd=tmp_path)
    return set(ran.stderr.split())


def of_command(*arguments: str) -> str:
    return f"from tasklib.cli.main import run\nassert run({list(arguments)!r}) == 0"


def test_the_import_loads_the_errors_and_little_else(tmp_path: Path):
    modules = loaded("import tasklib", tmp_path)
    assert "tasklib.core.errors" in modules
    heavy = {"asyncio", "pydantic", "logging", *LAYERS}
    assert not modules & (heavy | DRIVERS | SERVER | WORKER | COMMAND_LINE | APIS | OTHERS)


def test_a_program_with_tasks_loads_no_worker_and_no_other_api(tmp_path: Path):
    modules = loaded("from tasklib import task\n@task\ndef add(a: int) -> int: return a", tmp_path)
    assert "tasklib.engine.engine" in modules
    assert not modules & (DRIVERS | SERVER | WORKER | COMMAND_LINE | APIS | OTHERS)


def test_the_help_loads_no_command(tmp_path: Path):
    modules = loaded(of_command("--help"), tmp_path)
    assert "typer" in modules
    parts = {entry.module for entry in COMMANDS.values()}
    assert not modules & (parts | {"asyncio", "tasklib.api", "tasklib.engine", "tasklib.stores"})
    assert not modules & (DRIVERS | SERVER | WORKER | APIS | OTHERS)


def test_a_command_loads_what_it_needs(tmp_path: Path):
    loaded(of_command("migrate"), tmp_path)
    modules = loaded(of_command("stats"), tmp_path)
    assert "apsw" in modules
    others = {entry.module for entry in COMMANDS.values()} - {"tasklib.cli.admin", "tasklib.cli.controls"}
    assert not modules & (others | {"rich.console", "tasklib.core.alerts", "tasklib.api", "asyncpg", "nats"})
    assert not modules & (SERVER | WORKER | APIS | OTHERS)


# -- the lists agree with what there is -------------------------------------------------------------------------------


def test_type_checkers_and_programs_find_the_same_names():
    (branch,) = [each for each in ast.parse((ROOT / "__init__.py").read_text()).body if isinstance(each, ast.If)]
    imports = [each for each in branch.body if isinstance(each, ast.ImportFrom)]
    checked = {name.name: each.module for each in imports for name in each.names}
    assert checked == vars(tasklib)["_MODULE_OF"]
    for name, module in checked.items():
        assert getattr(tasklib, name) is getattr(import_module(str(module)), name)
    eager = {name for name in tasklib.__all__ if name not in checked}
    assert all(isinstance(vars(tasklib)[name], type) for name in eager)
    assert set(checked) | eager == set(tasklib.__all__) <= set(dir(tasklib))


def test_the_star_brings_all_names():
    names: dict[str, object] = {}
    exec("from tasklib import *", names)
    assert set(tasklib.__all__) <= set(names)


def test_a_name_that_is_not_there_is_refused_as_ever():
    with pytest.raises(AttributeError, match="module 'tasklib' has no attribute 'submit_tsk'"):
        tasklib.submit_tsk  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'submit_tsk' from 'tasklib'"):
        exec("from tasklib import submit_tsk")


def test_the_list_of_commands_is_what_their_modules_define():
    defined = {}
    for path in sorted((ROOT / "cli").glob("*.py")):
        if "\ndef register(" in path.read_text():
            part = typer.Typer()
            module = f"tasklib.cli.{path.stem}"
            import_module(module).register(part)
            for name, command in typer.main.get_group(part).commands.items():
                defined[name] = (module, str(command.help).split("\n\n")[0])
    assert {name: (entry.module, entry.line) for name, entry in COMMANDS.items()} == defined


def test_the_group_gives_the_commands_themselves():
    group = typer.main.get_command(main.app)
    assert isinstance(group, commands.Commands)
    assert list(group.commands) == list(COMMANDS)
    assert len(group.commands) == len(COMMANDS)
    assert {name: command.name for name, command in group.commands.items()} == {name: name for name in COMMANDS}
    assert "nothing" not in group.commands


# -- the garbage collector --------------------------------------------------------------------------------------------


def test_the_collector_is_on_when_a_command_begins(capsys: pytest.CaptureFixture[str]):
    gc.disable()
    try:
        assert main.run(["--version"]) == 0
        assert not gc.isenabled()
        main.run(["workers", "--database-url", "sqlite:////nowhere/at/all.db"])
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
    assert "there is no queue" in capsys.readouterr().err
