"""A web server that loads the application, lets it use the queue, and then forks its workers: gunicorn with preload."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.nats_servers import free_port
from tests.waiting import eventually

APPLICATION = """
import os
import tasklib

tasklib.init(tasklib.Config(call_timeout_seconds=10))

@tasklib.task
def add(a: int, b: int) -> int:
    return a + b

add.submit(0, 0)  # before the fork: the parent has connections, threads and locks

def application(environ, start_response):
    handle = add.submit(1, 2)
    assert handle.get().state == "pending"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {handle.id}".encode()]

def stored():
    return len(tasklib.list_tasks(limit=10_000))
"""
REQUESTS = 60


@pytest.mark.parametrize("backend", [pytest.param("sqlite", marks=pytest.mark.infrastructure), "postgres"])
def test_workers_that_were_forked_after_use(request: pytest.FixtureRequest, backend: str, tmp_path: Path):
    """Fault 17: three forked workers with threads submit and read at once, each over connections of its own; no request
    hangs or fails, and each made one task."""
    url: str = request.getfixturevalue(f"{backend}_url")
    (tmp_path / "shop.py").write_text(APPLICATION)
    port = free_port()
    options = ["--preload", "--workers=3", "--threads=4", f"--bind=127.0.0.1:{port}", "--graceful-timeout=5"]
    env = {**os.environ, "TASKLIB_DATABASE_URL": url}
    with (tmp_path / "log").open("w") as log:
        command = [sys.executable, "-m", "gunicorn", *options, "shop:application"]
        server = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log)
    try:

        def listens() -> bool:
            assert server.poll() is None, (tmp_path / "log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        eventually(listens, timeout=30)

        def ask(_: int) -> list[str]:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                assert answer.status == 200
                return str(answer.read().decode()).split()

        answers: list[list[str]] = []

        def shared() -> bool:
            with ThreadPoolExecutor(12) as threads:
                answers.extend(threads.map(ask, range(REQUESTS)))
            return len({pid for pid, _ in answers}) > 1

        eventually(shared, timeout=30)  # on a busy machine the first worker may have had all of the first ones
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    said = (tmp_path / "log").read_text()
    assert (server.returncode, "Traceback" in said) == (0, False), said
    assert str(server.pid) not in {pid for pid, _ in answers}
    assert len({task_id for _, task_id in answers}) == len(answers)
    count = "import shop; print(shop.stored())"
    told = subprocess.run(
        [sys.executable, "-c", count], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30
    )
    assert told.stdout.strip() == str(len(answers) + 2), told.stderr
