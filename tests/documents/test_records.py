"""The record as TaskLib's schema document prints it: "The Story of a Task" step by step, and the five "Real Example
Records". What is printed is compared with the row itself (raw SQL, PostgreSQL) and with `get_task` (all backends)."""

import json
from datetime import timedelta
from uuid import UUID

import pytest

import tasklib
from tasklib.api.decorator import task
from tasklib.core import decide
from tasklib.core.outcome import Completed
from tasklib.core.registry import Registry
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import ClaimRequest
from tasklib.testing.drain import drain_async
from tests.documents.printed import compare, records

registry = Registry()
with_body = Registry()


class SMTPException(Exception):
    pass


class ValidationError(Exception):
    pass


@task(registry=registry)
def send_email(to: str, subject: str) -> bool:
    if to == "david@example.com":
        raise SMTPException("Connection timeout")
    if "@" not in to:
        raise ValidationError("Invalid email address")
    return True


@task(name="send_email", registry=with_body)
def send_email_with_body(to: str, subject: str, body: str) -> bool:
    return True


async def claim(engine: Engine, worker_id: str) -> Claim:
    """What a worker does first; its lease is ten minutes, as it is by default."""
    store = await engine.store()
    request = ClaimRequest(
        worker_id=worker_id, names=["send_email"], slots=1, lease_seconds=Config().lock_timeout_seconds
    )
    (claimed,) = (await store.claim(request)).claims
    return claimed


async def complete(engine: Engine, claimed: Claim) -> None:
    """What a worker does last."""
    change = decide.settle(claimed, Completed('{"value":true}', run_ms=6000), RetryPolicy())
    assert await (await engine.store()).settle([change]) == [decide.WriteResult.APPLIED]


# -- Real Example Records ----------------------------------------------------------------------------------------------

PENDING = """
{
  "id": "550e8400-e29b-41d4-a716-446655440001",
  "name": "send_email",
  "state": "pending",
  "scheduled_at": "2025-10-25T18:00:00",
  "started_at": null,
  "completed_at": null,
  "created_at": "2025-10-25T17:00:00",
  "args": {},
  "kwargs": {
    "to": "alice@example.com",
    "subject": "Welcome!",
    "body": "Hello Alice..."
  },
  "result": null,
  "error": null,
  "retry_count": 0,
  "max_retries": 3,
  "next_retry_at": null,
  "worker_id": null,
  "locked_until": null,
  "timeout_seconds": 30,
  "priority": 0,
  "tags": {
    "batch": "welcome-emails",
    "cohort": "2025-10-25"
  }
}
"""


async def test_task_1_pending(engine: Engine):
    tags = {"batch": "welcome-emails", "cohort": "2025-10-25"}
    handle = await send_email_with_body.options(delay_seconds=3600, timeout_seconds=30, tags=tags).submit_async(
        to="alice@example.com", subject="Welcome!", body="Hello Alice..."
    )
    compare(PENDING, engine, handle.id)
    # "Worker will pick it up when scheduled_at <= NOW()": not before.
    await drain_async(engine, registry=with_body)
    compare(PENDING, engine, handle.id)
    engine.advance(3600)
    await drain_async(engine, registry=with_body)
    assert tasklib.is_completed(await handle.get_async())


RUNNING = """
{
  "id": "550e8400-e29b-41d4-a716-446655440002",
  "name": "send_email",
  "state": "running",
  "scheduled_at": "2025-10-25T18:00:00",
  "started_at": "2025-10-25T18:05:23",
  "completed_at": null,
  "created_at": "2025-10-25T17:00:00",
  "args": {},
  "kwargs": {
    "to": "bob@example.com",
    "subject": "Hello Bob"
  },
  "result": null,
  "error": null,
  "retry_count": 0,
  "max_retries": 3,
  "next_retry_at": null,
  "worker_id": "worker-prod-01-uuid",
  "locked_until": "2025-10-25T18:15:23",
  "timeout_seconds": 30,
  "priority": 0,
  "tags": {}
}
"""


async def test_task_2_running(engine: Engine):
    handle = await send_email.options(delay_seconds=3600, timeout_seconds=30).submit_async(
        "bob@example.com", "Hello Bob"
    )
    engine.advance(3600 + 323)
    await claim(engine, "worker-prod-01-uuid")
    compare(RUNNING, engine, handle.id)
    running = await handle.get_async()
    assert running.started_at is not None
    assert running.locked_until is not None
    # "Lock will expire in 10 minutes."
    assert abs(running.locked_until - running.started_at - timedelta(minutes=10)) < timedelta(milliseconds=100)


async def test_task_2_is_taken_over_when_its_worker_dies(engine: Engine):
    """ "If worker dies, another worker can take it over." """
    handle = await send_email.submit_async("bob@example.com", "Hello Bob")
    await claim(engine, "worker-prod-01-uuid")
    engine.advance(601)
    assert await engine.expire() == 1
    await drain_async(engine, registry=registry)
    found = await handle.get_async()
    assert (found.state, found.result, found.attempts) == ("completed", {"value": True}, 2)


COMPLETED = """
{
  "id": "550e8400-e29b-41d4-a716-446655440003",
  "name": "send_email",
  "state": "completed",
  "scheduled_at": "2025-10-25T18:00:00",
  "started_at": "2025-10-25T18:05:12",
  "completed_at": "2025-10-25T18:05:18",
  "created_at": "2025-10-25T17:00:00",
  "args": {},
  "kwargs": {
    "to": "charlie@example.com",
    "subject": "Success!"
  },
  "result": {
    "value": true
  },
  "error": null,
  "retry_count": 0,
  "max_retries": 3,
  "next_retry_at": null,
  "worker_id": null,
  "locked_until": null,
  "timeout_seconds": 30,
  "priority": 0,
  "tags": {}
}
"""


async def test_task_3_completed(engine: Engine):
    options = send_email.options(delay_seconds=3600, timeout_seconds=30)
    handle = await options.submit_async("charlie@example.com", "Success!")
    engine.advance(3600 + 312)
    claimed = await claim(engine, "worker-prod-01-uuid")
    engine.advance(6)
    await complete(engine, claimed)
    compare(COMPLETED, engine, handle.id)


async def test_task_3_by_a_worker(engine: Engine):
    handle = await send_email.options(timeout_seconds=30).submit_async("charlie@example.com", "Success!")
    await drain_async(engine, registry=registry)
    late = json.loads(COMPLETED) | {"scheduled_at": "2025-10-25T17:00:00"}
    late |= {"started_at": "2025-10-25T17:00:00", "completed_at": "2025-10-25T17:00:00"}
    compare(json.dumps(late), engine, handle.id)


FAILED_WAITING = r"""
{
  "id": "550e8400-e29b-41d4-a716-446655440004",
  "name": "send_email",
  "state": "failed",
  "scheduled_at": "2025-10-25T18:00:00",
  "started_at": "2025-10-25T18:10:00",
  "completed_at": null,
  "created_at": "2025-10-25T17:00:00",
  "args": {},
  "kwargs": {
    "to": "david@example.com",
    "subject": "Newsletter"
  },
  "result": null,
  "error": "SMTPException: Connection timeout\nTraceback:\n  File \"...\", line 42, in send_email\n    smtp.send_message(...)",
  "retry_count": 1,
  "max_retries": 3,
  "next_retry_at": "2025-10-25T18:10:05",
  "worker_id": null,
  "locked_until": null,
  "timeout_seconds": 30,
  "priority": 0,
  "tags": {}
}
"""  # noqa: E501 - as printed


async def test_task_4_failed_and_scheduled_for_retry(engine: Engine):
    options = send_email.options(delay_seconds=3600, timeout_seconds=30)
    handle = await options.submit_async("david@example.com", "Newsletter")
    engine.advance(3600 + 600)
    await drain_async(engine, registry=registry)
    compare(FAILED_WAITING, engine, handle.id)
    found = await handle.get_async()
    assert found.next_retry_at is not None
    # "Will be retried at 18:10:05 (5 seconds later)."
    assert abs(found.next_retry_at - found.updated_at - timedelta(seconds=5)) < timedelta(milliseconds=100)
    assert not tasklib.is_terminal(found)


FAILED_FOR_GOOD = r"""
{
  "id": "550e8400-e29b-41d4-a716-446655440005",
  "name": "send_email",
  "state": "failed",
  "scheduled_at": "2025-10-25T18:00:00",
  "started_at": "2025-10-25T18:20:30",
  "completed_at": "2025-10-25T18:20:35",
  "created_at": "2025-10-25T17:00:00",
  "args": {},
  "kwargs": {
    "to": "invalid-email-address",
    "subject": "Test"
  },
  "result": null,
  "error": "ValidationError: Invalid email address\nTraceback:\n  File \"...\", line 12, in send_email\n    validate_email(to)",
  "retry_count": 3,
  "max_retries": 3,
  "next_retry_at": null,
  "worker_id": null,
  "locked_until": null,
  "timeout_seconds": 30,
  "priority": 0,
  "tags": {}
}
"""  # noqa: E501 - as printed


async def test_task_5_permanently_failed(engine: Engine):
    options = send_email.options(delay_seconds=3600, timeout_seconds=30)
    handle = await options.submit_async("invalid-email-address", "Test")
    engine.advance(3600 + 1230 - 35)
    for delay in (5, 10, 20):
        await drain_async(engine, registry=registry)
        found = await handle.get_async()
        assert found.next_retry_at is not None
        wait = found.next_retry_at - found.updated_at
        assert abs(wait - timedelta(seconds=delay)) < timedelta(milliseconds=100)
        engine.advance(delay)
    await drain_async(engine, registry=registry)
    # Five seconds pass in the printed record between its start and its end; here the handler fails at once.
    at_once = json.loads(FAILED_FOR_GOOD) | {"completed_at": "2025-10-25T18:20:30"}
    compare(json.dumps(at_once), engine, handle.id)
    # "Won't retry. completed_at is set."
    engine.advance(86400)
    await drain_async(engine, registry=registry)
    found = await handle.get_async()
    assert tasklib.is_terminal(found)
    assert (found.attempts, len(found.history)) == (4, 4)


# -- The Story of a Task -----------------------------------------------------------------------------------------------


async def test_the_story_of_a_task(engine: Engine, capsys: pytest.CaptureFixture[str]):
    # 1. User submits task
    task_id = await tasklib.submit_task(send_email, to="user@example.com", subject="Hello")
    assert isinstance(task_id, UUID)
    submitted = """
    {
      "id": "550e8400...",
      "name": "send_email",
      "state": "pending",
      "kwargs": {"to": "user@example.com", "subject": "Hello"},
      "scheduled_at": "2025-10-25T18:00:00"
    }
    """
    compare(submitted, engine, task_id)
    for record in records(engine, task_id):
        assert record["scheduled_at"] == record["created_at"]
        empty = {"started_at", "completed_at", "result", "error", "next_retry_at", "worker_id", "locked_until"}
        assert all(record[column] is None for column in empty)

    # 2. Worker polls
    claimed = await claim(engine, "worker-01-uuid")
    polled = """
    {
      "state": "running",
      "worker_id": "worker-01-uuid",
      "locked_until": "2025-10-25T18:10:00",  -- 10 minute timeout
      "started_at": "2025-10-25T18:00:05"
    }
    """
    compare(polled, engine, task_id)

    # 3. Worker executes task
    assert send_email(**json.loads(claimed.kwargs)) is True

    # 4. Worker updates DB with result
    await complete(engine, claimed)
    completed = """
    {
      "state": "completed",
      "result": {"value": true},
      "completed_at": "2025-10-25T18:00:08",
      "worker_id": null,
      "locked_until": null
    }
    """
    compare(completed, engine, task_id)

    # 5. Application queries result
    task = tasklib.get_task(task_id)
    assert task is not None
    if tasklib.is_completed(task):
        assert task.result is not None
        print(f"Task result: {task.result['value']}")
    assert capsys.readouterr().out == "Task result: True\n"
