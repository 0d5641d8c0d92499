"""schedule list, show, add, pause, resume, trigger, remove."""

import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli


def test_a_schedule_from_its_making_to_its_end(cli: Cli, queue: Queue):
    weekly = ("--cron", "0 8 * * 1", "--timezone", "America/New_York", "--overlap", "skip", "--tag", "team=ops")
    assert cli("schedule", "add", "weekly", "greet", "name=ada", *weekly).out.startswith("weekly: active, next in ")
    [listed] = cli("schedule", "list", "--json").data
    assert (listed["type"], listed["payload"], listed["cron"]) == ("greet", {"name": "ada"}, "0 8 * * 1")
    assert "at 08:00 on Monday, America/New_York" in cli("schedule", "list").out
    shown = cli("schedule", "show", "weekly").out
    assert shown.count("\nnext ") == 5
    assert cli("schedule", "pause", "weekly").out == "weekly: paused\n"
    task_id = cli("schedule", "trigger", "weekly").out.strip()
    task = queue.get(task_id)
    assert task is not None
    assert (task.kwargs, task.tags["schedule"], task.tags["team"]) == ({"name": "ada"}, "weekly", "ops")
    assert task_id in cli("schedule", "show", "weekly").out
    assert cli("schedule", "resume", "weekly", "--json").data["state"] == "active"
    assert cli("schedule", "remove", "weekly").out == "weekly  removed\n"
    gone = cli("schedule", "show", "weekly")
    assert (gone.code, gone.err) == (1, "error: no schedule is named 'weekly'\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cron", "61 * * * *"], "'61' is not a minute"),
        (["--cron", "0 0 1 * * 1"], "has 6 fields, not five"),
        (["--cron", "0 0 30 2 *"], "never fires"),
        (["--cron", "0 0 * * *", "--timezone", "Mars/Base"], "'Mars/Base' is not a time zone"),
        (["--every", "0"], "every must be 1 to"),
        ([], "give either cron or every"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(cli: Cli, queue: Queue, words: list[str], told: str):
    ran = cli("schedule", "add", "s", "greet", "name=ada", *words)
    assert ran.code == 2
    assert told in ran.err
    assert cli("schedule", "list", "--json").data == []


def test_one_whose_latest_run_failed_stands_out(cli: Cli, queue: Queue):
    cli("schedule", "add", "broken", "break_down", "text=no", "--every", "1h", "--max-retries", "0")
    cli("schedule", "add", "fine", "greet", "name=ada", "--every", "1h")
    for name in ("broken", "fine"):
        cli("schedule", "trigger", name)
    queue.drain()
    listed = cli("schedule", "list", "--json").data
    assert {each["name"]: each["state"] for each in listed} == {"broken": "failing", "fine": "active"}
    assert "failing" in cli("schedule", "list").out
    assert cli("schedule", "show", "broken", "--json").data["state"] == "failing"
    assert "state    failing\n" in cli("schedule", "show", "broken").out
    assert cli("schedule", "pause", "broken").out == "broken: paused\n"
