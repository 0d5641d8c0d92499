"""The columns of flows: how links go in, and what is read of parents, children and whole flows."""

from __future__ import annotations

from typing import Any

from tasklib.core.flows import Child, End, FlowTask, Parent, as_ids, parent_ids
from tasklib.stores.sql.columns import NEW_TASK, OVER, Kind, Shape, mapping, row_values

FLOW_TASK = Shape(
    row_values,
    {
        **NEW_TASK.columns,
        "waits": Kind.INTEGER,
        "after": Kind.JSON_TEXT,
        "flow_id": Kind.ID,
        "feeds": Kind.JSON_TEXT,
    },
)
"""One that waits for others, or that others wait for. What waits has `NEVER` as its `run_at`."""
LINKS = Shape(row_values, {name: FLOW_TASK.columns[name] for name in ("id", "waits", "after", "flow_id", "feeds")})
"""The same for one that has just been stored as a plain one."""
FEEDS = Shape(row_values, {"id": Kind.ID, "feeds": Kind.JSON_TEXT})
STEP = Shape(row_values, {"task_id": Kind.ID, "name": Kind.TEXT, "value": Kind.JSON_TEXT})

END = Shape(End, {"id": Kind.ID, "name": Kind.TEXT, "state": Kind.TEXT, "over": Kind.BOOLEAN}, {"over": OVER})


def _child(after: Any, feeds: Any, **values: Any) -> Child:
    return Child(after=mapping(after), feeds=as_ids(feeds), **values)


CHILD = Shape(
    _child,
    {
        **END.columns,
        "version": Kind.INTEGER,
        "waits": Kind.INTEGER,
        "after": Kind.JSON,
        "feeds": Kind.JSON,
        "error": Kind.TEXT,
    },
    {"over": OVER, "feeds": "{feeds_json}"},
)
MOVED = Shape(
    row_values,
    {
        "id": Kind.ID,
        "version": Kind.INTEGER,
        "state": Kind.TEXT,
        "waits": Kind.INTEGER,
        "after": Kind.JSON_TEXT,
        "error": Kind.TEXT,
        "released": Kind.BOOLEAN,
        "cut": Kind.BOOLEAN,
        "leaves": Kind.TEXT,
    },
)
"""A child as it is to be: cut off by this, or taken out of the state that it `leaves`."""

PARENT = Shape(
    Parent, {**END.columns, "value": Kind.TEXT, "error": Kind.TEXT}, {"over": OVER, "value": "{result_value}"}
)
FED = Shape(row_values, {"id": Kind.ID, "number": Kind.INTEGER, "unfinished": Kind.INTEGER})
FLOW_COUNT = Shape(
    row_values, {"flow_id": Kind.ID, "state": Kind.TEXT, "number": Kind.INTEGER, "created_at": Kind.TIME}
)


def _flow_task(after: Any, feeds: Any, **values: Any) -> FlowTask:
    return FlowTask(parents=parent_ids(mapping(after)) or (), feeds=as_ids(feeds), **values)


GRAPH = Shape(
    _flow_task,
    {**END.columns, "waits": Kind.INTEGER, "after": Kind.JSON, "feeds": Kind.JSON},
    {"over": OVER, "feeds": "{feeds_json}"},
)
FED_TASK = Shape(row_values, {"id": Kind.ID, "feeds": Kind.JSON}, {"feeds": "{feeds_json}"})
