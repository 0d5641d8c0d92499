"""`worker --processes N`: a dead one is replaced, signals go to all, and nobody is left behind."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.cli.running import background, run_process
from tests.waiting import eventually


def children(supervisor: int) -> set[int]:
    return {child.pid for child in psutil.Process(supervisor).children()}


def serving(folder: Path) -> int:
    """Workers that have said that they started."""
    return (folder / "stderr.txt").read_text().count(" starts: ")


def test_a_killed_process_is_replaced(app_folder: Path):
    with background(["worker", "shop", "--processes", "2"], app_folder) as supervisor:
        eventually(lambda: serving(app_folder) == 2)
        before = children(supervisor.pid)
        assert len(before) == 2
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: serving(app_folder) == 3)
        after = children(supervisor.pid)
        assert len(after) == 2
        assert before - after == {victim}
        run_process(["submit", "note_pid", f"folder={app_folder}"], app_folder)
        eventually(lambda: list(app_folder.glob("*.pid")))
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
    assert not any(map(psutil.pid_exists, after))
    log = (app_folder / "stderr.txt").read_text()
    assert "was ended by SIGKILL; it starts again in 0.5 s" in log
    assert "Traceback" not in log


def test_a_burst_ends_when_all_have_ended(app_folder: Path):
    for number in range(6):
        run_process(["submit", "add", f"a={number}"], app_folder)
    ran = run_process(["worker", "shop", "--processes", "2", "--burst", "--json"], app_folder)
    assert ran.code == 0, ran
    assert ran.data["processes"] == 2
    tasks = run_process(["list", "--json"], app_folder).data["tasks"]
    assert {task["state"] for task in tasks} == {"completed"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_leaves_at_once(app_folder: Path, number: signal.Signals):
    run_process(["submit", "note_pid", f"folder={app_folder}", "wait:=true"], app_folder)
    with background(["worker", "shop", "--processes", "2"], app_folder) as supervisor:
        eventually(lambda: serving(app_folder) == 2 and list(app_folder.glob("*.pid")))
        workers = children(supervisor.pid)
        supervisor.send_signal(number)
        eventually(lambda: "stops: 1 tasks running" in (app_folder / "stderr.txt").read_text())
        supervisor.send_signal(number)
        assert supervisor.wait(15) == 130
    assert not any(map(psutil.pid_exists, workers))


def test_workers_do_not_outlive_a_killed_supervisor(app_folder: Path):
    with background(["worker", "shop", "--processes", "2"], app_folder) as supervisor:
        eventually(lambda: serving(app_folder) == 2)
        workers = [psutil.Process(pid) for pid in children(supervisor.pid)]
        supervisor.kill()
        supervisor.wait(10)
        assert psutil.wait_procs(workers, timeout=15)[1] == []


def test_what_is_wrong_with_a_module_is_said_once(tmp_path: Path):
    (tmp_path / "bad.py").write_text("import pandas_of_mine")
    ran = run_process(["worker", "bad", "--processes", "3", "--log-level", "warning"], tmp_path)
    assert ran.code == 2
    assert ran.err == "error: cannot import 'bad': ModuleNotFoundError: No module named 'pandas_of_mine', at bad.py:1\n"


def test_a_burst_that_only_crashes_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bad.py").write_text("import os\nos._exit(7)")
    monkeypatch.setattr("tasklib.cli.supervisor.FIRST_PAUSE_SECONDS", 0.01)
    ran = run_process(["worker", "bad", "--processes", "2", "--burst"], tmp_path)
    assert ran.code == 1
    assert "died 5 times in a row: giving up" in ran.err


def test_memory_cannot_be_shared(app_folder: Path):
    ran = run_process(["worker", "shop", "--processes", "2", "--database-url", "memory://"], app_folder)
    assert ran.code == 2
    assert "cannot be shared by several processes" in ran.err
