"""Eight processes on one SQLite file, the dashboard's server among them."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import apsw
import httpx
import pytest

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.server.serving import serving
from tests.waiting import eventually_async
from tests.worker.processes import ROOT, fleet_on

pytestmark = pytest.mark.infrastructure

SUBMIT = """
import sys, tasklib
from tests.worker.app import work

tasklib.init(tasklib.Config(database_url=sys.argv[1]))
for start in range(40):
    work.submit_many({"number": number} for number in range(20))
    work.submit(start)
"""
EACH = 40 * 21
PAGES = ("tasks?limit=50", "tasks?status=completed&limit=50", "tasks/stats", "types", "workers")


def _submitter(url: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "error", "-c", SUBMIT, url]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(300)
async def test_eight_processes_and_the_dashboard_share_a_file(sqlite_url: str, tmp_path: Path):
    """Fault 16: four workers, three that submit, and the server whose pages and live stream are being looked at. Nobody
    is told that the file is locked, the log beside it stays small, and the file is whole."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    engine = Engine(Config(database_url=sqlite_url))
    await engine.store()
    env = {"TASKLIB_DATABASE_URL": sqlite_url}
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, "--insecure-no-auth", env=env))
        fleet = stack.enter_context(fleet_on(sqlite_url, tmp_path))
        for _ in range(4):
            fleet.start(4, dead_after_seconds=30.0)
        submitting = [stack.enter_context(_submitter(sqlite_url)) for _ in range(3)]
        looks = 0
        largest = 0
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=30) as client,
            client.stream("GET", "/api/events") as live,
        ):
            assert live.status_code == 200

            async def all_done() -> bool:
                nonlocal looks, largest
                for page in PAGES:
                    answer = await client.get(f"/api/{page}")
                    assert answer.status_code == 200, answer.text
                    looks += 1
                largest = max(largest, path.with_name(path.name + "-wal").stat().st_size)
                figures = (await engine.stats()).get("work")
                return figures is not None and figures.completed == 3 * EACH

            await eventually_async(all_done, 200)
        for process in submitting:
            assert process.stderr is not None
            said = process.stderr.read()
            assert (process.wait(30), said) == (0, "")
        assert looks > 20
        assert largest < 64 * 1024 * 1024
        for text in (*(worker.said for worker in fleet.workers), (tmp_path / "stderr.txt").read_text()):
            assert "locked" not in text
            assert "Traceback" not in text
        assert all(worker.process.poll() is None for worker in fleet.workers)
    await engine.close()
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
