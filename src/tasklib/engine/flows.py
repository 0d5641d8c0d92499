"""Flows: how they stand, what is done to all of their tasks, and a batch of tasks that refer to each other by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from tasklib.core.errors import FlowNotFound, InvalidInput, InvalidOption
from tasklib.core.flow_graph import FlowNode, fold
from tasklib.core.flows import FlowSummary, On, in_order
from tasklib.core.task import NewTask, Task
from tasklib.engine.bulk import Action, perform
from tasklib.engine.collecting import Collector
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call, Prepared, after_of, prepare
from tasklib.stores.values import Audit, Filter

GRAPH_LIMIT = 20_000
"""A drawing shows so many tasks of a flow, the oldest."""
PAGE = 500
_LAST = (1 << 128) - 1


# -- look -------------------------------------------------------------------------------------------------------------


async def summary(engine: Engine, flow_id: UUID) -> FlowSummary:
    """Raises FlowNotFound."""
    newer = UUID(int=flow_id.int + 1) if flow_id.int < _LAST else None
    found = await (await engine.store()).flows(1, newer)
    if not found or found[0].id != flow_id:
        raise FlowNotFound(flow_id)
    return found[0]


class FlowGraph(NamedTuple):
    nodes: list[FlowNode]
    truncated: bool
    """There are more tasks than `GRAPH_LIMIT`."""


async def graph(engine: Engine, flow_id: UUID) -> FlowGraph:
    """The drawing. Raises FlowNotFound."""
    tasks = await (await engine.store()).flow_graph(flow_id, GRAPH_LIMIT + 1)
    if not tasks:
        raise FlowNotFound(flow_id)
    return FlowGraph(fold(tasks[:GRAPH_LIMIT]), len(tasks) > GRAPH_LIMIT)


async def tasks_of(engine: Engine, flow_id: UUID) -> list[Task]:
    """All of them, oldest first."""
    found: list[Task] = []
    cursor: UUID | None = None
    while True:
        page = await engine.page(Filter(flow_id=flow_id), limit=PAGE, cursor=cursor, oldest_first=True)
        found += page.tasks
        cursor = page.next_cursor
        if cursor is None:
            return found


async def newest_unfinished(engine: Engine, flow_id: UUID) -> Task | None:
    """One that is still to end. The newest comes after others as a rule, so that who waits for all waits few times."""
    for states, terminal in ((("pending", "running"), None), (("failed",), False)):
        page = await engine.page(Filter(flow_id=flow_id, states=states, terminal=terminal), limit=1)
        if page.tasks:
            return page.tasks[0]
    return None


# -- operate ----------------------------------------------------------------------------------------------------------


async def act(engine: Engine, action: Action, flow_id: UUID, *, audit: Audit[Task] | None = None) -> int:
    """Cancels what is not over, or retries what failed, which revives what was cut off by it. How many tasks that was
    done to, those aside that follow from it. Raises FlowNotFound."""
    await summary(engine, flow_id)
    number = 0
    async for batch in perform(engine, action, Filter(flow_id=flow_id), audit=audit):
        number += len(batch.tasks)
    return number


# -- put together -----------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A task of a flow that is described by data: it names others by references of the description's own."""

    ref: str
    call: Call
    after: Sequence[str | UUID] = ()
    """References, or ids of tasks that are there."""
    on: On | None = None
    inputs: Mapping[str, str | UUID] = {}
    """JSON pointers into the payload, and whose result goes there."""


class FlowBatch(NamedTuple):
    tasks: list[NewTask]
    """Ready to be inserted in one batch."""
    ids: dict[str, UUID]
    """By reference."""
    validated: bool
    """False: of some nobody could tell what arguments they take."""


async def put_together(
    engine: Engine, parts: Sequence[Part], *, name: str | None = None, idempotency_key: str | None = None
) -> FlowBatch:
    """The tasks of a flow. Raises InvalidInput: a reference that is there twice or not at all, and tasks that wait for
    each other."""
    flow = Collector(engine, name, idempotency_key)
    by_ref: dict[str, Part] = {}
    for number, part in enumerate(parts):
        with at_task(number):
            if by_ref.setdefault(part.ref, part) is not part:
                raise InvalidOption(f"ref: {part.ref!r:.80} is there twice", field="ref")
    in_order(
        {
            part.ref: [
                each for each in (*part.after, *part.inputs.values()) if isinstance(each, str) and each in by_ref
            ]
            for part in parts
        }
    )
    prepared: list[Prepared] = []
    for number, part in enumerate(parts):
        with at_task(number):
            prepared.append(await _prepared(engine, part))
    ids = {part.ref: each.task.id for part, each in zip(parts, prepared, strict=True)}

    def id_of(part: Part, reference: str | UUID, field: str) -> UUID:
        found = ids.get(reference) if isinstance(reference, str) else reference
        if found is None:
            try:
                found = UUID(str(reference))
            except ValueError:
                text = f"{field}: {part.ref!r:.80} names {reference!r:.80}, which is no task of this flow and no id"
                raise InvalidOption(text, field=field) from None
        return found

    for number, (part, each) in enumerate(zip(parts, prepared, strict=True)):
        with at_task(number):
            flow.add(engine, [_linked(part, each.task, id_of)], None)
    return FlowBatch(flow.batch(), ids, all(each.validated for each in prepared))


@contextmanager
def at_task(number: int) -> Iterator[None]:
    """Errors say which task of the flow they are about."""
    try:
        yield
    except InvalidInput as error:
        error.at = f"tasks.{number}"
        raise


async def _prepared(engine: Engine, part: Part) -> Prepared:
    """Checked, with nulls where results go. Whose results those are is said later, when all ids are known."""
    if any(name in part.call.options for name in ("after", "on", "before")):
        raise InvalidOption("after: in a flow it stands beside the options, not among them", field="after")
    call = part.call._replace(inputs=dict.fromkeys(part.inputs, UUID(int=0)))
    prepared = engine.prepare_at_once(call)
    if prepared is None:
        prepared = prepare(call, await engine.published(call.name), engine.config)
    return prepared


def _linked(part: Part, task: NewTask, id_of: Callable[[Part, str | UUID, str], UUID]) -> NewTask:
    inputs = [(place, id_of(part, each, "inputs")) for place, each in part.inputs.items()]
    return task._replace(after=after_of([id_of(part, each, "after") for each in part.after], part.on, inputs))
