"""All commands by name: what `tasklib --help` says of each, and the module that is imported when one is called.

Importing all of them takes longer than most of them run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import typer

from tasklib.cli.help import PlainCommand, PlainGroup

_Lines: TypeAlias = dict[str, tuple[str, str]]
"""Name -> the module, and the first paragraph of the command's own help."""

_RUN: _Lines = {
    "demo": (
        "demo",
        "See a queue at work: tasks that succeed, retry, fail, wait, jump the queue, time out, are cancelled; a flow.",
    ),
    "worker": ("worker", "Run tasks until told to stop."),
    "serve": ("serve", "Serve the REST API, live events and metrics."),
}
_TASKS: _Lines = {
    "submit": ("tasks", "Queue a task and print its id."),
    "copy-task": (
        "tasks",
        "Run a finished task again: a copy under a new id, due now, with the same options. Prints the new id.",
    ),
    "list": ("tasks", "List tasks, newest first."),
    "show": (
        "tasks",
        "Show everything about one task: payload, result, what it waits for, each failed attempt, the traceback.",
    ),
    "wait": ("tasks", "Wait until a task is finished, and print its result as JSON."),
    "retry": ("operate", "Run failed tasks again, now, with all their attempts. Their history is kept."),
    "run": (
        "operate",
        "Run tasks now that wait for their time or for a retry. Their attempts are kept; what is due already stays.",
    ),
    "cancel": ("operate", "Cancel waiting tasks; running ones are asked to stop."),
    "revive": ("operate", "Undo a cancel: the tasks wait again, with all their attempts, due when they were due."),
    "delete": (
        "operate",
        "Delete finished tasks for good: by their ids, or all that match. Asks first, or needs --yes.",
    ),
    "cleanup": ("operate", "Delete tasks that finished long ago, in batches. Asks first, or needs --yes."),
    "flow": ("flows", "Look after flows: tasks that wait for tasks."),
}
_OPERATIONS: _Lines = {
    "pause": ("controls", "Stop the whole fleet from starting tasks, of one type or of all. What runs goes on."),
    "resume": ("controls", "Undo a pause. A pause of all types and a pause of one are two: each is undone by itself."),
    "limit": ("controls", "Limit how many tasks the whole fleet starts a second, or runs at once."),
    "drain": (
        "controls",
        "Ask a worker to take nothing more, to finish what it runs, and to end. `--processes` does not start it again.",
    ),
    "alerts": ("alerts", "Show the alert rules, their states, and what they find now."),
    "stats": ("admin", "Count tasks by type and state, with limits, pauses, and types that no live worker handles."),
    "types": ("admin", "List task types: their queues, how many live workers handle them, pauses and limits."),
    "workers": ("admin", "List workers: which are alive, what they handle, how much they run."),
    "migrate": ("admin", "Bring the schema up to date. Safe to run twice, and twice at once."),
    "doctor": ("admin", "Check the database and the queue, and say what to do about what is wrong."),
    "copy": (
        "copying",
        "Copy all tasks to another database: ids, states, keys, results and history; schedules, pauses, limits, "
        "tokens.",
    ),
    "schedule": ("schedules", "Look after tasks that are submitted again and again."),
    "token": ("tokens", "Make, list and revoke the tokens that open the HTTP API."),
}


class Listed(NamedTuple):
    """A command as the list of commands has it."""

    panel: str
    module: str
    line: str


COMMANDS = {
    name: Listed(panel, f"tasklib.cli.{module}", line)
    for panel, lines in (("Run", _RUN), ("Tasks", _TASKS), ("Operations", _OPERATIONS))
    for name, (module, line) in lines.items()
}


class _Loaded(Mapping[str, Any]):
    """The commands themselves, each made when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            part = typer.Typer()
            import_module(COMMANDS[name].module).register(part)
            part.registered_commands = [each for each in part.registered_commands if each.name == name]
            self._made.update(typer.main.get_group(part).commands)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(PlainGroup):
    """The group `tasklib`. Its help, and what Tab offers, come from the list."""

    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        listed = COMMANDS.get(cmd_name)
        return listed and PlainCommand(cmd_name, help=listed.line, rich_help_panel=listed.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and self.commands[listed.name], rest
