"""TaskLib's summary, "Full Integration": a project of three files, its application and its worker as real processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.documents.printed import real_address
from tests.waiting import eventually

APP = """
from fastapi import FastAPI
import tasklib
from tasks import send_email

app = FastAPI()

@app.on_event("startup")
async def startup():
    config = tasklib.Config(database_url="postgresql://...")
    tasklib.init(config)

@app.post("/email")
async def send(to: str):
    task_id = await tasklib.submit_task(send_email, to=to)
    return {"task_id": task_id}

@app.get("/task/{task_id}")
async def status(task_id: str):
    task = tasklib.get_task(UUID(task_id))
    return {
        "state": task.state,
        "result": task.result,
        "error": task.error
    }
"""

TASKS = """
import tasklib

@tasklib.task
def send_email(to: str) -> bool:
    # Your code
    return True

@tasklib.task(max_retries=3, timeout_seconds=30)
def process_data(file_path: str) -> str:
    # Your code
    return "done"
"""

WORKER = """
import asyncio
import tasklib

async def main():
    config = tasklib.Config(database_url="postgresql://...")
    worker = tasklib.TaskWorker(config, concurrency=4)
    await worker.run()

if __name__ == "__main__":
    asyncio.run(main())
"""


@contextmanager
def process(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A program of the project, ended by SIGTERM."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TASKLIB_")}
    log = folder / f"{command[-1]}.log"
    with log.open("w") as output:
        running = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=env, stdout=output, stderr=output, text=True
        )
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            try:
                running.wait(30)
            except subprocess.TimeoutExpired:
                running.kill()
                raise
    assert running.returncode in (0, -signal.SIGTERM), log.read_text()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_full_integration(backend: str, tmp_path: Path, request: pytest.FixtureRequest):
    """The project of three files: "Terminal 1: App", "Terminal 2: Worker"."""
    url: str = request.getfixturevalue(f"{backend}_url")
    missing = {"app.py": "from uuid import UUID", "tasks.py": "", "worker.py": "import tasks"}
    for file, text in (("app.py", APP), ("tasks.py", TASKS), ("worker.py", WORKER)):
        (tmp_path / file).write_text(f"{missing[file]}\n{real_address(text, url)}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    with (
        process(tmp_path, "-m", "uvicorn", "--port", str(port), "app:app"),
        process(tmp_path, "worker.py"),
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as client,
    ):

        def submitted() -> httpx.Response | None:
            try:
                return client.post("/email", params={"to": "user@example.com"})
            except httpx.ConnectError:
                return None

        answer = eventually(submitted, timeout=30)
        assert answer is not None
        task_id = answer.json()["task_id"]

        def state() -> Any:
            return client.get(f"/task/{task_id}").json()

        eventually(lambda: state()["state"] == "completed", timeout=30)
        assert state() == {"state": "completed", "result": {"value": True}, "error": None}
