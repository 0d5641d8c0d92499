"""What tasks get of those that they waited for: results among their arguments, and what became of each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from tasklib.core.bytes_json import unpack
from tasklib.core.errors import TaskLibError
from tasklib.core.flows import After, Parent, as_ids, parent_ids
from tasklib.core.outputs import filled
from tasklib.core.task import Claim, Task

T = TypeVar("T")
PAGE = 500
_AT_ONCE = 5_000

Sources = Mapping[str, str]
"""Where results were put into a payload, by JSON pointers, and whose they are, in words."""


class ParentTask(NamedTuple):
    """A task that the running one waited for, and what became of it."""

    id: UUID
    name: str
    state: str
    value: Any
    """What it returned, in plain JSON values; None: it has not completed."""
    error: str | None


class ReadsParents(Protocol):
    """The part of a store that is needed for this."""

    async def parents(self, ids: Sequence[UUID]) -> list[Parent]: ...

    async def after_of(self, task_id: UUID) -> After | None: ...


class RunBlocking(Protocol):
    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


class Parents:
    """`for` or, in an `async def` task, `async for`: each task that this one waited for, read as far as one gets."""

    def __init__(
        self,
        task_id: UUID,
        after: Mapping[str, Any] | None,
        store: Callable[[], Awaitable[ReadsParents]],
        run: RunBlocking,
    ) -> None:
        self._task_id = task_id
        self._after = after
        self._store = store
        self._run = run

    def __iter__(self) -> Iterator[ParentTask]:
        for ids in _pages(self._run(self._ids()), PAGE):
            yield from self._run(self._read(ids))

    async def __aiter__(self) -> AsyncIterator[ParentTask]:
        for ids in _pages(await self._ids(), PAGE):
            for parent in await self._read(ids):
                yield parent

    async def _ids(self) -> Sequence[UUID]:
        named = parent_ids(self._after)
        if named is not None:
            return named
        found = await (await self._store()).after_of(self._task_id)
        return () if found is None else found.parents

    async def _read(self, ids: Sequence[UUID]) -> list[ParentTask]:
        found = {each.id: each for each in await (await self._store()).parents(ids)}
        return [_shown(found[task_id]) for task_id in ids if task_id in found]


def run_in(loop: asyncio.AbstractEventLoop) -> RunBlocking:
    """Runs coroutines in that loop, for a thread that has none."""

    def run(work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        work.close()
        raise TaskLibError("current_task().parents(): use `async for` in an async def task")

    return run


async def fill_claims(store: ReadsParents, claims: Sequence[Claim]) -> list[tuple[Claim, Sources | None]]:
    """With results in their payloads, where they are to get some. One read for all of them."""
    afters = {claim.id: after_of(claim) for claim in claims if claim.flow is not None}
    inputs = await _inputs(store, afters)
    found = await _found(store, inputs)
    done: list[tuple[Claim, Sources | None]] = []
    for claim in claims:
        own = inputs.get(claim.id)
        if own:
            values = {place: _value(found, parent) for place, parent in own.items()}
            sources = {place: _told(found, parent) for place, parent in own.items()}
            done.append((claim._replace(kwargs=filled(claim.kwargs, values)), sources))
        else:
            done.append((claim, None))
    return done


async def fill_tasks(store: ReadsParents, tasks: Sequence[Task]) -> list[Task]:
    """The same for tasks that were claimed by hand."""
    inputs = await _inputs(store, {task.id: task.after for task in tasks if task.after is not None})
    found = await _found(store, inputs)
    done: list[Task] = []
    for task in tasks:
        values = {place: _value(found, parent) for place, parent in inputs.get(task.id, {}).items()}
        payload = json.loads(filled(json.dumps(task.kwargs), values)) if values else task.kwargs
        done.append(replace(task, kwargs=payload) if values else task)
    return done


def after_of(claim: Claim) -> Mapping[str, Any] | None:
    """What it waited for, as its column says it."""
    found = json.loads(claim.flow or "{}").get("after")
    return found if isinstance(found, dict) else None


def flow_of(claim: Claim) -> UUID | None:
    return next(iter(as_ids([json.loads(claim.flow or "{}").get("id")])), None)


async def _inputs(
    store: ReadsParents, afters: Mapping[UUID, Mapping[str, Any] | None]
) -> dict[UUID, Mapping[str, UUID | None]]:
    found: dict[UUID, Mapping[str, UUID | None]] = {}
    for task_id, after in afters.items():
        if after is None:
            continue
        if parent_ids(after) is None:  # so many that they are kept beside the row
            whole = await store.after_of(task_id)
            found[task_id] = dict(whole.inputs) if whole is not None else {}
        elif isinstance(named := after.get("inputs"), dict):
            found[task_id] = {place: next(iter(as_ids([parent])), None) for place, parent in named.items()}
    return found


async def _found(store: ReadsParents, inputs: Mapping[UUID, Mapping[str, UUID | None]]) -> dict[UUID, Parent]:
    ids = list({parent: None for own in inputs.values() for parent in own.values() if parent is not None})
    return {each.id: each for page in _pages(ids, _AT_ONCE) for each in await store.parents(page)}


def _value(found: Mapping[UUID, Parent], parent: UUID | None) -> str | None:
    return found[parent].value if parent is not None and parent in found else None


def _told(found: Mapping[UUID, Parent], parent: UUID | None) -> str:
    known = found.get(parent) if parent is not None else None
    if known is None:
        return f"the result of task {parent}, which is not there any more"
    state = "" if known.value is not None else f", which has none: it is {known.state}"
    return f"the result of task {known.id} ({known.name}){state}"


def _shown(parent: Parent) -> ParentTask:
    value = None if parent.value is None else unpack(json.loads(parent.value))
    return ParentTask(parent.id, parent.name, parent.state, value, parent.error)


def _pages(ids: Sequence[UUID], size: int) -> Iterator[Sequence[UUID]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
