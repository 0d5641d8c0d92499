"""A flow while it is being put together: submits are kept, and sent together at its end."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasklib.core.errors import FlowNotSent, InvalidOption, TaskLibError
from tasklib.core.flows import After, in_order
from tasklib.core.task import NewTask
from tasklib.stores.values import Inserted

if TYPE_CHECKING:
    from tasklib.engine.engine import Engine


class Collector:
    """What was submitted in a flow so far, and what has become of the flow."""

    def __init__(self, engine: Engine, name: str | None = None, key: str | None = None) -> None:
        self.engine = engine
        self.tasks: list[NewTask] = []
        self.handles: list[Any] = []
        """Of its tasks, as they were given out."""
        self.sent = False
        self.refusal = "is not sent before the end of its flow's block"
        """Why its tasks cannot be used, until it is sent."""
        self._name = name
        self._key = key

    def add(self, engine: Engine, tasks: Sequence[NewTask], connection: object | None) -> list[Inserted]:
        """Keeps them. Their ids are known, and nothing is stored yet."""
        if connection is not None:
            raise InvalidOption("connection: say it of the flow: flow(..., connection=...)", field="connection")
        if engine.config.database_url != self.engine.config.database_url:
            raise InvalidOption("flow: this submit goes to another queue than the flow it stands in", field="flow")
        self.tasks.extend(tasks)
        return [Inserted(task.id, True) for task in tasks]

    @property
    def id(self) -> UUID:
        """That of its first task. One with a key of its own does not count: another task may stand for it, and that one
        may be in another flow."""
        for task in self.tasks:
            if task.idempotency_key is None and task.unique_rule is None:
                return task.id
        raise FlowNotSent("a flow has an id once a task was submitted in it, other than by a key of the task's own")

    def batch(self) -> list[NewTask]:
        """All of it, ready to be stored. Raises InvalidOption if there is nothing."""
        if not self.tasks:
            raise InvalidOption("flow: nothing was submitted in it", field="flow")
        try:
            flow_id = self.id
        except FlowNotSent:
            reason = "each task of it has a key of its own; one without is needed, which only the flow can have"
            raise InvalidOption(f"flow: {reason}", field="flow") from None
        tasks = [task._replace(flow_id=flow_id) for task in _with_before(self.tasks)]
        return [
            task._replace(flow_name=self._name, idempotency_key=self._key) if task.id == flow_id else task
            for task in tasks
        ]

    def check_usable(self, task_id: UUID) -> None:
        if not self.sent:
            raise FlowNotSent(f"task {task_id} {self.refusal}", task_id=task_id)


def _with_before(tasks: Sequence[NewTask]) -> list[NewTask]:
    """What is to wait for another of the batch says so itself. Raises InvalidOption where tasks wait for each other:
    in Python nothing else can make them do so."""
    by_id = {task.id: task for task in tasks}
    if not any(target in by_id for task in tasks for target in task.before):
        return list(tasks)
    for task in tasks:
        for target in task.before:
            if target in by_id:
                after = by_id[target].after or After(())
                by_id[target] = by_id[target]._replace(after=after._replace(parents=(*after.parents, task.id)))
        elsewhere = tuple(each for each in task.before if each not in by_id)
        by_id[task.id] = by_id[task.id]._replace(before=elsewhere)
    names = {task.id: f"{task.name} ({task.id})" for task in tasks}
    above = {task.id: () if task.after is None else task.after.parents for task in by_id.values()}
    in_order({names[each]: [names[parent] for parent in parents if parent in names] for each, parents in above.items()})
    return list(by_id.values())


collecting: ContextVar[Collector | None] = ContextVar("tasklib_collecting", default=None)


def collected(engine: Engine, tasks: Sequence[NewTask], connection: object | None) -> list[Inserted] | None:
    """What a flow has taken that is being put together here. None: there is none."""
    flow = collecting.get()
    return None if flow is None else flow.add(engine, tasks, connection)


def refuse_in_flow(what: str) -> None:
    """Of what would not be part of the flow, although it stands in it."""
    if collecting.get() is not None:
        raise TaskLibError(f"{what} is not part of a flow: move it out of the flow's block")
