"""What the log tells of tasks: who, what and how it ended, never what they carry."""

import json
import logging
import sys
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tasklib import Snooze, task
from tasklib.cli.logs import JsonFormatter, TextFormatter
from tasklib.core.outcome import Cancelled, Completed, Failed, Released, Snoozed
from tasklib.core.registry import Registry
from tasklib.core.task import Claim
from tasklib.engine import task_log
from tasklib.testing import QueueForTests
from tests.secrets import SECRET_TEXTS, SECRET_URLS

SECRET = "hunter2-do-not-log"
CLAIM = Claim(uuid4(), "mail", 1, "w", "{}", 0, 3, None, None, datetime.now(UTC), "{}", None, False)


def test_every_step_is_told_with_its_fields_and_without_payloads(
    tasklib_queue: QueueForTests, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, logger="tasklib")
    registry = Registry()

    @task(registry=registry, max_retries=1)
    def fragile(password: str) -> str:
        if len(password) > 3:
            raise RuntimeError("the gateway said no")
        return SECRET

    good, bad = fragile.submit("abc"), fragile.submit(SECRET)
    again = fragile.options(idempotency_key="k").submit("abc")
    assert fragile.options(idempotency_key="k").submit("abc").id == again.id
    tasklib_queue.drain(registry=registry)
    told = [(getattr(r, "event", None), getattr(r, "task_id", None)) for r in caplog.records]
    for task_id, steps in (
        (str(good.id), ["enqueued", "started", "completed"]),
        (str(bad.id), ["enqueued", "started", "failed"]),
    ):
        assert [event for event, found in told if found == task_id] == steps
    assert ("known", str(again.id)) in told
    assert ("registered", None) in told
    assert SECRET not in caplog.text
    failure = next(record for record in caplog.records if getattr(record, "event", None) == "failed")
    assert failure.levelno == logging.WARNING
    entry = json.loads(JsonFormatter().format(failure))
    assert (entry["event"], entry["task_name"], entry["attempt"], entry["will_retry"]) == ("failed", "fragile", 1, True)


def test_passwords_in_urls_are_masked_in_json_logs():
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "at %s", ("postgresql://me:pw@db/x",), None)
    assert "pw" not in json.loads(JsonFormatter().format(record))["message"]


@pytest.mark.parametrize("secret", SECRET_URLS + SECRET_TEXTS)
def test_nothing_of_the_corpus_is_logged(secret: str):
    try:
        raise ConnectionError(f"cannot reach {secret}") from ValueError(secret)
    except ConnectionError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "at %s", (secret,), sys.exc_info())
    record.task_name = secret
    for formatter in (TextFormatter(), JsonFormatter()):
        assert "geheim" not in formatter.format(record)


def test_logs_hold_no_passwords_and_no_forged_lines():
    hostile = "postgresql://me:pw@db/x\n2026-01-01 00:00:00Z ERROR   tasklib: forged\x1b[2J\u202e"
    try:
        raise ValueError(hostile)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "at %s", (hostile,), sys.exc_info())
    for formatter in (TextFormatter(), JsonFormatter()):
        text = formatter.format(record)
        assert ":pw@" not in text
        assert not set(text) & set("\x1b\u202e")
        first, *rest = text.splitlines()
        assert all(line.startswith("    ") for line in rest), "what follows belongs to the record"
        assert "forged" in first


def test_many_leases_lost_at_once_are_one_line(caplog: pytest.LogCaptureFixture):
    claims = [CLAIM] * 500
    task_log.leases_lost(claims, "not extended in time")
    task_log.refused(claims, ["lost"] * 500)
    task_log.leases_lost([], "never said")
    assert [(r.levelname, getattr(r, "more", None)) for r in caplog.records] == [("WARNING", 499)] * 2
    assert "499 more" in caplog.text


def ending(caplog: pytest.LogCaptureFixture, event: str) -> logging.LogRecord:
    return next(record for record in caplog.records if getattr(record, "event", None) == event)


def test_how_each_task_ended_is_told_at_info_with_its_duration(
    tasklib_queue: QueueForTests, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, logger="tasklib")
    registry = Registry()

    @task(registry=registry)
    def quick() -> None: ...

    @task(registry=registry)
    def sleepy() -> None:
        raise Snooze(delay=60)

    done, put_off = quick.submit(), sleepy.submit()
    tasklib_queue.drain(registry=registry)
    told = {getattr(record, "task_id", None): record for record in caplog.records}
    assert f"task {done.id} (quick), attempt 1 completed in " in told[str(done.id)].getMessage()
    assert told[str(done.id)].getMessage().endswith(" ms")
    assert told[str(put_off.id)].getMessage() == f"task {put_off.id} (sleepy), attempt 1 was snoozed"
    assert {told[str(done.id)].levelname, told[str(put_off.id)].levelname} == {"INFO"}
    assert not [record for record in caplog.records if getattr(record, "event", None) == "started"]


@pytest.mark.parametrize(
    ("retries", "level", "words"), [(1, "WARNING", "will retry in 5.0 s"), (0, "ERROR", "failed for good")]
)
def test_a_failure_carries_the_exception_itself(
    tasklib_queue: QueueForTests, caplog: pytest.LogCaptureFixture, retries: int, level: str, words: str
):
    registry = Registry()
    raised = RuntimeError("the gateway said no")

    @task(registry=registry, max_retries=retries)
    def fragile() -> None:
        raise raised

    fragile.submit()
    tasklib_queue.drain(registry=registry)
    record = ending(caplog, "failed")
    assert record.levelname == level
    assert words in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is raised
    text = TextFormatter().format(record)
    assert "Traceback (most recent call last)" in text
    assert "in fragile" in text
    assert "runner.py" not in text, "from the handler on"
    assert "in fragile" in json.loads(JsonFormatter().format(record))["exception"]


def test_a_failure_in_another_process_carries_its_text(caplog: pytest.LogCaptureFixture):
    text = "Traceback (most recent call last):\n  in shop.py\nValueError: no"
    task_log.ended(CLAIM, Failed(text, final=True))
    record = ending(caplog, "failed")
    assert record.getMessage().endswith("failed for good: ValueError: no")
    assert "in shop.py" in TextFormatter().format(record)
    assert json.loads(JsonFormatter().format(record))["exception"] == text


def test_what_was_never_begun_is_given_back_quietly(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="tasklib")
    task_log.ended(CLAIM, Released(), begun=False)
    assert caplog.records == []
    task_log.ended(CLAIM, Released())
    task_log.ended(CLAIM, Cancelled("TaskCancelled: stopped on request"))
    assert [record.getMessage().rsplit(" ", 1)[-1] for record in caplog.records] == ["released", "cancelled"]


def test_nothing_is_formatted_where_nobody_listens(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """The level of a library is WARNING unless its user says otherwise."""
    caplog.set_level(logging.WARNING, logger="tasklib")
    monkeypatch.setattr(task_log, "_fields", lambda *_, **__: pytest.fail("a line was made that nobody reads"))
    for outcome in (Completed("{}"), Released(), Snoozed(1.0), Cancelled("stopped")):
        task_log.ended(CLAIM, outcome)
