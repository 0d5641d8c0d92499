"""schedule list, show, add, pause, resume, trigger, remove: what is submitted again and again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from tasklib.cli.arguments import Payload, Tags, TaskArguments, TaskName, pairs
from tasklib.cli.command import command
from tasklib.cli.help import PlainGroup
from tasklib.cli.output import Column
from tasklib.cli.session import Session
from tasklib.cli.tasks import payload_of, whole_seconds
from tasklib.cli.times import absolute, both, duration
from tasklib.core.cron import Missed, Overlap, timing_of
from tasklib.core.options import SubmitOptions, check_name, check_options
from tasklib.core.schedules import Schedule
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.stores.values import AuditEntry

_PANEL = "Operations"
ACTOR = "command line"
TIMES_SHOWN = 5

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        name="schedule",
        cls=PlainGroup,
        help="Look after tasks that are submitted again and again.",
        no_args_is_help=True,
    )
    add_example = "tasklib schedule add weekly report customer:=42 --cron '0 8 * * 1' --timezone America/New_York"
    command(group, "list", panel=_PANEL, example="tasklib schedule list")(list_schedules)
    command(group, "show", panel=_PANEL, example="tasklib schedule show weekly")(show)
    command(group, "add", panel=_PANEL, example=add_example)(add)
    command(group, "pause", panel=_PANEL, example="tasklib schedule pause weekly")(pause)
    command(group, "resume", panel=_PANEL, example="tasklib schedule resume weekly")(resume)
    command(group, "clear", panel=_PANEL, example="tasklib schedule clear weekly")(clear)
    command(group, "trigger", panel=_PANEL, example="tasklib schedule trigger weekly")(trigger)
    command(group, "remove", panel=_PANEL, example="tasklib schedule remove weekly")(remove)
    app.add_typer(group)


def list_schedules(session: Session) -> None:
    """List the schedules, and when each is due next."""

    async def work(engine: Engine) -> tuple[list[Schedule], datetime, set[str]]:
        found = await engine.schedules.all()
        return found, await (await engine.store()).now(), await engine.schedules.failing(found)

    found, now, failing = session.run(work)
    if session.out.as_json:
        session.out.data([_data(each, now, session, fails=each.name in failing) for each in found])
        return
    columns = [
        Column("NAME"),
        Column("TYPE", optional=True),
        Column("NEXT", whole=True),
        Column("STATE"),
        Column("TIMES"),
    ]
    rows = [
        [
            each.name,
            "" if each.definition is None else each.definition.task.name,
            "" if each.next_at is None else absolute(each.next_at),
            _state(each, now, fails=each.name in failing),
            "" if each.definition is None else each.definition.timing.words,
        ]
        for each in found
    ]
    session.out.table(columns, rows)


def show(session: Session, name: Name) -> None:
    """Show one schedule: what it submits, its next times, its latest runs."""

    async def work(engine: Engine) -> tuple[Schedule, datetime, list[datetime], dict[UUID, str], bool]:
        schedule = await engine.schedules.get(name)
        fails = bool(await engine.schedules.failing([schedule]))
        store = await engine.store()
        tasks = await store.get([run.task_id for run in schedule.runs])
        states = {task.id: task.state for task in tasks if task is not None}
        return schedule, await store.now(), await engine.schedules.next_times(name, TIMES_SHOWN), states, fails

    schedule, now, times, states, fails = session.run(work)
    runs = [{**run._asdict(), "state": states.get(run.task_id)} for run in schedule.runs]
    about = _data(schedule, now, session, fails=fails)
    if session.out.as_json:
        session.out.data({**about, "next_times": times, "runs": runs})
        return
    lines = {
        "name": schedule.name,
        "times": about["words"],
        "task": about["type"],
        "payload": json.dumps(about["payload"], ensure_ascii=False),
        "state": about["state"],
        "fired": f"{schedule.fired}, missed {schedule.missed}",
    }
    for title, text in lines.items():
        session.out.line(f"{title:<8} {text}")
    for at in times:
        session.out.line(f"{'next':<8} {both(at, now)}")
    for run in reversed(schedule.runs):
        became = states.get(run.task_id, "deleted") if run.created else "left out, an earlier one was not over"
        session.out.line(f"{'run':<8} {absolute(run.slot)}  {run.task_id}  {became}")


def add(
    session: Session,
    name: Name,
    task: TaskName,
    arguments: TaskArguments = None,
    payload: Payload = None,
    cron: Annotated[
        str | None,
        typer.Option(metavar="FIELDS", help="Minute, hour, day of month, month, day of week; or @daily and the like."),
    ] = None,
    every: Annotated[
        float | None, typer.Option(parser=duration, metavar="DURATION", help="Instead: 90s, 15m, 6h.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Of --cron: Europe/Berlin; else UTC.")] = None,
    missed: Annotated[Missed | None, typer.Option(help="Times that nobody was up for.", show_default=False)] = None,
    late: Annotated[
        float | None, typer.Option(parser=duration, metavar="DURATION", help="Later than this a time is not fired.")
    ] = None,
    overlap: Annotated[
        Overlap | None, typer.Option(help="With an earlier task that is not over.", show_default=False)
    ] = None,
    jitter: Annotated[
        float | None, typer.Option(parser=duration, metavar="DURATION", help="Spread the starts over this time.")
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="Higher runs first.", show_default=False)] = None,
    max_retries: Annotated[
        int | None, typer.Option(metavar="N", help="Retries after the first attempt; -1 is without limit.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(parser=duration, metavar="DURATION", help="How long an attempt may take.")
    ] = None,
    tag: Tags = None,
) -> None:
    """Add a schedule, or change one. It wins over what the code says, until `clear`."""
    given = {"cron": cron, "every": every, "timezone": timezone, "late": late, "jitter": jitter}
    given |= {"missed": missed, "overlap": overlap}
    timing = timing_of(given)
    options = check_options(
        SubmitOptions(
            max_retries=max_retries,
            timeout_seconds=None if timeout is None else whole_seconds(timeout),
            priority=priority,
            tags=pairs(tag, "--tag") if tag else None,
        )
    )
    check_name(name)
    call = Call(task, payload_of(payload, arguments), options)

    async def work(engine: Engine) -> tuple[Schedule, datetime]:
        definition = await engine.schedules.define(call, timing)
        schedule = await engine.schedules.put(name, definition, operator=True, audit=_audit("set", name))
        return schedule, await (await engine.store()).now()

    _told(session, *session.run(work, creates=True))


def pause(session: Session, name: Name) -> None:
    """Stop a schedule from firing. Its tasks go on."""
    _change(session, lambda engine: engine.schedules.pause(name, audit=_audit("pause", name)))


def resume(session: Session, name: Name) -> None:
    """Undo a pause. Times that passed meanwhile are not made up for."""
    _change(session, lambda engine: engine.schedules.resume(name, audit=_audit("resume", name)))


def clear(session: Session, name: Name) -> None:
    """Take back an operator's edit: what the code says holds again."""
    _change(session, lambda engine: engine.schedules.clear(name, audit=_audit("clear", name)))


def trigger(session: Session, name: Name) -> None:
    """Submit a task of a schedule now, and print its id."""
    task_id = session.run(lambda engine: engine.schedules.trigger(name, audit=_audit("trigger", name)))
    if session.out.as_json:
        session.out.data({"id": task_id})
    else:
        session.out.line(str(task_id))


def remove(session: Session, name: Name) -> None:
    """Delete a schedule. Its tasks stay. One that workers have in their code cannot be removed: pause it."""
    session.run(lambda engine: engine.schedules.delete(name, audit=_audit("delete", name)))
    if session.out.as_json:
        session.out.data({"name": name, "removed": True})
    else:
        session.out.line(f"{name}  removed")


def _change(session: Session, change: Callable[[Engine], Awaitable[Schedule]]) -> None:
    async def work(engine: Engine) -> tuple[Schedule, datetime]:
        return await change(engine), await (await engine.store()).now()

    _told(session, *session.run(work))


def _told(session: Session, schedule: Schedule, now: datetime) -> None:
    if session.out.as_json:
        session.out.data(_data(schedule, now, session))
        return
    due = "" if schedule.next_at is None else f", next {both(schedule.next_at, now)}"
    session.out.line(f"{schedule.name}: {_state(schedule, now)}{due}")


def _state(schedule: Schedule, now: datetime, *, fails: bool = False) -> str:
    """`fails`: its latest run that ended has failed."""
    if schedule.paused:
        return "paused"
    if schedule.is_orphaned(now):
        return "orphaned"
    if fails:
        return "failing"
    return "edited" if schedule.operator is not None and schedule.declared is not None else "active"


def _data(schedule: Schedule, now: datetime, session: Session, *, fails: bool = False) -> dict[str, Any]:
    definition = schedule.definition
    task = None if definition is None else definition.task
    timing = {} if definition is None else definition.timing.as_json()
    return {
        "name": schedule.name,
        "type": None if task is None else task.name,
        "payload": None if task is None else session.config.redact(json.loads(task.kwargs)),
        "words": None if definition is None else definition.timing.words,
        **timing,
        "state": _state(schedule, now, fails=fails),
        "next_at": schedule.next_at,
        "fired": schedule.fired,
        "missed_total": schedule.missed,
    }


def _audit(action: str, name: str) -> list[AuditEntry]:
    return [AuditEntry(actor=ACTOR, action=f"schedule-{action}", detail=json.dumps({"schedule": name}))]
