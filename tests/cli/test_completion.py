"""What the shell offers on Tab."""

from pathlib import Path

import pytest

from tests.cli.queue import Queue
from tests.cli.running import run_process


def offered(line: str, cwd: Path, url: str) -> str:
    """As bash asks for it: the words so far, the last one incomplete."""
    words = f"tasklib {line}"
    env = {
        "_TASKLIB_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "TASKLIB_DATABASE_URL": url,
    }
    ran = run_process([], cwd, env=env)
    assert ran.err == ""
    return ran.out


@pytest.mark.parametrize("line", ["list --name gr", "submit gr", "pause gr", "retry -n gr", "worker shop --names gr"])
def test_names_of_task_types(tmp_path: Path, queue: Queue, sqlite_url: str, line: str):
    queue.submit("greet", name="ada")
    queue.finished("log_in", user="ada")
    assert offered(line, tmp_path, sqlite_url).split() == ["greet"]


@pytest.mark.parametrize("command", ["show", "wait", "retry", "cancel", "delete"])
def test_ids_of_tasks(tmp_path: Path, queue: Queue, sqlite_url: str, command: str):
    task_id = str(queue.submit("greet", name="ada"))
    assert offered(f"{command} {task_id[:14]}", tmp_path, sqlite_url).split() == [task_id]
    assert offered(f"{command} 00", tmp_path, sqlite_url).strip() == ""


def test_a_queue_that_is_not_there_offers_nothing_and_is_not_made(tmp_path: Path):
    for url in (f"sqlite:///{tmp_path}/none.db", "postgresql://127.0.0.1:1/none", "nonsense"):
        assert offered("show 0", tmp_path, url).strip() == ""
    assert list(tmp_path.iterdir()) == []


def test_the_queue_that_the_line_names(tmp_path: Path, queue: Queue, sqlite_url: str):
    queue.submit("greet", name="ada")
    other = f"sqlite:///{tmp_path}/none.db"
    assert offered(f"--database-url {sqlite_url} list --name gr", tmp_path, other).split() == ["greet"]
    assert offered(f"list --database-url {sqlite_url} --name gr", tmp_path, other).split() == ["greet"]
