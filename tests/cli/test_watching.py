"""What goes on until somebody has seen enough: --watch, --follow, wait."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli, background, run_process
from tests.waiting import eventually


@pytest.fixture
def env(sqlite_url: str) -> dict[str, str]:
    return {"TASKLIB_DATABASE_URL": sqlite_url}


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


@pytest.mark.parametrize("command", ["stats", "list"])
def test_watch_looks_again(tmp_path: Path, queue: Queue, env: dict[str, str], command: str):
    queue.submit("greet", name="ada")
    out = tmp_path / "out.txt"
    with (
        out.open("w") as stream,
        background([command, "--watch", "--every", "20ms"], tmp_path, env=env, stdout=stream) as watching,
    ):
        eventually(lambda: sum("greet" in line for line in lines(out)) >= 3)
        queue.drain()
        queue.submit("log_in", user="ada")
        eventually(lambda: "log_in" in out.read_text())
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()


def test_watch_as_json_is_a_value_a_line(tmp_path: Path, queue: Queue, env: dict[str, str]):
    queue.submit("greet", name="ada")
    out = tmp_path / "out.txt"
    command = ["list", "--watch", "--every", "20ms", "--json"]
    with out.open("w") as stream, background(command, tmp_path, env=env, stdout=stream):
        eventually(lambda: len(lines(out)) >= 3)
    assert [each["name"] for each in json.loads(lines(out)[1])["tasks"]] == ["greet"]


def test_follow_tells_each_change_and_ends_with_the_task(tmp_path: Path, queue: Queue, env: dict[str, str]):
    task_id = queue.submit("greet", name="ada")
    out = tmp_path / "out.txt"
    with (
        out.open("w") as stream,
        background(["show", str(task_id), "--follow"], tmp_path, env=env, stdout=stream) as following,
    ):
        eventually(lambda: "pending" in out.read_text())
        queue.drain()
        assert following.wait(20) == 0
    first, *rest = lines(out)
    assert "pending" in first
    assert any("hello ada" in line for line in rest)


def test_wait_prints_the_result(tmp_path: Path, queue: Queue, env: dict[str, str]):
    task_id = queue.submit("greet", name="ada")
    out = tmp_path / "out.txt"
    with out.open("w") as stream, background(["wait", str(task_id)], tmp_path, env=env, stdout=stream) as waiting:
        queue.drain()
        assert waiting.wait(20) == 0
    assert lines(out) == ['"hello ada"']


def test_wait_for_what_failed_and_for_too_long(cli: Cli, queue: Queue):
    failed = queue.finished("break_down", text="no")
    ran = cli("wait", str(failed))
    assert (ran.code, ran.out) == (1, "")
    assert f"task {failed} (break_down) is failed: ValueError: no" in ran.err
    late = cli("wait", str(queue.submit("greet", name="ada")), "--timeout", "50ms")
    assert (late.code, late.out) == (1, "")
    assert "was not finished within 0.05 s" in late.err
    assert cli("wait", "01890000-0000-7000-8000-000000000000").code == 1


def test_secrets_in_results_are_masked(tmp_path: Path, queue: Queue, env: dict[str, str]):
    task_id = queue.finished("log_in", user="ada")
    ran = run_process(["wait", str(task_id)], tmp_path, env=env)
    assert '"user": "ada"' in ran.out
    assert "geheim" not in ran.out
