"""Command-line words -> values: payloads, tags, ids. Refused with what was wrong and how to write it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import typer

from tasklib.cli import completion
from tasklib.core import codec
from tasklib.core.errors import InvalidInput, InvalidOption
from tasklib.core.ids import as_task_id
from tasklib.core.task import TaskState
from tasklib.stores.values import Filter

PAIR_HELP = "key=text, or key:=JSON for numbers, lists and the like"


def task_id(text: str) -> UUID:
    try:
        return as_task_id(text)
    except InvalidInput:
        raise typer.BadParameter(
            f"{text!r:.60} is not a task id; ids are UUIDs, as `tasklib list` prints them"
        ) from None


def pairs(words: Iterable[str], what: str) -> dict[str, Any]:
    """`key=text` and `key:=JSON`. Text stays text: a task's model makes numbers and dates of it where it wants them."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        as_json = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise InvalidInput(f"{what} {word!r:.60}: write it as {PAIR_HELP}", field=what)
        if key in found:
            raise InvalidInput(f"{what} {key!r:.60} is given twice", field=what)
        found[key] = codec.decode(text, field=f"{what} {key}") if as_json else text
    return found


TaskId = Annotated[
    UUID,
    typer.Argument(
        parser=task_id, metavar="ID", help="The task's id.", show_default=False, autocompletion=completion.task_ids
    ),
]
TaskName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The task's name.", show_default=False, autocompletion=completion.task_names),
]
TaskArguments = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help=f"Its arguments: {PAIR_HELP}.", show_default=False)
]
Payload = Annotated[
    str | None,
    typer.Option("--payload", "-p", metavar="JSON", help="All arguments as one JSON value; - reads it from stdin."),
]
TaskIds = Annotated[
    list[UUID] | None,
    typer.Argument(
        parser=task_id,
        metavar="ID",
        help="Task ids; or choose by state, name and tag.",
        show_default=False,
        autocompletion=completion.task_ids,
    ),
]


class ShownState(StrEnum):
    """As lists show them: `waiting` is a failed task with a retry to come."""

    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FinishedState(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


States = Annotated[
    list[ShownState] | None,
    typer.Option(
        "--state",
        "-s",
        metavar="STATE",
        help="Only tasks in this state: pending, waiting (for a retry), running, completed, failed or cancelled; "
        "may be given several times.",
        show_default=False,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="Only tasks of this name; may be given several times.",
        show_default=False,
        autocompletion=completion.task_names,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", "-t", metavar="KEY=VALUE", help=f"A tag: {PAIR_HELP}; may be given several times.", show_default=False
    ),
]


def chosen(states: list[ShownState] | None, names: list[str] | None, tags: list[str] | None) -> Filter:
    """The options that choose tasks, as a filter."""
    wanted = set(states or ())
    kept = {TaskState.FAILED if state is ShownState.WAITING else TaskState(state.value) for state in wanted}
    waiting_only = ShownState.WAITING in wanted and ShownState.FAILED not in wanted
    over = kept.intersection({TaskState.COMPLETED, TaskState.CANCELLED}) if waiting_only else set()
    if over:
        raise InvalidOption(f"--state waiting cannot be combined with {', '.join(sorted(over))}", field="state")
    return Filter(
        states=sorted(kept) if kept else None,
        terminal=False if waiting_only else None,
        names=names or None,
        tags=pairs(tags, "--tag") if tags else None,
    )


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
