"""Which task types a worker serves: chosen by name, by wildcard and by queue."""

from typing import Any

import pytest

from tasklib import TaskWorker, task
from tasklib.core.errors import InvalidConfig, InvalidOption
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tests.waiting import eventually_async
from tests.worker.conftest import Serve


def define(registry: Registry, name: str, queue: str = "default") -> None:
    def function() -> None: ...

    task(name=name, registry=registry, queue=queue)(function)


@pytest.fixture
def shop() -> Registry:
    registry = Registry()
    for name, queue in (("upload.image", "files"), ("upload.video", "gpu"), ("welcome", "mail")):
        define(registry, name, queue)
    define(registry, "tidy")
    return registry


def worker(registry: Registry, **options: Any) -> TaskWorker:
    return TaskWorker(registry=registry, **options)


@pytest.mark.parametrize(
    ("told", "served"),
    [
        ({}, {"upload.image", "upload.video", "welcome", "tidy"}),
        ({"names": ["upload.*"]}, {"upload.image", "upload.video"}),
        ({"names": ["upload.*", "tidy"], "exclude": ["*.video"]}, {"upload.image", "tidy"}),
        ({"queues": ["mail", "default"]}, {"welcome", "tidy"}),
        ({"exclude_queues": ["gpu", "mail"]}, {"upload.image", "tidy"}),
        ({"names": ["upload.*"], "exclude_queues": ["gpu"]}, {"upload.image"}),
        ({"names": ["[uw]*"], "queues": ["mail"]}, {"welcome"}),
    ],
)
def test_what_it_was_told_it_serves(shop: Registry, told: dict[str, Any], served: set[str]):
    assert set(worker(shop, **told).names) == served


def test_types_that_come_later_are_served_if_they_were_told_of(shop: Registry):
    mail, others = worker(shop, queues=["mail"]), worker(shop, exclude=["upload.*"])
    assert (mail.names, others.names) == (("welcome",), ("welcome", "tidy"))
    define(shop, "farewell", "mail")
    define(shop, "upload.text", "files")
    assert (mail.names, others.names) == (("welcome", "farewell"), ("welcome", "tidy", "farewell"))


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"names": ["upload.*", "wellcome"]}, "names: no task type is called wellcome; known: upload.image, "),
        ({"exclude": ["download.*"]}, "exclude: no task type is called download.*; known: upload.image, "),
        ({"queues": ["mails"]}, "queues: no task type is in the queue mails; known: files, gpu, mail, default"),
        ({"exclude_queues": ["cpu"]}, "exclude_queues: no task type is in the queue cpu; known: files, gpu, mail"),
        ({"names": ["tidy"], "queues": ["mail"]}, "leaves no task type to serve"),
    ],
)
async def test_what_there_is_not_is_refused_at_the_start(
    shop: Registry, engine: Engine, told: dict[str, Any], error: str
):
    with pytest.raises(InvalidConfig) as refused:
        await worker(shop, engine=engine, handle_signals=False, **told).run()
    assert error in str(refused.value)


def test_a_queue_has_a_name():
    for wrong in ("", "x" * 256, 5):
        with pytest.raises(InvalidOption, match="queue must be text of 1 to 255 characters"):
            task(queue=wrong)(lambda: None)  # type: ignore[arg-type]


async def test_the_fleet_learns_what_it_serves_and_leaves_the_rest(serve: Serve, engine: Engine, registry: Registry):
    @task(registry=registry, queue="mail")
    async def welcome() -> str:
        return "sent"

    @task(registry=registry)
    async def tidy() -> None: ...

    async with serve(queues=["mail"]):
        left, sent = await tidy.submit_async(), await welcome.submit_async()
        assert await sent.result_async(20) == "sent"
        [info] = await eventually_async(engine.workers)
        assert (info.names, info.queues) == (("welcome",), {"welcome": "mail"})
    found = await left.get_async()
    assert found is not None
    assert found.state == "pending"
