"""The retry timeline: one entry for each attempt that did not complete; and when an error is kept or cleared."""

from __future__ import annotations

from datetime import datetime, timedelta

from tasklib.core import decide
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    apply,
    cancelled,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    released,
    snoozed,
    stopped,
    submit,
)


class History:
    async def test_each_attempt_that_did_not_complete_leaves_an_entry(self, store: Store) -> None:
        task_id = await submit(store)
        first = await claim_one(store, worker=WORKER_A)
        before = await store.now()
        await apply(store, failed(first, "one"))
        after = await store.now()
        second = await claim_one(store, worker=WORKER_B, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, task_id)))
        await apply(store, completed(await claim_one(store)))
        one, two = (await fetch(store, task_id)).history
        assert (one["attempt"], one["worker"], one["error"], one.get("lost")) == (1, WORKER_A, "one", None)
        assert (two["attempt"], two["worker"], two["error"], two["lost"]) == (2, WORKER_B, "the lease ran out", True)
        assert _instant(one["started"]) == first.started_at
        assert _instant(two["started"]) == second.started_at
        assert before - _GRAIN <= _instant(one["ended"]) <= after + _GRAIN
        assert _instant(two["ended"]) > _instant(two["started"])

    async def test_times_in_the_history_are_written_like_all_others(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store)))
        [entry] = (await fetch(store, task_id)).history
        for text in (entry["started"], entry["ended"]):
            assert isinstance(text, str)
            assert text.endswith("Z")
            assert text[10] == "T"
            assert _instant(text).utcoffset() == timedelta(0)

    async def test_it_is_bounded_and_keeps_the_first_and_the_latest(self, store: Store) -> None:
        task_id = await submit(store, max_retries=-1)
        extra = 4
        last = decide.HISTORY_LIMIT + extra
        for attempt in range(1, last + 1):
            await apply(store, failed(await claim_one(store), f"error {attempt}"))
            if attempt in (decide.HISTORY_LIMIT - 1, decide.HISTORY_LIMIT):
                assert [entry["attempt"] for entry in (await fetch(store, task_id)).history] == [*range(1, attempt + 1)]
        task = await fetch(store, task_id)
        assert [entry["attempt"] for entry in task.history] == [1, *range(extra + 2, last + 1)]
        assert (task.history[0]["error"], task.history[-1]["error"]) == ("error 1", f"error {last}")
        assert all(entry["ended"] for entry in task.history)
        assert (task.retry_count, task.attempts) == (last, last)

    async def test_a_release_leaves_no_entry_and_a_snooze_one_that_stays(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, released(await claim_one(store)))
        assert (await fetch(store, task_id)).history == []
        running = await claim_one(store)
        await apply(store, snoozed(running, 90))
        snoozed_at = (await fetch(store, task_id)).updated_at
        store.clock_offset += 91
        await apply(store, failed(await claim_one(store), "boom"))
        await apply(store, completed(await claim_one(store)))
        first, second = (await fetch(store, task_id)).history
        assert (first["attempt"], first["worker"], first["snoozed"]) == (1, running.worker_id, 90)
        assert "error" not in first
        assert abs(_instant(first["ended"]) - snoozed_at) <= _GRAIN
        assert (second["attempt"], second["error"]) == (1, "boom"), "the snooze gave its attempt back"

    async def test_a_stopped_attempt_leaves_an_entry(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, stopped(await claim_one(store), "as asked"))
        [entry] = (await fetch(store, task_id)).history
        assert (entry["attempt"], entry["error"]) == (1, "as asked")

    async def test_an_error_stays_until_the_task_completes(self, store: Store) -> None:
        task_id = await submit(store)

        async def error() -> str | None:
            return (await fetch(store, task_id)).error

        await apply(store, failed(await claim_one(store), "one"))
        assert await error() == "one"
        running = await claim_one(store)
        assert await error() == "one", "a claim keeps it"
        await apply(store, released(running))
        assert await error() == "one", "a release keeps it"
        await apply(store, failed(await claim_one(store), "two"))
        assert await error() == "two", "the latest counts"
        await apply(store, completed(await claim_one(store)))
        assert await error() is None
        assert [entry["error"] for entry in (await fetch(store, task_id)).history] == ["one", "two"]

    async def test_an_error_without_words_is_an_error(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), "one"))
        await apply(store, failed(await claim_one(store), ""))
        assert (await fetch(store, task_id)).error == "", "not the one before"

    async def test_a_cancel_keeps_the_error(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), "one", delay=60))
        await apply(store, cancelled(await fetch(store, task_id)))
        task = await fetch(store, task_id)
        assert (task.state, task.error, len(task.history)) == (TaskState.CANCELLED, "one", 1)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


_GRAIN = timedelta(milliseconds=1)
"""Clocks of stores are at least this fine."""
