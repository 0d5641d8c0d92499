"""The demo: the first impression. It must work, say what happened, and leave a queue to look around in."""

import re
import shlex
import signal
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tasklib import TaskState
from tasklib.cli import demo_api
from tasklib.cli.demo_story import OPENING
from tests.cli.running import background, run_process
from tests.waiting import eventually

CURL = re.compile(r'curl -H "Authorization: Bearer (?P<token>\S+)" (?P<url>http://127\.0\.0\.1:\d+)/api/tasks/stats')
COMPLETED = sum(scene.ends == TaskState.COMPLETED for scene in OPENING)


@pytest.fixture(autouse=True)
def _temporary_files_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_once(tmp_path: Path):
    env = {"TASKLIB_DATABASE_URL": f"sqlite:///{tmp_path}/production.db"}
    ran = run_process(["demo", "--once"], tmp_path, env=env)
    assert (ran.code, ran.err) == (0, ""), ran
    for scene in OPENING:
        assert re.search(rf"ok  {scene.name} +{scene.shows} +{scene.ends.value} after {scene.attempts} ", ran.out)
    assert "!!" not in ran.out
    assert re.search(rf"ok  HTTP API +agrees with the table +{COMPLETED} completed", ran.out)
    shown = CURL.search(ran.out)
    assert shown
    assert f"{shown['url']}/login#token={shown['token']}" in ran.out
    assert re.search(r"charge_card +waiting +[12]/4", ran.out)  # each change is a line of its own
    assert not (tmp_path / "production.db").exists()  # the demo keeps away from the queue of the environment
    suggested = [shlex.split(line) for line in ran.out.splitlines() if "--database-url" in line]
    assert [words[1] for words in suggested] == ["list", "show", "retry", "worker", "stats"]
    for words in suggested:
        assert run_process(words[1:], tmp_path).code == 0, words


def test_for_programs_and_on_another_queue(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/mine.db"
    ran = run_process(["demo", "--once", "--json", "--database-url", url], tmp_path)
    assert ran.code == 0, ran
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", ran.data["api"]["url"])
    assert (ran.data["ok"], ran.data["database_url"], ran.data["failures"]) == (True, url, [])
    assert [task["name"] for task in ran.data["tasks"]] == [scene.name for scene in OPENING]
    assert ran.data["seconds"] < 20


def test_without_once_it_goes_on_until_ctrl_c(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo"], tmp_path, stdout=out) as demo:

        def submitted() -> int:
            return len(re.findall(r" pending +0/", (tmp_path / "out.txt").read_text()))

        eventually(lambda: submitted() > len(OPENING), timeout=30)
        shown = CURL.search((tmp_path / "out.txt").read_text())
        assert shown
        stats = f"{shown['url']}/api/tasks/stats"
        assert httpx.get(stats).status_code == 401
        told = httpx.get(stats, headers={"Authorization": f"Bearer {shown['token']}"}).json()
        assert told["completed"] >= COMPLETED
        children = psutil.Process(demo.pid).children()
        assert sorted(child.cmdline()[3] for child in children) == ["serve", "worker"]
        assert not any(shown["token"] in " ".join(child.cmdline()) for child in children)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(15) == 0
    assert not any(child.is_running() for child in children)
    assert "What happened" in (tmp_path / "out.txt").read_text()
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


async def test_a_taken_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(demo_api, "DEFAULT_PORT", port)
        async with demo_api.serving(f"sqlite:///{tmp_path}/mine.db", tmp_path / "server.log") as api:
            assert not api.url.endswith(f":{port}")
            assert await api.completed() == 0
    with pytest.raises(OSError, match="refused"):
        await api.get("/healthz")


def test_without_the_server_extra(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['fastapi'] = None\n")
    ran = run_process(["demo", "--once"], tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (ran.code, ran.err) == (0, ""), ran
    assert "The HTTP API needs the package fastapi; install it with: pip install 'tasklib[server]'" in ran.out
    assert "agrees with" not in ran.out
