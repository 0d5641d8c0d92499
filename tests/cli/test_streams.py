"""Pipes that close, disks that are full, prompts and Ctrl-C: no traceback, and an honest exit code."""

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.queue import Queue
from tests.cli.running import COMMAND, environment, run_process
from tests.waiting import eventually

linux_only = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def shell(line: str, cwd: Path, url: str) -> subprocess.CompletedProcess[str]:
    """`tasklib` in the line is the command."""
    script = f'tasklib() {{ "{sys.executable}" -m tasklib.cli "$@"; }}\n{line}'
    env = environment({"TASKLIB_DATABASE_URL": url})
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["list --limit 5000", "list --limit 5000 --json", "--help"])
def test_a_reader_who_had_enough(tmp_path: Path, sqlite_url: str, queue: Queue, command: str):
    queue.submit_many(3000)
    ran = shell(f"set -o pipefail; tasklib {command} | head -c 20", tmp_path, sqlite_url)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    assert len(ran.stdout) == 20


@linux_only
def test_a_full_disk(tmp_path: Path, sqlite_url: str, queue: Queue):
    queue.submit_many(1)
    ran = shell("tasklib list > /dev/full", tmp_path, sqlite_url)
    assert ran.returncode == 1
    assert "No space left" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_closed_streams(tmp_path: Path, sqlite_url: str):
    ran = shell("tasklib submit x <&- >&- 2>&-; echo code $?; tasklib list --json", tmp_path, sqlite_url)
    assert ran.stdout.startswith("code 0\n")
    assert '"name": "x"' in ran.stdout


class Prompt:
    """A command whose stdin is a terminal."""

    def __init__(self, arguments: list[str], cwd: Path, url: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=environment({"TASKLIB_DATABASE_URL": url}),
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(slave)
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        self.said = ""

    def asks(self) -> bool:
        self._listen()
        return "Go on?" in self.said

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.said += (self.process.stderr.read() or b"").decode()

    def answer(self, text: str) -> int:
        os.write(self._master, text.encode())
        return self.end()

    def end(self) -> int:
        code = self.process.wait(30)
        self._listen()
        os.close(self._master)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@pytest.mark.parametrize(("answer", "code", "gone"), [("y\n", 0, True), ("n\n", 1, False), ("\n", 1, False)])
def test_a_person_is_asked(tmp_path: Path, sqlite_url: str, queue: Queue, answer: str, code: int, gone: bool):
    task_id = queue.finished("greet", name="ada")
    prompt = Prompt(["delete", str(task_id)], tmp_path, sqlite_url)
    eventually(prompt.asks)
    assert "This will delete 1 task for good." in prompt.said
    assert prompt.answer(answer) == code
    assert (queue.get(task_id) is None) is gone


@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_an_interrupted_question(tmp_path: Path, sqlite_url: str, queue: Queue, how: str):
    task_id = queue.finished("greet", name="ada")
    prompt = Prompt(["delete", str(task_id)], tmp_path, sqlite_url)
    eventually(prompt.asks)
    if how == "signal":
        prompt.process.send_signal(signal.SIGINT)
        assert prompt.end() == 130
    else:
        assert prompt.answer("\x04") == 130
    assert "Traceback" not in prompt.said
    assert queue.get(task_id) is not None


def on_terminal(arguments: list[str], cwd: Path, url: str, columns: int = 100) -> str:
    """What a person sees."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    env = environment({"TASKLIB_DATABASE_URL": url, "TERM": "xterm-256color"})
    env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen([*COMMAND, *arguments], cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # how Linux says that nobody holds the other end any more
            while data := os.read(master, 65536):
                seen += data
        assert process.wait(30) == 0
    os.close(master)
    return seen.decode()


def test_a_table_fits_the_terminal(tmp_path: Path, sqlite_url: str, queue: Queue):
    task_id = queue.finished("break_down", text="out of paper " * 20)
    seen = on_terminal(["list"], tmp_path, sqlite_url, columns=90)
    assert "\x1b[31mfailed" in seen
    lines = re.sub(r"\x1b\[[0-9;]*m", "", seen).splitlines()
    assert max(map(len, lines)) <= 90
    assert str(task_id) in lines[1]


def test_long_work_shows_a_bar_to_people_only(tmp_path: Path, sqlite_url: str, queue: Queue):
    words = ["cleanup", "--older-than", "0s", "--yes"]
    queue.finished("greet", name="ada")
    assert "Deleting" in on_terminal(words, tmp_path, sqlite_url)
    queue.finished("greet", name="ada")
    ran = run_process(words, tmp_path, env={"TASKLIB_DATABASE_URL": sqlite_url, "FORCE_COLOR": "1"})
    said = ran.out + ran.err  # where a busy machine may say that it still tries to reach the queue
    assert ran.code == 0, ran
    assert "Deleting" not in said
    assert "\x1b" not in ran.err


def test_text_a_terminal_cannot_show(tmp_path: Path, sqlite_url: str):
    env = {"TASKLIB_DATABASE_URL": sqlite_url, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    run_process(["submit", "grüße"], tmp_path, env=env)
    ran = run_process(["list"], tmp_path, env=env)
    assert ran.code == 0, ran
    assert r"gr\xfc\xdfe" in ran.out
