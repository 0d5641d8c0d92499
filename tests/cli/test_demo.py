"""The demo: the first impression. It must work, say what happened, and leave a queue to look around in."""

import re
import shlex
import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from tasklib.cli.demo_story import OPENING
from tests.cli.running import background, run_process
from tests.waiting import eventually


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
    assert (ran.data["ok"], ran.data["database_url"], ran.data["failures"]) == (True, url, [])
    assert [task["name"] for task in ran.data["tasks"]] == [scene.name for scene in OPENING]
    assert ran.data["seconds"] < 20


def test_without_once_it_goes_on_until_ctrl_c(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo"], tmp_path, stdout=out) as demo:

        def submitted() -> int:
            return len(re.findall(r" pending +0/", (tmp_path / "out.txt").read_text()))

        eventually(lambda: submitted() > len(OPENING), timeout=30)
        worker = psutil.Process(demo.pid).children()[0]
        demo.send_signal(signal.SIGINT)
        assert demo.wait(15) == 0
    assert not worker.is_running()
    assert "What happened" in (tmp_path / "out.txt").read_text()
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()


def test_interrupted_once(tmp_path: Path):
    with (tmp_path / "out.txt").open("w") as out, background(["demo", "--once"], tmp_path, stdout=out) as demo:
        eventually(lambda: " running " in (tmp_path / "out.txt").read_text(), timeout=30)
        worker = psutil.Process(demo.pid).children()[0]
        demo.send_signal(signal.SIGINT)
        assert demo.wait(15) == 130
    assert not worker.is_running()
    assert (tmp_path / "stderr.txt").read_text() == "Interrupted.\n"
