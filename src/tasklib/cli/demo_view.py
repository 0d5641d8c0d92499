"""What the demo shows: a live table on a terminal, lines elsewhere, nothing where JSON is wanted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tasklib.cli.demo_story import Scene
from tasklib.cli.output import STATE_STYLES, Printer, styled
from tasklib.cli.record import attempts, remark, state_text, state_word
from tasklib.core.task import Task, is_completed, is_terminal

ROWS = 14
"""Tasks in the live table: with its frame it fits a terminal of 24 lines."""


@dataclass(frozen=True)
class Act:
    """A scene and the task it became."""

    scene: Scene
    task: Task


class View(Protocol):
    def running(self) -> AbstractContextManager[object]: ...

    def update(self, acts: Sequence[Act], now: datetime, seconds: float) -> None: ...


def make_view(out: Printer) -> View:
    if out.as_json:
        return SilentView()
    return LiveView(out) if out.live else LineView(out)


class SilentView:
    def running(self) -> AbstractContextManager[object]:
        return nullcontext()

    def update(self, acts: Sequence[Act], now: datetime, seconds: float) -> None:
        pass


class LineView:
    """One line whenever a task changes."""

    def __init__(self, out: Printer) -> None:
        self._out = out
        self._seen: dict[str, tuple[str, int]] = {}

    def running(self) -> AbstractContextManager[object]:
        return nullcontext()

    def update(self, acts: Sequence[Act], now: datetime, seconds: float) -> None:
        for act in acts:
            task = act.task
            state = (state_word(task), task.attempts)
            if self._seen.get(str(task.id)) != state:
                self._seen[str(task.id)] = state
                line = f"{seconds:5.1f} s  {task.name:<21} {state[0]:<10} {attempts(task):>4}  {_outcome(task, now)}"
                self._out.line(line.rstrip())


class LiveView:
    """A table that moves."""

    def __init__(self, out: Printer) -> None:
        self._live = Live(console=out.console, auto_refresh=False)

    def running(self) -> AbstractContextManager[object]:
        return self._live

    def update(self, acts: Sequence[Act], now: datetime, seconds: float) -> None:
        self._live.update(_scene(acts, now, seconds), refresh=True)


def _scene(acts: Sequence[Act], now: datetime, seconds: float) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("TASK", no_wrap=True)
    table.add_column("WHAT IT SHOWS", no_wrap=True, style="dim")
    table.add_column("STATE", no_wrap=True, min_width=9)
    table.add_column("TRIES", no_wrap=True, justify="right")
    table.add_column("RESULT", no_wrap=True, overflow="ellipsis", ratio=1)
    for act in acts[-ROWS:]:
        task = act.task
        table.add_row(
            Text(task.name), Text(act.scene.shows), state_text(task), attempts(task), styled(_outcome(task, now), "")
        )
    done = sum(is_terminal(act.task) for act in acts)
    return Group(table, Text(), _bar(done, len(acts), seconds), _counts(acts))


def _bar(done: int, total: int, seconds: float) -> Table:
    bar = Table.grid(padding=(0, 2))
    bar.add_row(ProgressBar(total=total, completed=done, width=40), Text(f"{done} of {total} done, {seconds:.0f} s"))
    return bar


def _counts(acts: Sequence[Act]) -> Text:
    counts = Counter(state_word(act.task) for act in acts)
    parts = [Text(f"{counts[state]} {state}", style=style) for state, style in STATE_STYLES.items() if counts[state]]
    return Text("  ").join(parts)


def _outcome(task: Task, now: datetime) -> str:
    if is_completed(task):
        return json.dumps((task.result or {}).get("value"), ensure_ascii=False)
    return remark(task, now)
