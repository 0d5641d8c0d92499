"""What users' own tests get: a queue in memory, a drain, a clock."""

import pytest

from tasklib import TaskState, get_task, task
from tasklib.core.registry import Registry
from tasklib.testing import QueueForTests, fresh_queue

pytest_plugins = ["pytester"]

registry = Registry()


@task(registry=registry)
def double(number: int) -> int:
    return number * 2


@task(registry=registry)
def chain(depth: int) -> None:
    if depth:
        chain.submit(depth - 1)


@task(registry=registry, max_retries=1)
def fails() -> None:
    raise RuntimeError("no")


def test_drain_runs_all_that_is_due(tasklib_queue: QueueForTests):
    handle = double.submit(21)
    tasklib_queue.drain(registry=registry)
    assert handle.result(timeout=1) == 42


def test_drain_runs_what_tasks_submit_in_turn(tasklib_queue: QueueForTests):
    chain.submit(5)
    tasklib_queue.drain(registry=registry)
    assert [found.state for found in tasklib_queue.tasks("chain")] == [TaskState.COMPLETED] * 6


def test_the_clock_moves_retries_and_delays(tasklib_queue: QueueForTests):
    delayed = double.options(delay_seconds=3600).submit(1)
    failing = fails.submit()
    tasklib_queue.drain(registry=registry)
    assert (delayed.get().state, failing.get().attempts) == (TaskState.PENDING, 1)
    tasklib_queue.advance(3600)
    tasklib_queue.drain(registry=registry)
    assert delayed.result(1) == 2
    assert (failing.get().state, failing.get().attempts) == (TaskState.FAILED, 2)


async def test_it_works_inside_a_running_loop(tasklib_queue: QueueForTests):
    handle = await double.submit_async(4)
    await tasklib_queue.drain_async(registry=registry)
    assert await handle.result_async(1) == 8
    other = double.submit(5)
    tasklib_queue.drain(registry=registry)
    assert other.result(1) == 10


def test_each_queue_is_fresh_and_the_default_comes_back(tasklib_queue: QueueForTests):
    outer = double.submit(1)
    with fresh_queue() as inner:
        assert get_task(outer.id) is None
        double.submit(2)
        assert len(inner.tasks()) == 1
    assert get_task(outer.id) is not None
    assert len(tasklib_queue.tasks()) == 1


def test_the_fixture_is_there_for_every_project(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        from tasklib import task

        @task
        def greet(name: str) -> str:
            return f"hello {name}"

        def test_greeting(tasklib_queue):
            handle = greet.submit("you")
            tasklib_queue.drain()
            assert handle.result(1) == "hello you"
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
