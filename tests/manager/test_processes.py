"""Several processes on one queue."""

import sys

import pytest

from tasklib import TaskManager
from tests.processes import said_together


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
    command = [sys.executable, "-c", HEAD + program, url, *arguments]
    return said_together([[*command, str(number)] for number in range(5)])


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
