"""The command `worker`, as a process: bursts, names, signals, logs, and streams that fail it."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import background, run_process
from tests.waiting import eventually


def states(folder: Path) -> dict[str, str]:
    return {task["name"]: task["state"] for task in run_process(["list", "--json"], folder).data["tasks"]}


def pids(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.pid")}


def test_a_burst_runs_what_is_due_and_ends(app_folder: Path):
    for words in (["add", "a=1"], ["boom", "text=oh", "--max-retries", "0"], ["later", "--delay", "1h"]):
        run_process(["submit", *words], app_folder)
    ran = run_process(["worker", "shop", "--burst", "--concurrency", "4"], app_folder)
    assert (ran.code, ran.out) == (0, "")
    assert "boom" in ran.err
    assert states(app_folder) == {"add": "completed", "boom": "failed", "later": "pending"}


def test_only_the_names_asked_for(app_folder: Path):
    run_process(["submit", "add", "a=1"], app_folder)
    run_process(["submit", "boom", "text=oh"], app_folder)
    assert run_process(["worker", "shop", "--burst", "--names", "add,note_pid"], app_folder).code == 0
    assert states(app_folder) == {"add": "completed", "boom": "pending"}
    wrong = run_process(["worker", "shop", "--burst", "--names", "substract"], app_folder)
    assert wrong.code == 2
    assert "no task type is called substract; known: add, boom, note_pid" in wrong.err


@pytest.mark.parametrize(
    ("option", "value"), [("--concurrency", "0"), ("--poll-interval", "0s"), ("--grace", "x"), ("--processes", "0")]
)
def test_options_out_of_range(app_folder: Path, option: str, value: str):
    ran = run_process(["worker", "shop", "--burst", option, value], app_folder)
    assert ran.code == 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_lets_the_running_task_finish(app_folder: Path, number: signal.Signals):
    run_process(["submit", "note_pid", f"folder={app_folder}", "wait:=true"], app_folder)
    with background(["worker", "shop"], app_folder) as worker:
        eventually(lambda: pids(app_folder))
        worker.send_signal(number)
        eventually(lambda: "stops: 1 tasks running" in (app_folder / "stderr.txt").read_text())
        (app_folder / "go").touch()
        assert worker.wait(20) == 0
    assert states(app_folder) == {"note_pid": "completed"}
    assert "Traceback" not in (app_folder / "stderr.txt").read_text()


def test_a_second_signal_leaves_at_once(app_folder: Path):
    run_process(["submit", "note_pid", f"folder={app_folder}", "wait:=true"], app_folder)
    with background(["worker", "shop"], app_folder) as worker:
        eventually(lambda: pids(app_folder))
        worker.send_signal(signal.SIGINT)
        eventually(lambda: "stops: 1 tasks running" in (app_folder / "stderr.txt").read_text())
        worker.send_signal(signal.SIGINT)
        assert worker.wait(10) == 130
    assert "Traceback" not in (app_folder / "stderr.txt").read_text()


def test_grace_is_over(app_folder: Path):
    run_process(["submit", "note_pid", f"folder={app_folder}", "wait:=true"], app_folder)
    with background(["worker", "shop", "--grace", "100ms"], app_folder) as worker:
        eventually(lambda: pids(app_folder))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert states(app_folder) == {"note_pid": "pending"}


@pytest.mark.parametrize("stream", ["closed", "full"])
def test_it_goes_on_without_its_streams(app_folder: Path, stream: str):
    """A pipe whose reader has gone, and a disk without room."""
    if stream == "full" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    run_process(["submit", "note_pid", f"folder={app_folder}"], app_folder)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if stream == "full":
        with Path("/dev/full").open("w") as full:
            options = {"stdout": full, "stderr": full}  # type: ignore[dict-item]
            with background(["worker", "shop"], app_folder, **options) as worker:
                _works_on(worker, app_folder)
        return
    with background(["worker", "shop"], app_folder, **options) as worker:
        assert worker.stderr is not None
        assert worker.stdout is not None
        worker.stderr.close()
        worker.stdout.close()
        _works_on(worker, app_folder)


def _works_on(worker: subprocess.Popen[str], folder: Path) -> None:
    eventually(lambda: states(folder) == {"note_pid": "completed"})
    run_process(["submit", "boom", "text=oh", "--max-retries", "0"], folder)  # which is logged, or would be
    eventually(lambda: states(folder).get("boom") == "failed")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_logs_for_programs(app_folder: Path):
    run_process(["submit", "boom", "text=a\nb \x1b[31m postgresql://ada:geheim@h/db", "--max-retries", "0"], app_folder)
    ran = run_process(["worker", "shop", "--burst", "--log-format", "json"], app_folder)
    entries = [json.loads(line) for line in ran.err.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(entries[0])
    assert any("boom" in entry["message"] for entry in entries)
    assert "geheim" not in ran.err


def test_logs_for_people(app_folder: Path):
    run_process(["submit", "boom", "text=a\n2030-01-01 forged \x1b[31m", "--max-retries", "0"], app_folder)
    ran = run_process(["worker", "shop", "--burst"], app_folder)
    assert all(line.startswith(("20", "    ")) and "Z " in line for line in ran.err.splitlines())
    assert "\x1b" not in ran.err
    assert run_process(["worker", "shop", "--burst", "--log-level", "error"], app_folder).err == ""


def test_tasks_that_submit_tasks_use_the_same_queue(tmp_path: Path):
    (tmp_path / "chain.py").write_text(
        "from tasklib import submit_task, task\n"
        "@task\nasync def second() -> None: ...\n"
        "@task\nasync def first() -> None:\n    await submit_task(second)\n"
    )
    url = ["--database-url", "sqlite:///chain.db"]
    run_process(["submit", "first", *url], tmp_path)
    assert run_process(["worker", "chain", "--burst", *url], tmp_path).code == 0
    tasks = run_process(["list", "--json", *url], tmp_path).data["tasks"]
    assert {task["name"]: task["state"] for task in tasks} == {"first": "completed", "second": "completed"}
