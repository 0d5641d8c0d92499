"""Several processes on one queue."""

import subprocess
import sys
from contextlib import ExitStack

import pytest

from tasklib import TaskManager


@pytest.fixture(params=["sqlite", "postgres", "nats"])
def shared_url(request: pytest.FixtureRequest) -> str:
    """A queue that several processes can use."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


HEAD = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tasklib import TaskAlreadyClaimed, TaskManager

manager = TaskManager(sys.argv[1])
manager.list(limit=1)
print("ready", flush=True)
sys.stdin.readline()
"""

SUBMIT = """
with ThreadPoolExecutor(10) as pool:
    for found in pool.map(lambda n: manager.submit({"n": n}, idempotency_key="order-123-process"), range(10)):
        print(found)
"""

CLAIM = """
def claim(number):
    try:
        return "won", manager.claim(sys.argv[2], f"worker-{sys.argv[3]}-{number}").claimed_by
    except TaskAlreadyClaimed as error:
        return "lost", error.worker_id

with ThreadPoolExecutor(4) as pool:
    for outcome, owner in pool.map(claim, range(4)):
        print(outcome, owner)
"""


def run_at_once(program: str, url: str, *arguments: str) -> list[str]:
    """What five processes print that begin together."""
    with ExitStack() as stack:
        processes = []
        for number in range(5):
            command = [sys.executable, "-c", HEAD + program, url, *arguments, str(number)]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)  # does nothing to one that has ended
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * 5
    return "".join(said).splitlines()


def test_fifty_submits_of_one_key_from_five_processes_make_one_task(shared_url: str):
    with TaskManager(shared_url) as manager:
        manager.list()
        found = run_at_once(SUBMIT, shared_url)
        assert len(found) == 50
        (task,) = manager.list()
        assert set(found) == {str(task.id)}
        assert manager.get_by_idempotency_key("order-123-process") == task


def test_twenty_workers_of_five_processes_claim_one_task_and_one_wins(shared_url: str):
    with TaskManager(shared_url) as manager:
        task_id = manager.submit(1)
        said = [line.split() for line in run_at_once(CLAIM, shared_url, str(task_id))]
        task = manager.get(task_id)
        assert [owner for outcome, owner in said if outcome == "won"] == [task.claimed_by]
        assert [owner for outcome, owner in said if outcome == "lost"] == [task.claimed_by] * 19
        assert task.attempts == 1
