"""Any command line: an exit code of the table, one clear error, never a traceback, nothing that steers a terminal."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tasklib.cli.exits import MEANINGS, Exit
from tasklib.cli.main import app, run
from tests.cli.queue import Queue

EXAMPLES = int(os.environ.get("TASKLIB_FUZZ_EXAMPLES", "150"))
LONG_RUNNING = {"demo", "worker", "serve", "wait"}
"""They go on until they are told to stop: only their refusals can be fuzzed."""
ENDLESS = ("watch", "follow")
"""Flags that make others do so."""

UNSAFE = set(map(chr, (*range(10), *range(11, 32), *range(127, 160), 0x200B, 0x202E, 0x2066, 0x2028)))


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """The words of each command, and its options and arguments."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (
                (*before, name),
                [each for each in command.params if each.name not in ("debug", "json", "help", *ENDLESS)],
            )


COMMANDS = {words: own for words, own in commands(typer.main.get_command(app)) if words[0] not in LONG_RUNNING}

HOSTILE = [
    "",
    "-",
    "--",
    "-1",
    "0",
    "1",
    "9" * 400,
    "9" * 400 + "s",
    "1e400",
    "NaN",
    "inf",
    "true",
    "null",
    "{}",
    "[1]",
    '{"a": "\\ud800"}',
    '{"a": NaN}',
    "[" * 200,
    "key=value",
    "key:=1",
    "key:=NaN",
    "key:=",
    "=x",
    ":=1",
    "a\0b",
    "\ud800",
    "key=\ud800",
    'key:="\\u0000"',
    "\x1b[2J\x9b31m\u202e\u2066\u200b\r\n",
    "[bold red]x[/] :smile:",
    "%s %d {0} {x!r}",
    "' OR 1=1; --",
    "x" * 256,
    "5m",
    "-5m",
    "999999999999999w",
    "2030-12-31T08:00:00Z",
    "2030-12-31T08:00:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "pending",
    "failed",
    "sqlite:///other.db",
    "sqlite:///no/such/folder.db",
    "sqlite://",
    "memory://other",
    "nope://x",
    "postgresql://ada:geheim@localhost/x?schema=a;b",
    "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10",
    "00000000-0000-0000-0000-000000000000",
    "missing.module",
    "../../etc/passwd",
    "ä世🙂",
]
FITTING = {
    "name": ["greet", "break_down"],
    "arguments": ["name=ada", "n:=1"],
    "task_id": ["0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"],
    "task_ids": ["0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"],
    "older_than": ["5m"],
    "source": ["sqlite:///other.db"],
    "destination": ["memory://other"],
}
"""Arguments that are not refused at once."""
words = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12))


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Mostly a command that would work but for one or two options: what is refused early hides what lies deeper."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    line = [*command]
    options = []
    for parameter in COMMANDS[command]:
        flag = next((each for each in parameter.opts if each.startswith("--")), None)
        if flag is not None:
            options.append((flag, getattr(parameter, "is_flag", False)))
        elif parameter.required or draw(st.booleans()):
            line.append(draw(st.one_of(st.sampled_from(FITTING.get(parameter.name, ["greet"])), words)))
    for flag, alone in draw(st.lists(st.sampled_from(options), max_size=3)):
        line += [flag] if alone else draw(st.sampled_from([[f"{flag}={draw(words)}"], [flag, draw(words)]]))
    if draw(st.booleans()):
        line.append("--json")
    return draw(st.permutations(line)) if draw(st.integers(0, 19)) == 0 else line


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder and a queue with something in it, for all the command lines there are."""
    folder = tmp_path_factory.mktemp("fuzz")
    url = f"sqlite:///{folder}/tasks.db?synchronous=normal"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TASKLIB_")]:
            patch.delenv(name)
        patch.setenv("TASKLIB_DATABASE_URL", url)
        patch.setenv("COLUMNS", "120")
        patch.chdir(folder)
        queue = Queue(url)
        queue.finished("greet", name="ada")
        queue.finished("break_down", text="\x1b[2J\u202e\r\n")
        yield folder


@example(line=["submit", "x", f"--timeout={'9' * 400}s"], stdin="")
@example(line=["submit", "x", "--payload=-"], stdin="[" * 100_000)
@example(line=["cleanup", f"--older-than={'9' * 400}"], stdin="")
@example(line=["cleanup", "--older-than=999999999999999w", "--dry-run"], stdin="")
@example(line=["list", "--tag=key=\ud800"], stdin="")
@example(line=["list", "--name=\ud800"], stdin="")
@example(line=["token", "revoke", "\ud800", "--json"], stdin="")
@given(line=command_lines(), stdin=st.sampled_from(["", "{}", "[" * 100_000, "\ud800"]))
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_command_line(somewhere: Path, line: list[str], stdin: str):
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.stdin", io.StringIO(stdin))
        code = run([*line])
    said, complained = out.getvalue(), err.getvalue()
    assert code in MEANINGS
    assert code != Exit.INTERRUPTED
    assert "Traceback" not in complained  # that of a failed task may be shown
    assert "internal_error" not in complained
    assert "--debug shows where" not in complained
    assert not set(said + complained) & UNSAFE
    assert "geheim" not in said + complained
    if code not in (Exit.OK, Exit.FAILED):
        assert complained.strip()
    if "--json" in line and "--help" not in line and code == Exit.OK and said.strip():
        json.loads(said)


@pytest.mark.parametrize("command", sorted(LONG_RUNNING))
@pytest.mark.parametrize("word", ["--concurrency=x", "--port=x", "--nope", "\x1b[2J\u202e", "missing.module"])
def test_what_goes_on_refuses_too(somewhere: Path, command: str, word: str, capsys: pytest.CaptureFixture[str]):
    assert run([command, word]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert not set(err) & UNSAFE
