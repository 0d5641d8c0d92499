"""From one queue to another: every task with its id, state and key, and what operators have set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from tasklib.core.decide import WriteResult
from tasklib.core.errors import QueueInUse
from tasklib.core.schedules import ScheduleWrite
from tasklib.core.task import Task
from tasklib.engine.diagnose import WorkerState, worker_state
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import AccessStore, ControlStore, ScheduleStore
from tasklib.stores.values import ControlChange, Filter, Traits

BATCH = 500


@dataclass
class Copied:
    total: int = 0
    """How many there were to copy when it began."""
    copied: int = 0
    already: int = 0
    """Were there from an earlier run."""
    refused: list[UUID] = field(default_factory=list)
    """Another task has their id or their key over there; nothing was written for them."""

    @property
    def seen(self) -> int:
        return self.copied + self.already + len(self.refused)


async def copy(source: Engine, target: Engine, progress: Callable[[Copied], None] = lambda _: None) -> Copied:
    """Oldest first, in batches that are whole or not at all: one that broke off is simply begun again."""
    await _check_at_rest(source, "the queue to copy from")
    await _check_at_rest(target, "the queue to copy to")
    reading, writing = await source.store(), await target.store()
    await _copy_controls(reading, writing)
    await _copy_schedules(reading, writing)
    await _copy_tokens(reading, writing)
    done = Copied(total=await _size(source))
    cursor: UUID | None = None
    while True:
        page = await reading.page(Filter(), limit=BATCH, cursor=cursor, oldest_first=True)
        _check_links(page.tasks, reading.traits, writing.traits)
        write_results = await writing.restore(page.tasks, await reading.kept_links(page.tasks))
        done.copied += write_results.count(WriteResult.APPLIED)
        done.already += write_results.count(WriteResult.DUPLICATE)
        done.refused += [
            task.id
            for task, write_result in zip(page.tasks, write_results, strict=True)
            if write_result is WriteResult.STALE
        ]
        progress(done)
        cursor = page.next_cursor
        if cursor is None:
            return done


def _check_links(tasks: Sequence[Task], *both: Traits) -> None:
    unable = next((each for each in both if not each.keeps_links), None)
    waiting = next((task for task in tasks if task.waits > 0), None)
    if unable is not None and waiting is not None:
        instead = f"let its flows end, or cancel what waits; task {waiting.id} ({waiting.name}) does"
        raise unable.unsupported("be copied, or copied to, with tasks that wait for tasks", instead)


async def _check_at_rest(engine: Engine, which: str) -> None:
    dead_after, active = engine.config.dead_after_seconds, (WorkerState.LIVE, WorkerState.STOPPING)
    live = [worker for worker in await engine.workers() if worker_state(worker, dead_after) in active]
    if live:
        raise QueueInUse(f"{which} has a live worker, {live[0].id}: stop all workers first")
    running = sum(each.running for each in (await engine.stats()).values())
    if running:
        raise QueueInUse(f"{which} has {running} running tasks: let them finish or their leases run out first")


async def _size(engine: Engine) -> int:
    return sum(
        each.pending + each.running + each.waiting + each.completed + each.failed + each.cancelled
        for each in (await engine.stats()).values()
    )


async def _copy_controls(source: ControlStore, target: ControlStore) -> None:
    for name, each in (await source.controls()).items():
        change = ControlChange(
            name=name,
            paused=each.paused,
            operator_rate=each.operator_rate,
            default_rate=each.default_rate,
            concurrency=each.concurrency,
            by=each.paused_by,
            at=each.paused_at,
        )
        await target.control(change)


async def _copy_schedules(source: ScheduleStore, target: ScheduleStore) -> None:
    """With their latest runs and their next times. One that is there already stays as it is."""
    await target.write_schedules([ScheduleWrite(replace(each, version=0)) for each in await source.schedules()])


async def _copy_tokens(source: AccessStore, target: AccessStore) -> None:
    known = {token.id for token in await target.tokens()}
    for token in await source.tokens():
        if token.revoked_at is None and token.id not in known:
            await target.add_token(token)
