"""Reading: tasks by id, by key, by filter; figures. Nothing here writes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from tasklib.core.flows import NEVER
from tasklib.core.limits import ALL
from tasklib.core.task import Task, run_time
from tasklib.stores import values
from tasklib.stores.nats import filters, keys
from tasklib.stores.nats.all_tasks import Range
from tasklib.stores.nats.cache import Depth, TaskCache
from tasklib.stores.nats.claim import read_records
from tasklib.stores.nats.clock import micros, moment
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.flow_reads import tasks_of_flow
from tasklib.stores.nats.idempotency import half_written
from tasklib.stores.nats.index import EMPTY
from tasklib.stores.nats.kv import KeyValueStore
from tasklib.stores.nats.record import decode, to_task
from tasklib.stores.samples import Waiting
from tasklib.stores.values import Count, EndedCursor, EndedPage, Failure, Filter, NameStats, Page

_AT_ONCE = 500
_NEVER = micros(NEVER)
"""When something is due that waits for other tasks."""
_FINISHED = ("completed", "failed", "cancelled")


def _searched(where: Filter, ids: Iterator[bytes]) -> tuple[Iterator[bytes], UUID | None]:
    """The tasks that a search looks at, and the last of them if there are others behind it."""
    if not where.searches:
        return ids, None
    looked = list(islice(ids, values.SEARCHED_TASKS + 1))
    if len(looked) <= values.SEARCHED_TASKS:
        return iter(looked), None
    return iter(looked[:-1]), UUID(bytes=looked[-2])


def _range(start: datetime | None, end: datetime | None) -> Range:
    return None if start is None else micros(start), None if end is None else micros(end)


class Reads:
    def __init__(self, kv: KeyValueStore, cache: TaskCache) -> None:
        self._kv = kv
        self._cache = cache

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]:
        records = await self._kv.run(lambda: read_records(self._kv, list(dict.fromkeys(ids))))
        return [to_task(records[task_id]) if task_id in records else None for task_id in ids]

    async def get_by_key(self, key: str) -> Task | None:
        async def work() -> Task | None:
            entry = (await self._kv.read([keys.idem(key)])).get(keys.idem(key))
            if entry is None or entry.deleted:
                return None
            task_id = UUID(json.loads(entry.data)["id"])
            found = (await self._kv.read([keys.task(task_id)])).get(keys.task(task_id))
            if found is None and (half := half_written(entry)) is not None:
                with suppress(Conflict):
                    await self._kv.write([half])
                found = (await self._kv.read([keys.task(task_id)])).get(keys.task(task_id))
            return None if found is None or found.deleted else to_task(decode(found.data, found.revision))

        return await self._kv.run(work)

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        where = await self._looked_up(where)

        async def work() -> Page:
            await self._cache.sync(Depth.EVERYTHING)
            ids, stop = _searched(where, self._select(where, None if cursor is None else cursor.bytes, oldest_first))
            # Where the list of all tasks decides, what the offset skips need not be read.
            skip = offset if where.searches else 0
            chosen = ids if skip else islice(ids, offset, None)
            tasks: list[Task] = []
            async for task in self._matching(where, chosen, limit + 1):
                if skip:
                    skip -= 1
                    continue
                tasks.append(task)
                if len(tasks) > limit:
                    break
            more = len(tasks) > limit
            tasks = tasks[:limit]
            return Page(tasks, tasks[-1].id if more and tasks else stop)

        return await self._kv.run(work)

    async def page_ended(self, where: Filter, *, limit: int, cursor: EndedCursor | None, offset: int) -> EndedPage:
        where = await self._looked_up(where)

        async def work() -> EndedPage:
            await self._cache.sync(Depth.EVERYTHING)
            over = replace(where, terminal=True) if where.terminal is None else where
            before = None if cursor is None else (micros(cursor.completed_at), cursor.id.bytes)
            ends = ((end, task) for task, end in self._selected(over, None, oldest_first=False) if end)
            places = sorted((place for place in ends if before is None or place < before), reverse=True)
            ids, stop = _searched(over, (task for _, task in places))
            matching = self._matching(over, ids, offset + limit + 1)
            tasks = [task async for task in matching][offset : offset + limit + 1]
            if len(tasks) > limit > 0:
                stop = tasks[limit - 1].id
            # By the ends that put them in order: a task may have ended anew since.
            cursors = (EndedCursor(moment(end), stop) for end, task in places if stop and task == stop.bytes)
            return EndedPage(tasks[:limit], next(cursors, None))

        return await self._kv.run(work)

    async def page_longest(self, where: Filter, *, limit: int, offset: int) -> Page:
        where = await self._looked_up(where)

        async def work() -> Page:
            await self._cache.sync(Depth.EVERYTHING)
            ids, _ = _searched(where, self._select(where, None, oldest_first=False))
            newest: list[Task] = []
            async for task in self._matching(where, ids, values.LONGEST_AMONG):
                newest.append(task)
                if len(newest) == values.LONGEST_AMONG:
                    break
            now = moment(self._kv.clock.micros())
            newest.sort(key=lambda task: (run_time(task, now), task.id), reverse=True)
            return Page(newest[offset : offset + limit], None)

        return await self._kv.run(work)

    async def count(self, where: Filter, cap: int) -> Count:
        where = await self._looked_up(where)

        async def work() -> Count:
            await self._cache.sync(Depth.EVERYTHING)
            ids, stop = _searched(where, self._select(where, None, oldest_first=False))
            found = 0
            if where.searches:
                async for _ in self._matching(where, ids, cap + 1):
                    found += 1
                    if found > cap:
                        break
            else:
                found = sum(1 for _ in islice(ids, cap + 1))
            return Count(min(found, cap), found > cap or stop is not None)

        return await self._kv.run(work)

    async def _looked_up(self, where: Filter) -> Filter:
        """The list of all tasks has no idempotency keys and no flows: they have entries of their own."""
        flow_id = where.flow_id
        if flow_id is not None:
            ids = await self._kv.run(lambda: tasks_of_flow(self._kv, flow_id))
            where = replace(where, ids=[each for each in ids if where.ids is None or each in where.ids])
        if where.idempotency_key is None:
            return where
        task = await self.get_by_key(where.idempotency_key)
        known = [] if task is None else [task.id]
        return replace(where, ids=[each for each in known if where.ids is None or each in where.ids])

    def _select(self, where: Filter, cursor: bytes | None, oldest_first: bool) -> Iterator[bytes]:
        return (task for task, _ in self._selected(where, cursor, oldest_first))

    def _selected(self, where: Filter, cursor: bytes | None, oldest_first: bool) -> Iterator[tuple[bytes, int]]:
        """The tasks that the list of all tasks shows to match, and when they ended."""
        all_tasks = self._cache.all_tasks
        assert all_tasks is not None
        found = all_tasks.select(
            lambda state, terminal, name: filters.by_roster(where, state, terminal, name),
            created=_range(where.created_after, where.created_before),
            ended=_range(where.ended_after, where.ended_before),
            cursor=cursor,
            oldest_first=oldest_first,
        )
        if where.ids is not None:
            wanted = {task_id.bytes for task_id in where.ids}
            found = (each for each in found if each[0] in wanted)
        if where.not_due:
            now = self._kv.clock.micros()
            later = {waiting.id for waiting in self._cache.index.waiting() if now < waiting.due < _NEVER}
            found = (each for each in found if each[0] in later)
        if where.worker_id is not None:
            running = self._cache.index.running
            found = (each for each in found if each[0] in running and running[each[0]].worker == where.worker_id)
        return found

    async def _matching(self, where: Filter, ids: Iterator[bytes], expected: int) -> AsyncIterator[Task]:
        """The tasks themselves; those that have changed since and no longer match are left out."""
        left = [UUID(bytes=task) for task in (ids if where.searches else islice(ids, expected))]
        for start in range(0, len(left), _AT_ONCE):
            records = await read_records(self._kv, left[start : start + _AT_ONCE])
            for task_id in left[start : start + _AT_ONCE]:
                record = records.get(task_id)
                if record is not None:
                    task = to_task(record)
                    if filters.by_task(where, task):
                        yield task

    async def latest_failures(self, name: str | None, limit: int) -> list[Failure]:
        where = Filter(names=None if name is None else [name], states=["failed"], terminal=True)
        page = await self.page_ended(where, limit=limit, cursor=None, offset=0)
        ended = ((task, task.completed_at) for task in page.tasks)
        return [
            Failure(task.id, task.name, at, (task.error or "")[-values.ERROR_END :])
            for task, at in ended
            if at is not None
        ]

    async def stats(self) -> dict[str, NameStats]:
        async def work() -> dict[str, NameStats]:
            await self._cache.sync(Depth.EVERYTHING)
            all_tasks = self._cache.all_tasks
            assert all_tasks is not None
            figures: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
            for waiting in self._cache.index.waiting():
                figures[waiting.name]["waiting" if waiting.retries else "pending"] += 1
            for running in self._cache.index.running.values():
                figures[running.name]["running"] += 1
            for (state, terminal, name), count in all_tasks.counts():
                if terminal and state in _FINISHED:
                    figures[name][state] += count
            found = {name: NameStats(**counts) for name, counts in figures.items()}
            for name, seconds in self._ages().items():
                found[name] = replace(found[name], oldest_due_seconds=seconds)
            return found

        return await self._kv.run(work)

    async def waiting(self) -> dict[str, Waiting]:
        """What is unfinished of each name. A worker asks, who has no list of all tasks."""

        async def work() -> dict[str, Waiting]:
            await self._cache.sync()
            now, index = self._kv.clock.micros(), self._cache.index
            running, depths = index.running_by_name(), index.depths()
            found = {}
            for name in {*running, *depths} - {ALL}:
                depth = depths.get(name, EMPTY)
                oldest_ms = 0 if depth.oldest is None else max(0, now - depth.oldest) // 1000
                found[name] = Waiting(depth.waiting + running.get(name, 0), depth.due, oldest_ms)
            return found

        return await self._kv.run(work)

    def _ages(self) -> dict[str, float]:
        now = self._kv.clock.micros()
        oldest = {name: depth.oldest for name, depth in self._cache.index.depths().items()}
        return {name: (now - due) / 1_000_000 for name, due in oldest.items() if due is not None}
