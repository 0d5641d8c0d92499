"""`worker --processes N`: a dead one is replaced, signals go to all, and nobody is left behind."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tasklib.cli import supervisor as supervising
from tasklib.cli.exits import Exit
from tests.cli.queue import Queue
from tests.cli.running import background, insist, run_process
from tests.waiting import eventually


@pytest.fixture
def env(sqlite_url: str) -> dict[str, str]:
    return {"TASKLIB_DATABASE_URL": sqlite_url}


def children(supervisor: int) -> set[int]:
    return {child.pid for child in psutil.Process(supervisor).children()}


def log(folder: Path) -> str:
    return (folder / "stderr.txt").read_text()


def serving(folder: Path) -> int:
    """Workers that have said that they started."""
    return log(folder).count(" starts: ")


def test_a_killed_process_is_replaced(app_folder: Path, queue: Queue, env: dict[str, str]):
    with background(["worker", "shop", "--processes", "2"], app_folder, env=env) as supervisor:
        eventually(lambda: serving(app_folder) == 2)
        before = children(supervisor.pid)
        assert len(before) == 2
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: serving(app_folder) == 3)
        after = children(supervisor.pid)
        assert len(after) == 2
        assert before - after == {victim}
        queue.add("add", a=1)
        eventually(lambda: queue.states() == {"add": "completed"})
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
    assert not any(map(psutil.pid_exists, after))
    assert "was ended by SIGKILL; it starts again in 0.5 s" in log(app_folder)
    assert "Traceback" not in log(app_folder)


def test_a_burst_ends_when_all_have_ended(app_folder: Path, queue: Queue, env: dict[str, str]):
    for number in range(6):
        queue.add("add", a=number)
    ran = run_process(["worker", "shop", "--processes", "2", "--burst", "--json"], app_folder, env=env)
    assert ran.code == 0, ran
    assert ran.data["processes"] == 2
    assert queue.states() == {"add": "completed"}


def test_a_second_signal_leaves_at_once(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop", "--processes", "2"], app_folder, env=env) as supervisor:
        eventually(lambda: serving(app_folder) == 2 and list(app_folder.glob("*.pid")))
        workers = children(supervisor.pid)
        supervisor.send_signal(signal.SIGINT)
        eventually(lambda: "stops: 1 task running" in log(app_folder))
        assert insist(supervisor) == 130
    assert not any(map(psutil.pid_exists, workers))


def test_one_signal_to_the_whole_family_is_one(app_folder: Path, queue: Queue, env: dict[str, str]):
    """As a service manager sends it: to the supervisor, which passes it on, and to each worker."""
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop", "--processes", "2"], app_folder, env=env) as supervisor:
        eventually(lambda: serving(app_folder) == 2 and list(app_folder.glob("*.pid")))
        for pid in (supervisor.pid, *children(supervisor.pid)):
            with suppress(ProcessLookupError):  # an idle one, which the supervisor has told before
                os.kill(pid, signal.SIGTERM)
        eventually(lambda: "stops: 1 task running" in log(app_folder))
        (app_folder / "go").touch()
        assert supervisor.wait(20) == 0
    assert queue.states() == {"note_pid": "completed"}
    assert "leav" not in log(app_folder)


def test_workers_do_not_outlive_a_killed_supervisor(app_folder: Path, env: dict[str, str]):
    with background(["worker", "shop", "--processes", "2"], app_folder, env=env) as supervisor:
        eventually(lambda: serving(app_folder) == 2)
        workers = [psutil.Process(pid) for pid in children(supervisor.pid)]
        supervisor.kill()
        supervisor.wait(10)
        assert psutil.wait_procs(workers, timeout=15)[1] == []


def test_what_is_wrong_with_a_module_is_said_once(tmp_path: Path, env: dict[str, str]):
    (tmp_path / "bad.py").write_text("import pandas_of_mine")
    ran = run_process(["worker", "bad", "--processes", "3", "--log-level", "warning"], tmp_path, env=env)
    assert ran.code == 2
    assert ran.err == "error: cannot import 'bad': ModuleNotFoundError: No module named 'pandas_of_mine', at bad.py:1\n"


def test_a_burst_that_only_crashes_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text("import os\nos._exit(7)")
    monkeypatch.setattr(supervising, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(supervising, "BURST_TRIES", 3)

    async def supervise() -> Exit:
        return await supervising.Supervisor([["bad", "--burst"]] * 2, burst=True).run()

    assert asyncio.run(supervise()) is Exit.FAILED
    assert "process 1 ended with exit code 7; it starts again in 0.01 s" in caplog.text
    assert "it starts again in 0.02 s" in caplog.text
    assert "died 3 times in a row: giving up" in caplog.text


def test_a_process_that_ended_in_order_does_not_start_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """An operator drained it."""
    caplog.set_level("INFO", "tasklib.supervisor")
    started: list[int] = []

    async def ended(supervisor: supervising.Supervisor, number: int) -> Exit:
        started.append(number)
        return Exit.OK

    monkeypatch.setattr(supervising.Supervisor, "_run_once", ended)

    async def supervise() -> Exit:
        return await supervising.Supervisor([["shop"]], burst=False).run()

    assert asyncio.run(supervise()) is Exit.OK
    assert started == [1]
    assert "process 1 has ended in order, as it was asked to; it does not start again" in caplog.text


def test_memory_cannot_be_shared(app_folder: Path):
    ran = run_process(["worker", "shop", "--processes", "2", "--database-url", "memory://"], app_folder)
    assert ran.code == 2
    assert "cannot be shared by several processes" in ran.err
