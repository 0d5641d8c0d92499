"""Help that teaches, and clear words for what was typed wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasklib import __version__
from tasklib.cli.exits import MEANINGS
from tests.cli.queue import Queue
from tests.cli.running import Cli, run_process

_RUN = ["demo", "worker", "serve"]
_TASKS = ["submit", "list", "show", "wait", "retry", "cancel", "delete", "cleanup"]
_OPERATIONS = ["pause", "resume", "limit", "stats", "types", "workers", "migrate", "doctor", "copy"]
_TOKENS = ["token create", "token list", "token revoke"]
COMMANDS = [*_RUN, *_TASKS, *_OPERATIONS]


def test_help_names_every_command_and_every_exit_code(cli: Cli):
    ran = cli("--help")
    assert ran.code == 0
    assert all(re.search(rf"\b{name}\b", ran.out) for name in COMMANDS)
    for code in MEANINGS:
        assert re.search(rf"\n\s+{code.value}\s+\w", ran.out), code


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_the_shared_options(cli: Cli, name: str):
    ran = cli(name, "--help")
    assert ran.code == 0
    assert f"Example:  tasklib {name}" in ran.out
    assert all(option in ran.out for option in ("--database-url", "--json", "--debug"))


@pytest.mark.parametrize("name", ["", *COMMANDS, "token", *_TOKENS])
def test_help_fits_a_terminal_of_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("COLUMNS", "80")
    ran = cli(*name.split(), "--help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "…" not in ran.out, "something is cut"
    assert "<bool>" not in ran.out, "a flag takes no value"


def test_common_options_are_short(cli: Cli, queue: Queue):
    cli("submit", "add", "a:=1", "-t", "team=red", "-k", "once", "-p", '{"a": 1}')
    queue.submit("greet", name="ada")
    assert len(cli("list", "-n", "greet", "-s", "pending", "-l", "5", "--json").data["tasks"]) == 1
    assert cli("limit", "greet", "-r", "5", "-c", "2", "--json").data["concurrency"] == 2


def test_it_runs_as_a_module(tmp_path: Path):
    command = [sys.executable, "-m", "tasklib", "--version"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == f"tasklib {__version__}\n"


def test_without_arguments_it_helps(cli: Cli):
    ran = cli()
    assert ran.code == 0
    assert "Usage: tasklib" in ran.out


def test_version(cli: Cli):
    assert cli("--version").out == f"tasklib {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["list", "--colour"], "No such option: --colour"),
        (["show"], "Missing argument 'ID'"),
        (["show", "abc"], "'abc' is not a task id"),
        (["list", "--limit", "0"], "'--limit'"),
        (["list", "--state", "asleep"], "'--state'"),
        (["submit", "x", "--delay", "soon"], "'soon' is not a duration"),
        (["submit", "x", "--run-at", "2030-01-01T00:00:00"], "has no time zone"),
        (["submit", "x", "--run-at", "tomorrow"], "is not an ISO 8601 time"),
        (["submit", "x", "--payload", "{"], "payload: not valid JSON"),
        (["submit", "x", "--payload", "{}", "a=1"], "not both"),
        (["submit", "x", "a"], "key=text"),
        (["submit", "x", "a:=b"], "argument a: not valid JSON"),
        (["submit", "x", "a=1", "a=2"], "given twice"),
        (["submit", "x", "--timeout", "1.5"], "whole seconds"),
        (["submit", "x", "--timeout", "0"], "timeout_seconds must be"),
        (["submit", "x", "--delay", "1s", "--run-at", "2030-01-01T00:00:00Z"], "not both"),
        (["submit", "x" * 256], "name must be text of 1 to 255 characters"),
        (["limit"], "name one task type, or say --all"),
        (["limit", "a", "--all", "--rate", "1"], "name one task type, or say --all"),
        (["limit", "a"], "say --rate, --concurrency or --clear"),
        (["limit", "a", "--rate", "1", "--clear"], "give it alone"),
        (["limit", "a", "--rate", "-1"], "'--rate'"),
        (["limit", "a", "--rate", "nan"], "rate"),
        (["cleanup"], "Missing option '--older-than'"),
        (["cleanup", "--older-than", "1d", "--state", "running"], "'completed', 'failed', 'cancelled'"),
        (["migrate", "--plan", "--sql"], "not both"),
        (["worker"], "Missing argument 'MODULE'"),
        (["worker", "shop", "--reload", "--processes", "2"], "--reload runs one worker"),
        (["retry"], "choose tasks one way"),
        (["cancel", "01890000-0000-7000-8000-000000000000", "--name", "x"], "choose tasks one way"),
        (["delete", "--all", "--state", "failed"], "choose tasks one way"),
        (["list", "--watch", "--every", "soon"], "'soon' is not a duration"),
    ],
)
def test_wrong_usage_is_one_clear_error(cli: Cli, arguments: list[str], said: str):
    """Bad input, command line: one line says what is wrong."""
    ran = cli(*arguments)
    assert ran.code == 2, ran
    assert ran.out == ""
    assert said in ran.err
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TASKLIB_MAX_RETRIES", "many", "max_retries"),
        ("TASKLIB_HEARTBEAT_SECONDS", "400", "two heartbeats"),
        ("TASKLIB_DATABASE_URL", "mongodb://u:geheim@h/db", "cannot use 'mongodb://u:***@h/db'"),
        ("TASKLIB_DATABASE_URL", "", "database_url"),
    ],
)
def test_unreadable_settings_are_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
):
    monkeypatch.setenv(variable, value)
    ran = cli("list")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_an_argument_wins_over_the_variable(cli: Cli, tmp_path: Path):
    other = f"sqlite:///{tmp_path}/other.db"
    cli("submit", "there", "--database-url", other)
    assert cli("list", "--json").data["tasks"] == []
    assert [task["name"] for task in cli("--database-url", other, "list", "--json").data["tasks"]] == ["there"]


def test_shared_options_may_come_first(cli: Cli):
    assert cli("--json", "list").data == {"tasks": [], "next_cursor": None}


def test_without_a_url_the_queue_is_a_file_right_here(tmp_path: Path):
    assert run_process(["submit", "x"], tmp_path).code == 0
    assert (tmp_path / "tasklib.db").exists()


def test_debug_shows_where_an_error_came_from(cli: Cli):
    quiet = cli("show", "01890000-0000-7000-8000-000000000000")
    loud = cli("show", "01890000-0000-7000-8000-000000000000", "--debug")
    assert quiet.code == loud.code == 1
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
