"""worker --reload: started anew when a file changes, also after one that could not be imported."""

import signal
import sys
from pathlib import Path

import pytest

from tasklib import Task
from tests.cli.queue import Queue
from tests.cli.running import Cli, background
from tests.waiting import eventually

TASK = "from tasklib import task\n\n@task\ndef version() -> int:\n    return {}\n"


@pytest.mark.timeout(120)
def test_a_change_starts_the_worker_anew(tmp_path: Path, queue: Queue, sqlite_url: str):
    module, log = tmp_path / "shop.py", tmp_path / "stderr.txt"

    def rewritten(text: str, until: str, times: int) -> None:
        """Written again until it is noticed: the watch may not have begun, or two changes may fall into one."""

        def noticed() -> bool:
            if log.read_text().count(until) < times:
                module.write_text(text)
            return log.read_text().count(until) >= times

        eventually(noticed, 60, interval=2)

    def result() -> object:
        task_id = queue.add("version")

        def done() -> Task | None:
            task = queue.get(task_id)
            return task if task is not None and task.state == "completed" else None

        task = eventually(done, 30)
        assert task is not None
        return task.result

    module.write_text(TASK.format(1))
    env = {"TASKLIB_DATABASE_URL": sqlite_url, "PYTHONDONTWRITEBYTECODE": "1"}
    with background(["worker", "shop", "--reload"], tmp_path, env=env) as worker:
        assert result() == {"value": 1}
        rewritten("def broken(:\n", "starts anew with the next change", 1)
        assert worker.poll() is None
        starts = log.read_text().count(" serves ")
        rewritten(TASK.format(2), " serves ", starts + 1)
        assert result() == {"value": 2}
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert "shop.py changed: starting anew" in log.read_text()


def test_without_the_package_the_error_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    ran = cli("worker", "shop", "--reload")
    assert ran.code == 2
    assert "pip install 'tasklib-queue[reload]'" in ran.err
