"""The demo: the first impression. It must work, say what happened, and leave a queue to look around in."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tasklib import TaskState
from tasklib.cli.exits import Exit
from tasklib.cli.serve import DEFAULT_PORT
from tests.cli.running import background, environment, run_process
from tests.waiting import eventually

CURL = re.compile(r'curl -H "Authorization: Bearer (?P<token>\S+)" (?P<url>http://127\.0\.0\.1:\d+)/api/tasks/stats')
SHOWN = {
    "send_email": ("runs at once", TaskState.COMPLETED, 1),
    "resize_photo": ("runs in a thread", TaskState.COMPLETED, 1),
    "charge_card": ("fails twice, is retried", TaskState.COMPLETED, 3),
    "import_feed": ("fails for good", TaskState.FAILED, 3),
    "review_refund": ("is claimed by an agent", TaskState.COMPLETED, 1),
    "crunch_numbers": ("is cancelled as it runs", TaskState.CANCELLED, 1),
    "read_orders": ("begins a flow", TaskState.COMPLETED, 1),
    "add_up": ("waits for its result", TaskState.COMPLETED, 1),
    "close_the_day": ("gets both results", TaskState.COMPLETED, 1),
}


@pytest.fixture(autouse=True)
def _temporary_files_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_once(tmp_path: Path):
    env = {"TASKLIB_DATABASE_URL": f"sqlite:///{tmp_path}/production.db"}
    ran = run_process(["demo", "--once"], tmp_path, env=env)
    assert (ran.code, ran.err) == (0, ""), ran
    assert len(re.findall("^  ok  ", ran.out, re.MULTILINE)) == 13
    for name, (shows, ends, attempts) in SHOWN.items():
        assert re.search(rf"ok  {name} +{shows} +{ends} after {attempts} ", ran.out), name
    assert "!!" not in ran.out
    assert re.search(r"review_refund +running +1/4  on refund-agent", ran.out)
    shown = CURL.search(ran.out)
    assert shown
    assert f"{shown['url']}/login#token={shown['token']}" in ran.out
    assert re.search(r"charge_card +waiting +[12]/4", ran.out)  # each change is a line of its own
    assert not (tmp_path / "production.db").exists()  # the demo keeps away from the queue of the environment
    suggested = [shlex.split(line) for line in ran.out.splitlines() if "--database-url" in line]
    assert [words[1] for words in suggested] == ["list", "show", "retry", "stats", "schedule", "worker"]
    for words in suggested:
        assert run_process(words[1:], tmp_path).code == 0, words


def test_for_programs_and_on_another_queue(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/mine.db"
    ran = run_process(["demo", "--once", "--json", "--database-url", url], tmp_path)
    assert ran.code == 0, ran
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", ran.data["api"])
    assert (ran.data["database_url"], ran.data["wrong"]) == (url, [])
    assert {task["name"] for task in ran.data["tasks"]} == set(SHOWN)


def test_without_once_it_goes_on_until_ctrl_c(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo"], tmp_path, stdout=out) as demo:

        def submitted() -> int:
            return len(re.findall(r" pending +0/", (tmp_path / "out.txt").read_text()))

        eventually(lambda: submitted() > 13, timeout=30)
        shown = CURL.search((tmp_path / "out.txt").read_text())
        assert shown
        stats = f"{shown['url']}/api/tasks/stats"
        assert httpx.get(stats).status_code == 401
        told = httpx.get(stats, headers={"Authorization": f"Bearer {shown['token']}"}).json()
        assert told["completed"] >= 1
        children = psutil.Process(demo.pid).children()
        assert sorted(child.cmdline()[3] for child in children) == ["serve", "worker"]
        assert not any(shown["token"] in " ".join(child.cmdline()) for child in children)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(15) == 0
    assert not any(child.is_running() for child in children)
    assert "The queue is still there." in (tmp_path / "out.txt").read_text()
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()


def test_interrupted_once(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo", "--once"], tmp_path, stdout=out) as demo:
        eventually(lambda: " running " in (tmp_path / "out.txt").read_text(), timeout=30)
        children = psutil.Process(demo.pid).children()
        demo.send_signal(signal.SIGINT)
        assert demo.wait(15) == 130
    assert len(children) == 2
    assert not any(child.is_running() for child in children)
    assert (tmp_path / "stderr.txt").read_text() == "Interrupted.\n"


def test_killed_it_leaves_nothing_behind(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo"], tmp_path, stdout=out) as demo:
        eventually(lambda: " running " in (tmp_path / "out.txt").read_text(), timeout=30)
        children = psutil.Process(demo.pid).children()
        demo.kill()
    assert len(children) == 2
    eventually(lambda: not any(_is_alive(child) for child in children), timeout=15)


def _is_alive(process: psutil.Process) -> bool:
    """One that nobody has reaped yet is not."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def test_a_taken_port(tmp_path: Path):
    with ExitStack() as stack:
        with suppress(OSError):  # then another has it
            stack.enter_context(socket.create_server(("127.0.0.1", DEFAULT_PORT)))
        ran = run_process(["demo", "--once", "--json"], tmp_path)
    assert (ran.code, ran.err) == (0, ""), ran
    assert not ran.data["api"].endswith(f":{DEFAULT_PORT}")


WRONG = """
import sys
from tasklib.cli import demo_tasks
from tasklib.cli.main import main
demo_tasks.OPENING = (demo_tasks.Scene("runs at once", demo_tasks.import_feed, {"url": "here"}),)
sys.argv[1:] = ["demo", "--once"]
main()
"""


def test_a_task_that_ends_otherwise_than_it_should_is_noticed(tmp_path: Path):
    command = [sys.executable, "-c", WRONG]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert ran.returncode == Exit.FAILED, ran.stderr
    assert re.search(r"!!  import_feed +runs at once +failed after 3 attempts", ran.stdout)


def test_without_the_server_extra(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['fastapi'] = None\n")
    ran = run_process(["demo", "--once"], tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (ran.code, ran.err) == (0, ""), ran
    assert "The HTTP API needs the package fastapi; install it with: pip install 'tasklib-queue[server]'" in ran.out
    assert "Its dashboard" not in ran.out
