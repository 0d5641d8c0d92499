"""Flows: tasks that wait for tasks. What a child waits for, and what the ends of its parents make of it. Pure.

A *parent* is a task that another, its *child*, waits for. `waits` of the child counts the parents that are not done:
with `on="success"` a parent is done when it has completed, with `on="end"` when it is over in any way. What waits is
pending, and due at `NEVER`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from tasklib.core.errors import InvalidOption

K = TypeVar("K", bound=Hashable)

On: TypeAlias = Literal["success", "end"]
FlowState: TypeAlias = Literal["running", "failed", "cancelled", "completed"]

WAITING, RETRYING = "waiting", "retrying"
"""Counted apart: pending tasks that wait for others, and failed ones that will be tried again."""
UNFINISHED = ("pending", WAITING, "running", RETRYING)

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""When something is due that waits for others. Not the last instant there is: in another zone it would be beyond it."""
FLOW_FEEDS_LIMIT = 10_000
"""So many tasks may wait for one."""
INLINE_PARENTS = 1_000
"""More parents than these are kept beside the child's row, which is written anew with each of their ends."""


class After(NamedTuple):
    """What a new task waits for. Its own delay counts from the end of that."""

    parents: tuple[UUID, ...]
    on: On = "success"
    inputs: tuple[tuple[str, UUID], ...] = ()
    """Where results go: a JSON pointer into the payload, and the parent whose value is put there."""


class Parent(NamedTuple):
    """What became of a task that others wait for."""

    id: UUID
    name: str
    state: str
    over: bool
    """Nothing but an operator will change it any more."""
    value: str | None
    """What it returned, as JSON text; None: it has not completed."""
    error: str | None


class FlowSummary(NamedTuple):
    id: UUID
    name: str | None
    created_at: datetime
    counts: Mapping[str, int]
    """Tasks by state. Those that failed and will be retried are under `retrying`, those that wait for others under
    `waiting`, so not under `failed` and `pending`."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def status(self) -> FlowState:
        """It runs while anything of it is still to end."""
        if any(self.counts.get(each) for each in UNFINISHED):
            return "running"
        return "failed" if self.counts.get("failed") else "cancelled" if self.counts.get("cancelled") else "completed"


class FlowTask(NamedTuple):
    """A task of a flow, as much of it as a drawing shows."""

    id: UUID
    name: str
    state: str
    over: bool
    waits: int
    parents: tuple[UUID, ...]
    """Without those of a fan-in of more than `INLINE_PARENTS`: they say it themselves."""
    feeds: tuple[UUID, ...]


class Feeds(NamedTuple):
    """The tasks that wait, or waited, for one."""

    ids: Sequence[UUID]
    """The first of them, those that are not over before the others."""
    number: int
    unfinished: int


def in_order(parents: Mapping[K, Iterable[K]]) -> list[K]:
    """All of them, each behind its parents. Raises InvalidOption with the names of those that wait for each other."""
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        names = " -> ".join(map(str, reversed(error.args[1])))
        raise InvalidOption(f"after: tasks cannot wait for each other: {names}", field="after") from None


def after_json(
    after: After | None,
    *,
    delay_seconds: float | None = None,
    run_at: datetime | None = None,
    flow_name: str | None = None,
) -> str | None:
    """The column `after`, or None where there is nothing to say. Of many parents it says the number."""
    said: dict[str, Any] = {}
    if after is not None:
        inline = len(after.parents) <= INLINE_PARENTS
        said["on"] = after.on
        said["parents"] = [str(parent) for parent in after.parents] if inline else len(after.parents)
        if after.inputs and inline:
            said["inputs"] = {path: str(parent) for path, parent in after.inputs}
        if run_at is not None:
            said["runAt"] = run_at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        elif delay_seconds:
            said["delay"] = delay_seconds
    if flow_name is not None:
        said["flow"] = flow_name
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")) if said else None


def resolved(after: After | None, known: Mapping[UUID, UUID]) -> After | None:
    """Each parent once, and by the id that it has: a task whose key was taken is another one."""
    if after is None:
        return None
    inputs = tuple((path, known.get(parent, parent)) for path, parent in after.inputs)
    parents = dict.fromkeys([*(known.get(parent, parent) for parent in after.parents), *(each for _, each in inputs)])
    return After(tuple(parents), after.on, inputs)


def parent_ids(after: Mapping[str, Any] | None) -> tuple[UUID, ...] | None:
    """The parents that the column names. None: there are so many that they are kept beside the row. What somebody
    edited into something else is passed over."""
    named = (after or {}).get("parents", ())
    if isinstance(named, int):
        return None
    return as_ids(named)


def on_of(after: Mapping[str, Any] | None) -> On:
    return "end" if (after or {}).get("on") == "end" else "success"


def inputs_of(after: Mapping[str, Any]) -> tuple[tuple[str, UUID], ...]:
    """Where results go, and whose: those that can be read."""
    given = after.get("inputs")
    pairs = [(place, as_ids([parent])) for place, parent in given.items()] if isinstance(given, dict) else []
    return tuple((place, found[0]) for place, found in pairs if found)


def as_ids(values: Any) -> tuple[UUID, ...]:
    """Those that are ids. People edit rows."""
    found = []
    for value in values if isinstance(values, list | tuple) else ():
        try:
            found.append(value if isinstance(value, UUID) else UUID(value))
        except (ValueError, AttributeError, TypeError):
            continue
    return tuple(found)


class End(NamedTuple):
    """A parent as its children see it."""

    id: UUID
    name: str
    state: str
    over: bool

    def done(self, on: str) -> bool:
        return self.over and (on == "end" or self.state == "completed")

    def failed(self, on: str) -> bool:
        """What needs its success has lost it."""
        return self.over and on != "end" and self.state != "completed"


class Child(NamedTuple):
    """A task that waits for others, or did: what the ends of its parents can change of it."""

    id: UUID
    name: str
    state: str
    over: bool
    version: int
    waits: int
    after: Mapping[str, Any] | None
    feeds: tuple[UUID, ...] = ()
    error: str | None = None
    released: bool = False
    """It waits no longer, and is due when its own delay has passed."""

    @property
    def on(self) -> On:
        return on_of(self.after)

    @property
    def held(self) -> bool:
        """It waits, or did when it was cancelled: somebody may revive it."""
        return self.waits > 0 and (self.state == "cancelled" if self.over else self.state == "pending")

    @property
    def waiting(self) -> bool:
        return self.held and not self.over

    @property
    def cut_off(self) -> bool:
        return self.state == "cancelled" and self.over and "cutBy" in (self.after or {})

    @property
    def end(self) -> End:
        return End(self.id, self.name, self.state, self.over)


def after_ends(child: Child, ends: Iterable[End]) -> Child:
    """What is left to wait for when these parents have ended. What needed the success of one that failed is cut off.
    The counter of one that is cut off goes on counting, so that whoever revives it finds it right."""
    ends = list(ends)
    done = sum(end.done(child.on) for end in ends)
    failed = next((end for end in ends if end.failed(child.on)), None)
    waits = max(child.waits - done, 0) if child.waits > 0 else child.waits
    if failed is not None and child.waiting:
        return _cut_off(child._replace(waits=waits), failed)
    return child._replace(waits=waits, released=child.released or (waits == 0 and child.held))


def recounted(child: Child, parents: Sequence[UUID] | None, ends: Mapping[UUID, End]) -> Child:
    """The same, from all parents as they are now. One that was cut off and has lost none of them any more waits again.
    A parent that is not there any more was deleted by hand, and counts as cancelled. None: nobody knows the parents."""
    if not child.held or parents is None:
        return child
    seen = [ends.get(parent) or End(parent, "deleted", "cancelled", True) for parent in dict.fromkeys(parents)]
    waits = sum(not end.done(child.on) for end in seen)
    failed = next((end for end in seen if end.failed(child.on)), None)
    if child.over and not child.cut_off:  # an operator cancelled it
        return child._replace(waits=waits, released=waits == 0)
    if failed is not None:
        return _cut_off(child._replace(waits=waits), failed)
    kept = {name: value for name, value in (child.after or {}).items() if name != "cutBy"}
    error = None if child.cut_off else child.error
    return child._replace(state="pending", over=False, waits=waits, after=kept, error=error, released=waits == 0)


def _cut_off(child: Child, failed: End) -> Child:
    return child._replace(
        state="cancelled",
        over=True,
        after={**(child.after or {}), "cutBy": str(failed.id)},
        error=dependency_failed(failed),
        released=False,
    )


def dependency_failed(end: End) -> str:
    """The error of what is cut off."""
    how = {"failed": "failed", "cancelled": "was cancelled"}.get(end.state, f"is {end.state}")
    return f"DependencyFailed: task {end.id} ({end.name}) {how}"
