"""`tasklib.contrib.sentry`, with a transport that keeps what it is given."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from tasklib import Fail, Snooze, task
from tasklib.contrib.sentry import SentryMiddleware
from tasklib.core.registry import Registry
from tasklib.testing.queue import fresh_queue

Event = dict[str, Any]


class Keeping(Transport):
    def __init__(self, kept: list[Event]) -> None:
        super().__init__()
        self.kept = kept

    def capture_envelope(self, envelope: Envelope) -> None:
        event = envelope.get_event()
        if event is not None:
            self.kept.append(dict(event))


@pytest.fixture
def sent() -> Iterator[list[Event]]:
    kept: list[Event] = []
    sentry_sdk.init(
        dsn="http://key@127.0.0.1/1",
        transport=Keeping(kept),
        default_integrations=False,
        integrations=[LoggingIntegration()],
    )
    yield kept
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


def raised(event: Event) -> tuple[str, str]:
    last = event["exception"]["values"][-1]
    return last["type"], last["value"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_failure_for_good_is_captured_once_with_its_task(sent: list[Event], kind: str):
    registry = Registry()

    @task(registry=registry, name="fragile", max_retries=1)
    def threaded() -> None:
        logging.getLogger("shop").warning("about to fail")
        raise LookupError("no such thing")

    native = Registry()

    @task(registry=native, name="fragile", max_retries=1)
    async def on_loop() -> None:
        logging.getLogger("shop").warning("about to fail")
        raise LookupError("no such thing")

    with fresh_queue(middleware=[SentryMiddleware()]) as queue:
        handle = (threaded if kind == "def" else on_loop).submit()
        for _ in range(2):
            queue.drain(registry=registry if kind == "def" else native)
            queue.advance(3600)
    (event,) = sent
    assert raised(event) == ("LookupError", "no such thing")
    assert event["tags"] == {"task_id": str(handle.id), "task_name": "fragile", "task_attempt": "2"}
    assert event["transaction"] == "fragile"
    assert [each["message"] for each in event["breadcrumbs"]["values"]] == ["about to fail"]
    functions = [frame["function"] for frame in event["exception"]["values"][-1]["stacktrace"]["frames"]]
    assert functions[-1] == ("threaded" if kind == "def" else "on_loop")


def test_every_attempt_by_option(sent: list[Event]):
    registry = Registry()

    @task(registry=registry, max_retries=1)
    def fragile() -> None:
        raise LookupError

    with fresh_queue(middleware=[SentryMiddleware(every_attempt=True)]) as queue:
        fragile.submit()
        for _ in range(2):
            queue.drain(registry=registry)
            queue.advance(3600)
    assert [event["tags"]["task_attempt"] for event in sent] == ["1", "2"]


def test_tasks_do_not_share_a_scope(sent: list[Event]):
    registry = Registry()

    @task(registry=registry, max_retries=0)
    async def tagged(number: int) -> None:
        sentry_sdk.set_tag(f"own-{number}", "yes")
        await asyncio.gather(asyncio.to_thread(str))
        raise LookupError(str(number))

    with fresh_queue(middleware=[SentryMiddleware()]) as queue:
        tagged.submit_many({"number": number} for number in range(3))
        queue.drain(registry=registry)
    assert len(sent) == 3
    for event in sent:
        own = [tag for tag in event["tags"] if tag.startswith("own-")]
        assert own == [f"own-{raised(event)[1]}"]


def test_what_decides_is_no_failure_and_fail_is_one(sent: list[Event]):
    registry = Registry()

    @task(registry=registry, max_retries=0)
    def sleepy() -> None:
        raise Snooze(delay=60)

    @task(registry=registry, max_retries=5)
    def hopeless() -> None:
        raise Fail("never")

    with fresh_queue(middleware=[SentryMiddleware()]) as queue:
        sleepy.submit()
        hopeless.submit()
        queue.drain(registry=registry)
    assert [raised(event) for event in sent] == [("Fail", "never")]


def test_what_no_handler_raised_is_captured_too(sent: list[Event]):
    registry = Registry()

    @task(registry=registry, max_retries=0, timeout_seconds=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    @task(registry=registry, max_retries=0)
    def misfit() -> int:
        return "seven"  # type: ignore[return-value]

    with fresh_queue(middleware=[SentryMiddleware()]) as queue:
        late, wrong = endless.submit(), misfit.submit()
        queue.drain(registry=registry)
    found = {event["tags"]["task_id"]: event for event in sent}
    assert len(found) == len(sent) == 2
    assert found[str(late.id)]["message"] == "TaskTimedOut: ran longer than its timeout of 1 s"
    assert raised(found[str(wrong.id)])[0] == "InvalidValue"
