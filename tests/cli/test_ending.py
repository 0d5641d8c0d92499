"""A worker process ends soon after its grace period, whatever the code of its tasks does."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tasklib.cli.exits import Exit
from tasklib.core.options import SubmitOptions
from tests.cli.queue import Queue
from tests.cli.running import background, insist, run_process
from tests.waiting import eventually

APP = """
import asyncio, atexit, ctypes, hashlib, threading
from pathlib import Path
from tasklib import task
from tasklib.worker.executors import threads

@task
async def swallows(folder: Path) -> None:
    (folder / "started").touch()
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            (folder / "cancelled").touch()

@task
async def blocks_the_loop(folder: Path) -> None:
    (folder / "started").touch()
    threading.Event().wait()

@task
async def waits_in_c(folder: Path) -> None:
    (folder / "started").touch()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)  # which no signal interrupts

@task
def has_a_thread(folder: Path) -> None:
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    (folder / "started").touch()

@task
def has_an_exit_handler(folder: Path) -> None:
    atexit.register(threading.Event().wait)
    (folder / "started").touch()

@task
def holds_the_interpreter(folder: Path) -> None:
    (folder / "started").touch()
    ctypes.PyDLL(None).sleep(600)

@task
def hangs() -> None:
    threads.LEFT_BEHIND_LIMIT = 1
    threading.Event().wait()
"""

SOON = """
from tasklib.cli import ending
ending.AFTER_GRACE_SECONDS = 2.0
ending.EXIT_SECONDS = 0.5
"""
"""Python runs it when it starts, in a supervisor and in its workers, too: what takes seconds takes fewer."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "sitecustomize.py").write_text(SOON)
    return tmp_path


@pytest.fixture
def env(folder: Path, sqlite_url: str) -> dict[str, str]:
    # Before what is there: a run without one of the guards has its sources there.
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"TASKLIB_DATABASE_URL": sqlite_url, "PYTHONPATH": os.pathsep.join(paths)}


def log(folder: Path) -> str:
    return (folder / "stderr.txt").read_text()


ORDERLY = {"swallows": "pending", "has_a_thread": "completed", "has_an_exit_handler": "completed"}
"""The worker itself has come to its end, and only the process must be ended."""


@pytest.mark.parametrize("name", ["swallows", "has_a_thread", "has_an_exit_handler", "blocks_the_loop", "waits_in_c"])
def test_it_ends_after_its_grace(folder: Path, queue: Queue, env: dict[str, str], name: str):
    queue.add(name, folder=str(folder))
    with background(["worker", "app", "--grace", "200ms"], folder, env=env) as worker:
        eventually((folder / "started").exists)
        if ORDERLY.get(name) == "completed":
            eventually(lambda: queue.states() == {name: "completed"})
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == (Exit.OK if name in ORDERLY else Exit.INTERRUPTED)
    assert "this process ends without waiting any longer" in log(folder)
    assert queue.states() == {name: ORDERLY.get(name, "running")}


@pytest.mark.parametrize("name", ["swallows", "holds_the_interpreter"])
def test_so_do_all_processes_of_a_supervisor(folder: Path, queue: Queue, env: dict[str, str], name: str):
    queue.add(name, folder=str(folder))
    with background(["worker", "app", "--processes", "2", "--grace", "200ms"], folder, env=env) as supervisor:
        eventually((folder / "started").exists)
        workers = psutil.Process(supervisor.pid).children()
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(40) == Exit.OK
    assert not any(worker.is_running() for worker in workers)
    assert ("does not end: it is killed" in log(folder)) == (name == "holds_the_interpreter")


def test_a_second_signal_is_heard_although_the_loop_is_blocked(folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("blocks_the_loop", folder=str(folder))
    with background(["worker", "app", "--grace", "1h"], folder, env=env) as worker:
        eventually((folder / "started").exists)
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: "SIGTERM: stopping" in log(folder))
        assert insist(worker) == Exit.INTERRUPTED


def test_a_worker_without_a_slot_ends_with_a_code_of_its_own(folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("hangs", options=SubmitOptions(timeout_seconds=1, max_retries=0))
    ran = run_process(["worker", "app"], folder, env=env)
    assert ran.code == Exit.EXHAUSTED
    assert "cannot go on: each of its slots is taken" in ran.err
    assert "Traceback" not in ran.err
