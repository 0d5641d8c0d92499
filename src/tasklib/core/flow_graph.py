"""A flow as a drawing, where tasks of one type with the same parents are one node. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tasklib.core.flows import RETRYING, WAITING, FlowTask
from tasklib.core.task import TaskState


class FlowNode(NamedTuple):
    """Tasks of one type that come after the same nodes."""

    key: str
    """The id of its oldest task."""
    name: str
    parents: tuple[str, ...]
    """Keys of nodes."""
    counts: Mapping[str, int]
    """Tasks by state, as in `FlowSummary`."""
    total: int
    layer: int
    """0: it waits for nothing in this flow. Else one more than the highest layer of its parents."""


def count_as(task: FlowTask) -> str:
    if task.state == TaskState.PENDING and task.waits > 0:
        return WAITING
    return RETRYING if task.state == TaskState.FAILED and not task.over else task.state


def fold(tasks: Sequence[FlowTask]) -> list[FlowNode]:
    """The nodes, each behind its parents. What is not in the flow does not count as a parent."""
    parents = _parents(tasks)
    nodes: dict[tuple[str, frozenset[int]], int] = {}
    members: list[list[FlowTask]] = []
    layers: list[int] = []
    node_of: dict[int, int] = {}
    for place in _in_order(parents):
        above = frozenset(node_of[each] for each in parents[place] if each in node_of)
        node = nodes.setdefault((tasks[place].name, above), len(members))
        if node == len(members):
            members.append([])
            layers.append(1 + max((layers[each] for each in above), default=-1))
        members[node].append(tasks[place])
        node_of[place] = node
    keys = [str(within[0].id) for within in members]
    return [
        FlowNode(
            keys[node],
            name,
            tuple(sorted(keys[each] for each in above)),
            Counter(map(count_as, members[node])),
            len(members[node]),
            layers[node],
        )
        for (name, above), node in nodes.items()
    ]


def _parents(tasks: Sequence[FlowTask]) -> list[set[int]]:
    """By their places among the tasks, which are quicker to compare than ids. Said by the task itself, or, of many, by
    each of them."""
    places = {task.id: place for place, task in enumerate(tasks)}
    found = [{places[each] for each in task.parents if each in places} for task in tasks]
    for place, task in enumerate(tasks):
        for fed in task.feeds:
            if fed in places:
                found[places[fed]].add(place)
    for place, above in enumerate(found):
        above.discard(place)
    return found


def _in_order(parents: Sequence[set[int]]) -> Iterator[int]:
    """Each behind its parents. What waits for itself, in rows that were edited by hand, comes last."""
    left = {place: len(above) for place, above in enumerate(parents)}
    below: dict[int, list[int]] = defaultdict(list)
    for place, above in enumerate(parents):
        for each in above:
            below[each].append(place)
    ready = deque(place for place, number in left.items() if not number)
    while ready:
        place = ready.popleft()
        del left[place]
        yield place
        for each in below[place]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    yield from left
