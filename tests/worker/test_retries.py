"""Failures, retries and what a handler decides, with a clock that the test moves."""

from datetime import timedelta

import pytest

from tasklib import Config, Fail, Retry, RetryPolicy, Snooze, TaskFailed, TaskState, is_terminal, task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing import drain_async
from tests.queues import as_default


async def test_retries_come_after_exactly_5_10_and_20_seconds_and_the_fourth_failure_is_final(
    engine: Engine, registry: Registry
):
    starts = []

    @task(registry=registry)
    def always_fails() -> None:
        starts.append(1)
        raise RuntimeError("no luck")

    handle = await always_fails.submit_async()
    for retry, delay in ((1, 5), (2, 10), (3, 20)):
        await drain_async(engine, registry=registry)
        waiting = await engine.get_or_raise(handle.id)
        assert waiting.state == TaskState.FAILED
        assert waiting.retry_count == retry
        assert not is_terminal(waiting)
        assert waiting.next_retry_at is not None
        assert waiting.next_retry_at - waiting.updated_at == timedelta(seconds=delay)
        engine.advance(delay - 2)
        await drain_async(engine, registry=registry)
        assert len(starts) == retry, "nothing starts early"
        engine.advance(2)
    await drain_async(engine, registry=registry)
    done = await engine.get_or_raise(handle.id)
    assert (len(starts), done.state, done.retry_count, done.attempts) == (4, TaskState.FAILED, 3, 4)
    assert is_terminal(done)
    assert done.next_retry_at is None
    assert done.error is not None
    assert "RuntimeError: no luck" in done.error
    assert "always_fails" in done.error, "the full traceback"
    assert [entry["attempt"] for entry in done.history] == [1, 2, 3, 4]
    engine.advance(10_000)
    await drain_async(engine, registry=registry)
    assert len(starts) == 4


async def test_a_retry_that_succeeds_clears_the_error_and_keeps_the_history(engine: Engine, registry: Registry):
    attempts = []

    @task(registry=registry)
    def flaky() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError("not yet")
        return len(attempts)

    handle = await flaky.submit_async()
    for _ in range(3):
        await drain_async(engine, registry=registry)
        engine.advance(100)
    done = await engine.get_or_raise(handle.id)
    assert (done.state, done.result, done.error, done.attempts) == (TaskState.COMPLETED, {"value": 3}, None, 3)
    assert [entry["error"].rsplit("\n", 1)[-1] for entry in done.history] == ["ValueError: not yet"] * 2


async def test_the_type_has_its_own_policy(engine: Engine, registry: Registry):
    @task(registry=registry, max_retries=-1, retry=RetryPolicy(base=1, multiplier=3, cap=5))
    def stubborn() -> None:
        raise RuntimeError

    handle = await stubborn.submit_async()
    for delay in (1, 3, 5, 5):
        await drain_async(engine, registry=registry)
        waiting = await engine.get_or_raise(handle.id)
        assert waiting.next_retry_at is not None
        assert waiting.next_retry_at - waiting.updated_at == timedelta(seconds=delay)
        engine.advance(delay)


async def test_a_handler_sets_the_next_delay_gives_up_or_snoozes(engine: Engine, registry: Registry):
    @task(registry=registry)
    def decides(what: str) -> str:
        match what:
            case "retry":
                raise Retry(delay=123)
            case "fail":
                raise Fail("hopeless")
            case _:
                raise Snooze(delay=60)

    retried, failed, snoozed = [await decides.submit_async(what) for what in ("retry", "fail", "snooze")]
    await drain_async(engine, registry=registry)
    waiting = await engine.get_or_raise(retried.id)
    assert waiting.next_retry_at is not None
    assert waiting.next_retry_at - waiting.updated_at == timedelta(seconds=123)
    given_up = await engine.get_or_raise(failed.id)
    assert (given_up.state, is_terminal(given_up), given_up.retry_count) == (TaskState.FAILED, True, 0)
    assert "hopeless" in (given_up.error or "")
    later = await engine.get_or_raise(snoozed.id)
    assert (later.state, later.attempts) == (TaskState.PENDING, 0)
    assert [entry["snoozed"] for entry in later.history] == [60]
    assert later.scheduled_at - later.updated_at == timedelta(seconds=60)


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this")


@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(), BaseException("base"), Awkward()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_whatever_a_handler_raises_fails_that_task_and_nothing_else(
    engine: Engine, registry: Registry, raised: BaseException, kind: str
):
    """Bad input, results and errors: whatever is raised fails that task, with its reason, and nothing else."""
    if kind == "def":

        @task(registry=registry, max_retries=0)
        def explode() -> None:
            raise raised

        handle = await explode.submit_async()
    else:

        @task(registry=registry, max_retries=0, name="explode")
        async def explode_async() -> None:
            raise raised

        handle = await explode_async.submit_async()

    @task(registry=registry)
    def neighbour() -> str:
        return "fine"

    other = await neighbour.submit_async()
    await drain_async(engine, registry=registry)
    failed = await engine.get_or_raise(handle.id)
    assert (failed.state, is_terminal(failed)) == (TaskState.FAILED, True)
    assert (type(raised).__name__) in (failed.error or "") or "StopIteration" in (failed.error or "")
    assert (await engine.get_or_raise(other.id)).result == {"value": "fine"}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (object(), "object"),
        (float("nan"), "NaN"),
        ("x" * 2_000_000, "limit"),
        ("nul\0", "NUL"),
        ({1: 2}, "keys must be text"),
    ],
    ids=["object", "nan", "too large", "nul", "number as key"],
)
async def test_a_result_that_cannot_be_stored_is_a_failure_with_the_reason(
    engine: Engine, registry: Registry, result: object, reason: str
):
    """Bad input, results and errors: what cannot be stored is a failure that says why."""

    @task(registry=registry, max_retries=0)
    def returns():
        return result

    handle = await returns.submit_async()
    await drain_async(engine, registry=registry)
    done = await engine.get_or_raise(handle.id)
    assert (done.state, is_terminal(done)) == (TaskState.FAILED, True)
    assert reason in (done.error or "")


async def test_a_result_that_does_not_fit_its_annotation_is_a_failure(engine: Engine, registry: Registry):
    @task(registry=registry, max_retries=0)
    def number() -> int:
        return "abc"  # type: ignore[return-value]

    handle = await number.submit_async()
    await drain_async(engine, registry=registry)
    done = await engine.get_or_raise(handle.id)
    assert done.state == TaskState.FAILED
    assert "result: does not fit what number says it returns" in (done.error or "")
    with pytest.raises(TaskFailed, match="valid integer"):
        await handle.result_async(5)


async def test_a_huge_error_is_cut_and_keeps_its_end(backend_url: str, registry: Registry):
    @task(registry=registry, max_retries=0)
    def verbose() -> None:
        raise RuntimeError("x" * 10_000_000 + " the end\0\ud800")

    # Its text is searched for secrets, which holds the interpreter: with the heartbeats of other tests the worker would
    # be taken for dead.
    async with as_default(Engine(Config(database_url=backend_url))) as engine:
        handle = await verbose.submit_async()
        await drain_async(engine, registry=registry)
        error = (await engine.get_or_raise(handle.id)).error or ""
    assert len(error.encode()) <= 16 * 1024
    assert "the end" in error


async def test_arguments_that_the_model_refuses_at_run_time_fail_at_once(engine: Engine, registry: Registry):
    """Fault 21, refused arguments: the task fails at once, without retries."""

    @task(registry=registry, name="strict")
    def before(count: str) -> None: ...

    handle = await before.submit_async("many")
    changed = Registry()

    @task(registry=changed, name="strict")
    def after(count: int) -> None: ...

    await drain_async(engine, registry=changed)
    failed = await engine.get_or_raise(handle.id)
    assert (failed.state, is_terminal(failed), failed.attempts) == (TaskState.FAILED, True, 1)
    assert "count" in (failed.error or "")
