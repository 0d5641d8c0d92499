"""Everything about one task, for reading: what it is, when things happened, each failed attempt, the traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tasklib.cli.output import STATE_STYLES, styled
from tasklib.cli.record import Redact, state_word
from tasklib.cli.text import clean
from tasklib.cli.times import absolute, both, span
from tasklib.core.flows import NEVER
from tasklib.core.lifecycle import phase_of
from tasklib.core.task import Task, has_error, has_result, is_pending, is_running, last_line
from tasklib.engine.linked import Linked, Links


def detail(task: Task, now: datetime, redact: Redact, linked: Linked) -> RenderableType:
    parts: list[RenderableType] = [_heading(task), _facts(_about(task, now, redact))]
    if linked.parents.total:
        waits = f"Waits for {task.waits:,} of {linked.parents.total:,}" if task.waits > 0 else "Waited for"
        parts += _section(waits, _links(linked.parents))
    if linked.feeds.total:
        feeds = linked.feeds
        title = (
            f"{feeds.unfinished:,} of {feeds.total:,} wait for this one" if feeds.unfinished else "Waited for this one"
        )
        parts += _section(title, _links(feeds))
    parts += _section("Payload", _json(redact(task.kwargs)))
    if has_result(task):
        parts += _section("Result", _json(redact(task.result or {}).get("value")))
    if task.history:
        parts += _section("Attempts that did not complete", _timeline(task.history))
    if task.error is not None and has_error(task):
        parts += _section("Error", Text(clean(task.error.strip("\n"), lines=True), style="red"))
    return Group(*parts)


def _heading(task: Task) -> Text:
    word = state_word(task)
    phase = phase_of(task)
    state = phase.value if phase is not None else f"{task.state} (a state this version does not know)"
    style = STATE_STYLES.get(word, "reverse")
    return Text.assemble((clean(task.name), "bold"), "  ", (clean(state), f"bold {style}"))


def _about(task: Task, now: datetime, redact: Redact) -> Iterator[tuple[str, str]]:
    most = "without limit" if task.max_attempts == 0 else f"of {task.max_attempts}"
    yield "id", str(task.id)
    yield "attempts", f"{task.attempts} {most}"
    yield "priority", str(task.priority)
    yield "created", both(task.created_at, now)
    if task.flow_id is not None:
        yield "flow", str(task.flow_id)
    if task.scheduled_at == NEVER:
        pass  # it is said below what for
    elif task.scheduled_at != task.created_at and not _moved(task):
        yield "scheduled", both(task.scheduled_at, now)
    elif is_pending(task) and task.scheduled_at > now:
        yield "due", both(task.scheduled_at, now)
    if task.next_retry_at is not None:
        yield "next retry", both(task.next_retry_at, now)
    if task.started_at is not None:
        yield "started", both(task.started_at, now)
    if task.completed_at is not None:
        ran = "" if task.run_ms is None else f", ran for {_run_time(task.run_ms)}"
        yield "finished", f"{both(task.completed_at, now)}{ran}"
    if task.cancel_requested_at is not None:
        yield "stop asked for", both(task.cancel_requested_at, now)
    if is_running(task):
        yield "worker", task.worker_id or "unknown"
        if task.locked_until is not None:
            yield "lease until", both(task.locked_until, now)
    elif task.last_worker_id is not None:
        yield "last worker", task.last_worker_id
    if task.timeout_seconds is not None:
        yield "timeout", span(task.timeout_seconds)
    if task.idempotency_key is not None:
        yield "key", task.idempotency_key
    if task.unique_key is not None:
        yield "unique", f"{task.unique_key}, until it is {task.unique_until}"
    if task.copy_of is not None:
        yield "copy of", str(task.copy_of)
    if task.tags:
        yield "tags", json.dumps(redact(task.tags), ensure_ascii=False)
    if task.retry_policy is not None:
        yield "retry policy", json.dumps(task.retry_policy, ensure_ascii=False)
    yield "version", str(task.version)


def _moved(task: Task) -> bool:
    """A retry or a snooze has put another time in place of the one it was submitted for: an attempt began before it."""
    begun = _time(task.history[0].get("started")) if task.history else None
    begun = begun or task.started_at
    return begun is not None and task.scheduled_at > begun


def _facts(facts: Iterator[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(clean(value)))
    return table


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(f"\n{title}", style="bold"), Padding(body, (0, 0, 0, 2), expand=False)]


def _links(links: Links) -> Table:
    table = Table.grid(padding=(0, 2))
    for each in links.tasks:
        style = STATE_STYLES.get(each.state, "reverse")
        table.add_row(Text(str(each.id)), Text(clean(each.name)), Text(clean(each.state), style=style))
    if links.total > len(links.tasks):
        table.add_row(Text(f"and {links.total - len(links.tasks):,} others", style="dim"))
    return table


def _json(value: Any) -> Text:
    return Text(clean(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True), lines=True))


def _timeline(history: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for entry in history:
        started, ended = _time(entry.get("started")), _time(entry.get("ended"))
        table.add_row(
            Text(clean(str(entry.get("attempt", "?")))),
            Text(absolute(ended) if ended is not None else "at an unknown time"),
            Text(_ran(entry, started, ended)),
            Text.assemble(
                _told(entry),
                styled(f"  on {entry.get('worker') or 'an unknown worker'}", "dim"),
            ),
        )
    return table


def _told(entry: dict[str, Any]) -> Text:
    snoozed = entry.get("snoozed")
    if isinstance(snoozed, int | float):
        return Text(f"snoozed for {span(snoozed)}: the attempt does not count")
    return styled(last_line(str(entry.get("error", ""))) or "no error was recorded", "red")


def _time(value: object) -> datetime | None:
    """Histories may have been edited by hand."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None


def _ran(entry: dict[str, Any], started: datetime | None, ended: datetime | None) -> str:
    run_ms = entry.get("run_ms")
    if isinstance(run_ms, int):
        return f"ran for {_run_time(run_ms)}"
    if started is None or ended is None:
        return ""
    return f"claimed for {_run_time(int((ended - started).total_seconds() * 1000))}"


def _run_time(ms: int) -> str:
    return f"{ms} ms" if 0 <= ms < 1000 else span(ms / 1000)
