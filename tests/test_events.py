"""What the log tells of tasks: who, what and how it ended, never what they carry."""

import json
import logging
import sys
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tasklib import task
from tasklib.cli.logs import JsonFormatter, TextFormatter
from tasklib.core.registry import Registry
from tasklib.core.task import Claim
from tasklib.engine import events
from tasklib.testing import QueueForTests

SECRET = "hunter2-do-not-log"


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
    claims = [
        Claim(uuid4(), "mail", 1, "w", "{}", 0, 3, None, None, datetime.now(UTC), "{}", None, False) for _ in range(500)
    ]
    events.leases_lost(claims, "not extended in time")
    events.refused(claims, ["lost"] * 500)
    events.leases_lost([], "never said")
    assert [(r.levelname, getattr(r, "more", None)) for r in caplog.records] == [("WARNING", 499)] * 2
    assert "499 more" in caplog.text
