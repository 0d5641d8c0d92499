"""list and show: filters, pages, and everything there is to know about a task."""

import re

from tests.cli.queue import Queue
from tests.cli.running import Cli


def names(ran_data: dict[str, list[dict[str, str]]]) -> list[str]:
    return [task["name"] for task in ran_data["tasks"]]


def test_filters(cli: Cli, queue: Queue):
    queue.finished("greet", name="ada")
    queue.finished("break_down", text="no")
    cli("submit", "later", "--tag", "team=shop", "--tag", "n:=1")
    assert names(cli("list", "--json").data) == ["later", "break_down", "greet"]
    assert names(cli("list", "--state", "failed", "--json").data) == ["break_down"]
    assert names(cli("list", "--state", "failed", "--state", "completed", "--json").data) == ["break_down", "greet"]
    queue.finished("wait_for_retry")
    assert names(cli("list", "--state", "waiting", "--json").data) == ["wait_for_retry"]
    assert names(cli("list", "--state", "waiting", "--state", "pending", "--json").data) == ["wait_for_retry", "later"]
    both = cli("list", "--state", "waiting", "--state", "failed", "--json").data
    assert names(both) == ["wait_for_retry", "break_down"]
    refused = cli("list", "--state", "waiting", "--state", "completed")
    assert (refused.code, "--state waiting cannot be combined with completed" in refused.err) == (2, True)
    assert names(cli("list", "--name", "greet", "--json").data) == ["greet"]
    assert names(cli("list", "--tag", "team=shop", "--json").data) == ["later"]
    assert names(cli("list", "--tag", "n:=1", "--json").data) == ["later"]
    assert names(cli("list", "--tag", "n=1", "--json").data) == []


def test_by_when_they_ended(cli: Cli, queue: Queue):
    cli("submit", "later")
    queue.finished("greet", name="ada")
    queue.finished("break_down", text="no")
    assert names(cli("list", "--ended", "1h", "--json").data) == ["break_down", "greet"]
    assert names(cli("list", "--ended", "1h", "--state", "failed", "--json").data) == ["break_down"]
    assert names(cli("list", "--ended", "0s", "--json").data) == []
    assert "No tasks match." in cli("list", "--ended", "0s").err
    refused = cli("list", "--ended", "yesterday")
    assert (refused.code, "is not a duration" in refused.err) == (2, True)
    refused = cli("list", "--ended", "99999999d")
    assert (refused.code, "ended" in refused.err) == (2, True)


def test_pages(cli: Cli, queue: Queue):
    queue.submit_many(5)
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = cli("list", "--limit", "2", *cursor, "--json").data
        seen += [task["id"] for task in page["tasks"]]
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]
    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen, reverse=True)


def test_a_list_for_people(cli: Cli, queue: Queue):
    task_id = queue.finished("break_down", text="out of paper")
    header, line = cli("list").out.splitlines()
    assert header.split() == ["ID", "NAME", "STATE", "TRIES", "PRIO", "CREATED", "AGE", "REMARK"]
    assert line.startswith(f"{task_id}  break_down  failed")
    assert line.endswith("ValueError: out of paper")
    assert "ago" in line


def test_nothing_to_list(cli: Cli):
    ran = cli("list")
    assert (ran.code, ran.out) == (0, "")
    assert "There are no tasks." in ran.err
    assert "No tasks match." in cli("list", "--state", "failed").err


def test_a_retry_to_come_is_shown_as_waiting(cli: Cli, queue: Queue):
    task_id = queue.finished("wait_for_retry")
    assert " waiting " in cli("list").out
    assert "retry in" in cli("list").out
    shown = cli("show", str(task_id)).out
    assert "failed, waiting for its retry" in shown
    assert "next retry" in shown


def test_show_tells_everything(cli: Cli, queue: Queue):
    task_id = queue.finished("break_twice", text="out of paper")
    ran = cli("show", str(task_id))
    assert ran.code == 0
    for part in (
        "break_twice  failed for good",
        "2 of 2",
        "Payload",
        '"text": "out of paper"',
        "Attempts that did not complete",
        "Traceback (most recent call last):",
        "ValueError: out of paper",
        "ago (20",
    ):
        assert part in ran.out, part
    history = ran.out.split("Attempts that did not complete")[1].split("\nError")[0]
    assert [line.split()[0] for line in history.splitlines() if line.strip()] == ["1", "2"]


def test_show_a_result(cli: Cli, queue: Queue):
    out = cli("show", str(queue.finished("greet", name="ada"))).out
    assert "greet  completed" in out
    assert '"hello ada"' in out
    assert re.search(r"finished .*, ran for \d+ ms", out)


def test_a_retry_is_not_a_schedule(cli: Cli, queue: Queue):
    task_id = str(queue.finished("break_down", text="no"))
    cli("retry", task_id)
    assert "scheduled" not in cli("show", task_id).out
    later = cli("submit", "later", "--delay", "1h", "--json").data["id"]
    assert "scheduled" in cli("show", later).out


def test_show_as_json_has_every_column(cli: Cli, queue: Queue):
    task_id = queue.finished("break_twice", text="no")
    task = cli("show", str(task_id), "--json").data
    assert task["id"] == str(task_id)
    assert (task["state"], task["attempts"], task["max_attempts"]) == ("failed", 2, 2)
    assert [entry["attempt"] for entry in task["history"]] == [1, 2]
    assert task["completed_at"].endswith("Z")
    assert {"kwargs", "result", "error", "retry_count", "locked_until", "version", "idempotency_key"} <= set(task)


def test_a_task_that_is_not_there(cli: Cli):
    ran = cli("show", "01890000-0000-7000-8000-000000000000")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: no task with id 01890000-0000-7000-8000-000000000000\n"
