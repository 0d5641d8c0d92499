"""pause, resume, limit: what they set, as stats shows it."""

from typing import Any

from tasklib.cli.session import actor
from tests.cli.queue import Queue
from tests.cli.running import Cli


def controls(cli: Cli, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        kind["controls"] for kind in cli("stats", "--json").data["types"] if kind["name"] == name
    )
    return found


def test_pause_and_resume_one_type(cli: Cli, queue: Queue):
    assert cli("pause", "greet").out == f"greet: paused by {actor()}\n"
    task_id = queue.submit("greet", name="ada")
    queue.drain()
    task = queue.get(task_id)
    assert task is not None
    assert task.state == "pending"
    assert "paused" in cli("stats").out
    assert cli("resume", "greet").out == "greet: no limits\n"
    queue.drain()
    task = queue.get(task_id)
    assert task is not None
    assert task.state == "completed"


def test_pause_and_resume_all(cli: Cli):
    assert cli("pause", "--json").data["paused"] is True
    assert cli("pause").out == f"all task types: paused by {actor()}\n"
    assert cli("stats", "--json").data["all"]["paused"] is True
    assert f"For all types together: paused by {actor()}." in cli("stats").out
    assert cli("resume").out == "all task types: no limits\n"
    assert cli("stats", "--json").data["all"]["paused"] is False


def test_limits(cli: Cli):
    ran = cli("limit", "greet", "--rate", "2.5", "--concurrency", "4")
    assert ran.out == "greet: at most 2.5 started a second, at most 4 at once\n"
    assert cli("limit", "greet", "--concurrency", "2", "--json").data["concurrency"] == 2
    assert (controls(cli, "greet")["rate"], controls(cli, "greet")["concurrency"]) == (2.5, 2)
    assert cli("limit", "greet", "--clear").out == "greet: no limits\n"


def test_a_limit_for_all(cli: Cli):
    assert cli("limit", "--all", "--rate", "10").out == "all task types: at most 10 started a second\n"
    assert cli("stats", "--json").data["all"]["rate"] == 10
