"""retry, run, cancel, revive, delete, cleanup, copy-task, drain: what they do, and that the destructive ones ask."""

import re

import pytest

from tasklib.cli.session import actor
from tasklib.core.options import SubmitOptions
from tasklib.stores import values
from tests.cli.queue import Queue
from tests.cli.running import Cli

MISSING = "01890000-0000-7000-8000-000000000000"


def test_retry(cli: Cli, queue: Queue):
    task_id = queue.finished("break_down", text="no")
    ran = cli("retry", str(task_id))
    assert (ran.code, ran.out) == (0, f"{task_id}  will run again\n")
    task = queue.get(task_id)
    assert task is not None
    assert (task.state, task.retry_count, len(task.history)) == ("pending", 0, 1)


def test_only_failed_tasks_are_retried(cli: Cli, queue: Queue):
    task_id = queue.finished("greet", name="ada")
    ran = cli("retry", str(task_id))
    assert (ran.code, ran.out) == (1, "")
    assert "only a failed task can be retried" in ran.err


def test_cancel(cli: Cli, queue: Queue):
    task_id = queue.submit("greet", name="ada")
    assert cli("cancel", str(task_id)).out == f"{task_id}  cancelled\n"
    task = queue.get(task_id)
    assert task is not None
    assert task.state == "cancelled"
    assert cli("cancel", str(task_id)).code == 1


def test_one_that_refuses_does_not_keep_the_others_from_it(cli: Cli, queue: Queue):
    done, waiting = queue.finished("greet", name="ada"), queue.submit("greet", name="ada")
    ran = cli("cancel", str(done), MISSING, str(waiting), "--json")
    assert ran.code == 1
    assert [task["id"] for task in ran.data["done"]] == [str(waiting)]
    assert [(each["id"], each["code"]) for each in ran.data["refused"]] == [
        (str(done), "task_completed"),
        (MISSING, "task_not_found"),
    ]


def test_delete_refuses_where_nobody_can_be_asked(cli: Cli, queue: Queue):
    task_id = queue.finished("greet", name="ada")
    ran = cli("delete", str(task_id), stdin="y\n")
    assert (ran.code, ran.out) == (2, "")
    assert "add --yes" in ran.err
    assert queue.get(task_id) is not None


def test_delete(cli: Cli, queue: Queue):
    task_id = queue.finished("greet", name="ada")
    assert cli("delete", str(task_id), "--yes").out == f"{task_id}  deleted\n"
    assert queue.get(task_id) is None
    assert cli("delete", str(task_id), "--yes").code == 1


def test_only_finished_tasks_are_deleted(cli: Cli, queue: Queue):
    task_id = queue.submit("greet", name="ada")
    ran = cli("delete", str(task_id), "--yes")
    assert ran.code == 1
    assert "cancel it first" in ran.err
    assert queue.get(task_id) is not None


def test_cleanup(cli: Cli, queue: Queue):
    done, failed = queue.finished("greet", name="ada"), queue.finished("break_down", text="no")
    waiting = queue.submit("greet", name="later", options=SubmitOptions(delay_seconds=600))
    assert cli("cleanup", "--older-than", "1h", "--yes", "--json").data == {"found": 0, "deleted": 0}
    assert "2 completed, failed and cancelled tasks" in cli("cleanup", "--older-than", "0s", "--dry-run").out
    assert queue.get(done) is not None
    refused = cli("cleanup", "--older-than", "0s")
    assert refused.code == 2
    assert "delete 2 completed" in refused.err
    ran = cli("cleanup", "--older-than", "0s", "--state", "failed", "--yes", "--json")
    assert ran.data == {"found": 1, "deleted": 1}
    assert (queue.get(failed), queue.get(done) is not None) == (None, True)
    assert "1 completed" in cli("cleanup", "--older-than", "0s", "--yes").out
    assert queue.get(done) is None
    assert queue.get(waiting) is not None


def test_cleanup_takes_more_than_one_batch(cli: Cli, queue: Queue):
    queue.submit_many(1500)
    queue.drain()
    assert cli("cleanup", "--older-than", "0s", "--yes", "--json").data == {"found": 1500, "deleted": 1500}


def test_all_that_match_are_retried_after_a_count(cli: Cli, queue: Queue):
    failed = [queue.finished("break_down", text="no") for _ in range(3)]
    done = queue.finished("greet", name="ada")
    unasked = cli("retry", "--name", "break_down")
    assert unasked.code == 2
    assert "this would retry 3 tasks that failed; add --yes" in unasked.err
    ran = cli("retry", "--name", "break_down", "--name", "greet", "--yes")
    assert (ran.code, ran.out) == (0, "3 tasks were queued again.\n")
    assert {queue.get(task_id).state for task_id in failed} == {"pending"}  # type: ignore[union-attr]
    assert queue.get(done).state == "completed"  # type: ignore[union-attr]


def test_all_that_match_are_cancelled_or_deleted(cli: Cli, queue: Queue):
    for team in ("red", "red", "blue"):
        queue.submit("greet", name="ada", options=SubmitOptions(tags={"team": team}))
    assert cli("cancel", "--tag", "team=red", "--yes", "--json").data == {"found": 2, "done": 2}
    assert cli("delete", "--state", "cancelled", "--yes").out == "2 tasks were deleted.\n"
    assert cli("delete", "--state", "cancelled", "--yes").out == "0 tasks were deleted.\n"
    assert cli("cancel", "--all", "--yes").out == "1 task was cancelled or asked to stop.\n"


def test_a_search_that_has_not_looked_at_all_goes_on(cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch):
    """Also where the part that was counted held nothing."""
    monkeypatch.setattr(values, "SEARCHED_TASKS", 2)
    queue.submit("greet", name="ada", options=SubmitOptions(tags={"team": "red"}))
    for _ in range(4):
        queue.submit("greet", name="bob")
    listed = cli("list", "--tag", "team=red")
    assert "older ones" in listed.err
    assert cli("cancel", "--tag", "team=red", "--yes", "--json").data == {"found": 0, "done": 1}


def trail(queue: Queue) -> list[tuple[str, str, int | None]]:
    """Newest first, a mass action as one."""
    return [(entry.actor, entry.action, entry.done) for entry in queue.audit()]


def test_run_now_and_revive(cli: Cli, queue: Queue):
    later = queue.submit("greet", name="ada", options=SubmitOptions(delay_seconds=600, tags={"team": "red"}))
    others = [queue.submit("greet", name="bob", options=SubmitOptions(delay_seconds=600)) for _ in range(2)]
    cli("cancel", "--name", "greet", "--yes")
    assert cli("revive", str(later)).out == f"{later}  waits again\n"
    assert "only a cancelled task can be revived" in cli("revive", str(later)).err
    unasked = cli("revive", "--name", "greet")
    assert (unasked.code, "this would revive 2 tasks that were cancelled" in unasked.err) == (2, True)
    assert cli("revive", "--name", "greet", "--yes").out == "2 tasks were revived.\n"
    queue.drain()
    assert {queue.get(each).state for each in (later, *others)} == {"pending"}, "due when they were"  # type: ignore[union-attr]
    assert cli("run", str(later)).out == f"{later}  is due now\n"
    unasked = cli("run", "--name", "greet")
    assert (unasked.code, "this would run now 2 tasks that wait for their time" in unasked.err) == (2, True)
    assert cli("run", "--all", "--yes").out == "2 tasks were made due now.\n"
    queue.drain()
    assert {queue.get(each).state for each in (later, *others)} == {"completed"}  # type: ignore[union-attr]
    assert "can no longer be run now" in cli("run", str(later)).err
    me = actor()
    assert trail(queue) == [
        (me, "bulk-run-now", 2),
        (me, "run-now", None),
        (me, "bulk-revive", 2),
        (me, "revive", None),
        (me, "bulk-cancel", 3),
    ], "what was refused is not in it"


def test_copy_task(cli: Cli, queue: Queue):
    first = queue.finished("greet", name="ada")
    assert "only a finished task" in cli("copy-task", str(queue.submit("greet", name="eve"))).err
    same = queue.get(cli("copy-task", str(first)).out.strip())
    assert same is not None
    assert (same.copy_of, same.kwargs, same.state) == (first, {"name": "ada"}, "pending")
    other = cli("copy-task", str(first), "name=bob", "--json").data
    assert queue.get(other["id"]).kwargs == {"name": "bob"}  # type: ignore[union-attr]
    whole = cli("copy-task", str(first), "--payload", '{"name": "cy"}').out.strip()
    assert queue.get(whole).kwargs == {"name": "cy"}  # type: ignore[union-attr]
    assert re.search(f"^copy of +{first}$", cli("show", str(same.id)).out, re.MULTILINE)
    assert trail(queue) == [(actor(), "copy", None)] * 3


def test_drain(cli: Cli, queue: Queue):
    queue.beat("anna")
    assert cli("drain", "anna").out == "anna  finishes what it runs (0) and ends\n"
    assert cli("drain", "anna", "--json").data["drain"]["by"] == actor()
    missing = cli("drain", "nobody")
    assert (missing.code, "there is no worker 'nobody'" in missing.err) == (1, True)
    assert trail(queue) == [(actor(), "drain", None)]
