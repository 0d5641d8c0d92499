"""submit, copy-task, list, show, wait."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, cast
from uuid import UUID

import typer
from rich.text import Text

from tasklib.cli import record
from tasklib.cli.arguments import (
    PAIR_HELP,
    Names,
    Payload,
    States,
    Tags,
    TaskArguments,
    TaskId,
    TaskName,
    chosen,
    pairs,
    task_id,
)
from tasklib.cli.command import command
from tasklib.cli.detail import detail
from tasklib.cli.exits import Exit
from tasklib.cli.loading import load
from tasklib.cli.session import Session
from tasklib.cli.times import absolute, duration, instant
from tasklib.cli.watching import EVERY_SECONDS, Every, Watch, look_and_show
from tasklib.core import codec
from tasklib.core.checks import check_delay
from tasklib.core.csv_text import csv_line
from tasklib.core.errors import InvalidInput, InvalidOption
from tasklib.core.options import SubmitOptions, check_options
from tasklib.core.registry import TaskType, default_registry
from tasklib.core.task import Task, has_result, is_terminal, last_line
from tasklib.core.unique import Unique
from tasklib.engine.engine import Engine
from tasklib.engine.linked import Linked, linked
from tasklib.engine.repeating import SAME, repeat
from tasklib.engine.submission import Call, Submitted, check
from tasklib.stores.values import SEARCHED_TASKS, Filter, Page

_STDIN = "-"
_FOLLOW_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    command(
        app,
        "submit",
        example="tasklib submit send_email to=ada@example.com copies:=2 --delay 5m --key order-17",
    )(submit)
    example = "tasklib copy-task 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10 to=bob@example.com"
    command(app, "copy-task", example=example)(copy_task)
    command(app, "list", example="tasklib list --state failed --name send_email --limit 20")(list_tasks)
    command(app, "show", example="tasklib show 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10 --follow")(show)
    command(app, "wait", example="tasklib wait 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10 --timeout 5m")(wait)


def submit(
    session: Session,
    name: TaskName,
    arguments: TaskArguments = None,
    payload: Payload = None,
    delay: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="DURATION", help="Not before this time has passed: 90s, 5m, 2h."),
    ] = None,
    run_at: Annotated[
        datetime | None,
        typer.Option(parser=instant, metavar="TIME", help="Not before this time: 2030-12-31T08:00:00Z."),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="Higher runs first; 0 unless given.", show_default=False)
    ] = None,
    max_retries: Annotated[
        int | None,
        typer.Option(metavar="N", help="Retries after the first attempt; -1 is without limit.", show_default=False),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="DURATION", help="How long an attempt may take, in whole seconds."),
    ] = None,
    tag: Tags = None,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", metavar="TEXT", help="Idempotency key: submits with the same key make one task."),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Wait for this task; may be given several times.", show_default=False),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="With --after: once all have success (the default), or at their end."),
    ] = None,
    unique: Annotated[
        str | None, typer.Option(metavar="TEXT", help="One task of its type for this key; later submits join it.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="With --unique: until it has started or finished (which is the default)."),
    ] = None,
    replace: Annotated[
        bool, typer.Option(help="With --unique: what has not started takes over these arguments.")
    ] = False,
    debounce_for: Annotated[
        float | None,
        typer.Option(
            "--debounce",
            parser=duration,
            metavar="DURATION",
            help="With --unique: start so long after the latest.",
        ),
    ] = None,
    at_most: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="DURATION", help="With --debounce: not later than this after the first."),
    ] = None,
    throttle_for: Annotated[
        float | None,
        typer.Option("--throttle", parser=duration, metavar="DURATION", help="With --unique: one in this time."),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(
            "--module",
            "-m",
            metavar="MODULE",
            help="Where the task is defined: applies its options, checks the arguments.",
        ),
    ] = None,
) -> None:
    """Queue a task and print its id.

    The name may be one that no worker knows yet: the task then waits for one that does.
    """
    value = payload_of(payload, arguments)
    options = check_options(
        SubmitOptions(
            delay_seconds=delay,
            run_at=run_at,
            max_retries=max_retries,
            timeout_seconds=None if timeout is None else whole_seconds(timeout),
            priority=priority,
            tags=pairs(tag, "--tag") if tag else None,
            idempotency_key=key,
            after=after,
            on=cast(Any, on),
            unique=_unique(unique, until, replace, debounce_for, at_most, throttle_for),
        )
    )
    task_type = None
    if module:
        load(module)
        session.config = session.adopt_app_config()
        task_type = _defined(name)
    call = Call(name, value, options, task_type)
    check(call, session.config)  # before a queue is made for it
    submitted = session.run(lambda engine: engine.submit(call), creates=True)
    if not submitted.validated:
        session.out.note(
            f"The arguments were not checked: no worker has told what {name} takes; --module says where it is defined."
        )
    if session.out.as_json:
        told = {name: getattr(submitted, name) for name in ("id", "created", "replaced", "validated")}
        session.out.data(told)
        return
    session.out.line(str(submitted.id))
    if not submitted.created:
        taken = "; it has taken over these arguments" if submitted.replaced else ""
        session.out.note(f"The key {unique or key} was known: this is the task it stands for{taken}.")
    session.out.hint(f"See how it fares:  tasklib show {submitted.id}")


def copy_task(
    session: Session,
    task_id: TaskId,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help=f"Arguments to change: {PAIR_HELP}.", show_default=False),
    ] = None,
    payload: Payload = None,
    module: Annotated[
        list[str] | None,
        typer.Option("--module", "-m", metavar="MODULE", help="Where the task is defined: checks the arguments."),
    ] = None,
) -> None:
    """Run a finished task again: a copy under a new id, due now, with the same options. Prints the new id."""
    value: Any = SAME if payload is None and not arguments else payload_of(payload, arguments)
    if module:
        load(module)
        session.config = session.adopt_app_config()

    async def work(engine: Engine) -> Submitted:
        given = value
        if arguments:
            kept = (await engine.get_or_raise(task_id)).kwargs
            given = {**kept, **value} if isinstance(kept, dict) else value
        return await repeat(engine, task_id, payload=given, registry=default_registry, auditor=session.auditor)

    made = session.run(work)
    if session.out.as_json:
        session.out.data({"id": made.id, "copy_of": task_id, "validated": made.validated})
    else:
        session.out.line(str(made.id))


def list_tasks(
    session: Session,
    state: States = None,
    name: Names = None,
    tag: Tags = None,
    flow: Annotated[
        UUID | None, typer.Option(parser=task_id, metavar="ID", help="Only tasks of this flow.", show_default=False)
    ] = None,
    ended: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="DURATION", help="Ended in the last 15m, 1h, 7d.", show_default=False),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            "-q",
            metavar="WORD",
            help="In the name, idempotency key, error or a value of tags or payload; several must all be there.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=10_000, metavar="N", help="At most so many.")] = 50,
    cursor: Annotated[
        UUID | None, typer.Option(parser=task_id, metavar="ID", help="Go on behind this task, as the last list said.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV, for a spreadsheet.")] = False,
    watch: Watch = False,
    every: Every = EVERY_SECONDS,
) -> None:
    """List tasks, newest first.

    A failed task that still has attempts left is shown as waiting; --state failed finds it too, --state waiting nothing
    else. A search by word, by tag or by --ended looks at up to 20,000 of the tasks that meet the other conditions;
    --cursor goes on.
    """
    if as_csv and (watch or session.out.as_json):
        raise InvalidOption("--csv is for one list: without --watch and --json", field="csv")
    where = replace(chosen(state, name, tag), words=search or None, flow_id=flow)
    if ended is not None:
        check_delay(ended, "ended")

    async def look(engine: Engine) -> tuple[Page, datetime]:
        now = await (await engine.store()).now()
        since = None if ended is None else now - timedelta(seconds=ended)
        asked = replace(where, ended_after=since, secret_keys=session.config.secret_keys)
        return await engine.page(asked, limit=limit, cursor=cursor), now

    def tell(found: tuple[Page, datetime]) -> None:
        if as_csv:
            _write_csv(session, found[0])
            return
        _show_page(session, *found, filtered=where != Filter() or ended is not None or cursor is not None)

    look_and_show(session, look, tell, watch=watch, every=every)


def _write_csv(session: Session, page: Page) -> None:
    session.out.text(csv_line(record.CSV_COLUMNS))
    for task in page.tasks:
        session.out.text(csv_line(record.csv_row(task, session.config.redact)))
    if page.next_cursor is not None:
        session.out.note(f"There are more: add --cursor {page.next_cursor}")


def _show_page(session: Session, page: Page, now: datetime, *, filtered: bool) -> None:
    if session.out.as_json:
        session.out.data(
            {
                "tasks": [record.record(task, session.config.redact) for task in page.tasks],
                "next_cursor": page.next_cursor,
            }
        )
    elif page.tasks:
        session.out.table(record.COLUMNS, [record.row(task, now) for task in page.tasks])
        if page.next_cursor is not None:
            session.out.hint(f"There are more:  add --cursor {page.next_cursor}")
    elif page.next_cursor is not None:
        looked = f"None of up to {SEARCHED_TASKS:,} tasks matches."
        session.out.note(f"{looked} For older ones add --cursor {page.next_cursor}")
    else:
        session.out.note("No tasks match." if filtered else "There are no tasks.")


def show(
    session: Session,
    task_id: TaskId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Tell each change until it is finished, then show it.")
    ] = False,
) -> None:
    """Show everything about one task: payload, result, what it waits for, each failed attempt, the traceback.

    With --follow and --json each change is a line of its own.
    """

    async def look(engine: Engine) -> tuple[Task, datetime, Linked]:
        store, known = await engine.store(), None
        while True:
            task, now = await engine.get_or_raise(task_id), await store.now()
            if not follow or is_terminal(task):
                return task, now, await linked(engine, task)
            if task.version != known:
                known = task.version
                _tell_change(session, task, now)
            await asyncio.sleep(_FOLLOW_SECONDS)

    task, now, links = session.run(look)
    if session.out.as_json:
        session.out.data({**record.record(task, session.config.redact), **record.links(links)})
    else:
        session.out.show(detail(task, now, session.config.redact, links))


def _tell_change(session: Session, task: Task, now: datetime) -> None:
    if session.out.as_json:
        session.out.data(record.record(task, session.config.redact))
    else:
        remark = session.config.redact(record.remark(task, now))
        words = (absolute(now), record.state_text(task), f"attempts {record.attempts(task)}", remark)
        session.out.line(Text("  ").join(Text(word) if isinstance(word, str) else word for word in words if word))


def wait(
    session: Session,
    task_id: TaskId,
    timeout: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="Give up after so long; without it never.", show_default=False
        ),
    ] = None,
) -> None:
    """Wait until a task is finished, and print its result as JSON.

    Exits with 1 if it failed or was cancelled, or if the time was up.
    """
    task = session.run(lambda engine: engine.wait(task_id, timeout))
    if session.out.as_json:
        session.out.data(record.record(task, session.config.redact))
    elif has_result(task):
        session.out.line(json.dumps((session.config.redact(task.result) or {}).get("value"), ensure_ascii=False))
    if has_result(task):
        return
    if not session.out.as_json:
        reason = last_line(task.error) if task.error is not None else "no error was recorded"
        session.out.error(f"task {task.id} ({task.name}) is {task.state}: {reason}", f"task_{task.state}", Exit.FAILED)
    raise typer.Exit(Exit.FAILED)


def _unique(
    key: str | None,
    until: str | None,
    replace: bool,
    debounce_for: float | None,
    at_most: float | None,
    throttle_for: float | None,
) -> Unique | None:
    """What is said beside --debounce and --throttle must fit what they stand for."""
    if key is None:
        if replace or any(each is not None for each in (until, debounce_for, at_most, throttle_for)):
            raise typer.BadParameter("--until, --replace, --debounce, --at-most and --throttle take --unique")
        return None
    if throttle_for is not None and debounce_for is not None:
        raise typer.BadParameter("--debounce or --throttle, not both")
    usual = "elapsed" if throttle_for is not None else "started" if debounce_for is not None else "finished"
    return Unique(
        key,
        until=cast(Any, usual if until is None else until),
        conflict="replace" if replace or debounce_for is not None else "join",
        seconds=debounce_for if throttle_for is None else throttle_for,
        at_most=at_most,
    )


def payload_of(text: str | None, words: list[str] | None) -> Any:
    if text is None:
        return pairs(words or [], "argument")
    if words:
        raise InvalidInput("give --payload or key=value arguments, not both", field="payload")
    if text == _STDIN:
        text = typer.get_text_stream("stdin").read()
    return codec.decode(text, field="payload")


def whole_seconds(timeout: float) -> int:
    if not timeout.is_integer():  # nor is one beyond all numbers
        raise InvalidOption(f"timeout_seconds must be whole seconds, got {timeout:g}", field="timeout_seconds")
    return int(timeout)


def _defined(name: str) -> TaskType:
    task_type = default_registry.get(name)
    if task_type is None:
        known = ", ".join(sorted(default_registry.names())) or "none"
        raise InvalidInput(f"no task is called {name!r:.60} there; known are: {known}", field="name")
    return task_type
