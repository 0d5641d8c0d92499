"""A bulk action never reaches a task that its filter leaves out."""

import pytest

from tasklib import Config, Fail, Retry, TaskState, task
from tasklib.core.registry import Registry
from tasklib.engine import bulk
from tasklib.engine.bulk import Action
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter
from tasklib.testing import drain_async


@pytest.mark.parametrize(("action", "terminal"), [(Action.DELETE, False), (Action.CANCEL, True)])
async def test_a_filter_that_contradicts_the_action_matches_nothing(backend_url: str, action: Action, terminal: bool):
    engine, registry = Engine(Config(database_url=backend_url)), Registry()

    @task(registry=registry)
    def fails(final: bool) -> None:
        raise Fail("for good") if final else Retry(delay=60)

    before_engine = use_engine(engine)
    for final in (True, False):
        await fails.submit_async(final)
    use_engine(before_engine)
    await drain_async(engine, registry=registry)
    where = Filter(states=[TaskState.FAILED], terminal=terminal)
    assert (await engine.count(where, 10)).value == 1
    before = (await engine.page(Filter(), limit=10)).tasks
    assert await bulk.count(engine, action, where) == (0, False)
    assert [done async for done in bulk.perform(engine, action, where)] == []
    assert (await engine.page(Filter(), limit=10)).tasks == before
    await engine.close()
