"""pause, resume, limit, drain."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from tasklib.cli import completion
from tasklib.cli.command import command
from tasklib.cli.session import Session
from tasklib.core.errors import InvalidInput
from tasklib.core.options import check_name
from tasklib.stores.values import UNSET, ControlChange, Controls, Unset

ALL = ""
"""The name under which a control holds for all task types."""

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="The task type; all of them unless given.",
        show_default=False,
        autocompletion=completion.task_names,
    ),
]


def register(app: typer.Typer) -> None:
    command(app, "pause", example="tasklib pause send_email")(pause)
    command(app, "resume", example="tasklib resume send_email")(resume)
    command(app, "limit", example="tasklib limit send_email --rate 10 --concurrency 4")(limit)
    command(app, "drain", example="tasklib drain web-1-4711-a3f9c2e81b07")(drain)


def pause(session: Session, name: Name = None) -> None:
    """Stop the whole fleet from starting tasks, of one type or of all. What runs goes on."""
    _change(session, "pause", ControlChange(name=_checked(name), paused=True))


def resume(session: Session, name: Name = None) -> None:
    """Undo a pause. A pause of all types and a pause of one are two: each is undone by itself."""
    _change(session, "resume", ControlChange(name=_checked(name), paused=False))


def limit(
    session: Session,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The task type.", show_default=False, autocompletion=completion.task_names),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="For all types together, instead of one.")] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            "-r",
            min=0,
            max=1e6,
            metavar="N",
            help="Starts a second; 0 lifts the limit that the code sets.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", "-c", min=1, max=1_000_000, metavar="N", help="Running at once.", show_default=False
        ),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove both limits; the rate set by code holds again.")
    ] = False,
) -> None:
    """Limit how many tasks the whole fleet starts a second, or runs at once."""
    if (name is None) is not every:
        raise InvalidInput("name one task type, or say --all", field="name")
    if clear and (rate is not None or concurrency is not None):
        raise InvalidInput("--clear removes both limits: give it alone", field="clear")
    if not clear and rate is None and concurrency is None:
        raise InvalidInput("say --rate, --concurrency or --clear", field="rate")
    change = ControlChange(
        name=_checked(name),
        operator_rate=None if clear else UNSET if rate is None else rate,
        concurrency=None if clear else UNSET if concurrency is None else concurrency,
    )
    _change(session, "limit", change)


def drain(
    session: Session,
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="Its id, as `tasklib workers` prints it.")],
) -> None:
    """Ask a worker to take nothing more, to finish what it runs, and to end. `--processes` does not start it again."""
    auditor = session.auditor
    entry = auditor.entry("drain", detail={"worker": worker})
    found = session.run(lambda engine: engine.drain(worker, auditor.actor, audit=[entry]))
    if session.out.as_json:
        session.out.data({"id": found.id, "running": found.running, "drain": found.drain and found.drain._asdict()})
    else:
        session.out.line(f"{found.id}  finishes what it runs ({found.running}) and ends")


def describe(controls: Controls) -> str:
    """What holds for a type, in words."""
    words = [f"paused by {controls.paused_by}" if controls.paused_by else "paused"] if controls.paused else []
    if controls.rate:
        words.append(f"at most {controls.rate:g} started a second")
    if controls.concurrency is not None:
        words.append(f"at most {controls.concurrency} at once")
    return ", ".join(words) or "no limits"


def as_data(controls: Controls) -> dict[str, Any]:
    return {**asdict(controls), "name": controls.name or None}


def _checked(name: str | None) -> str:
    return ALL if name is None else check_name(name)


def _change(session: Session, action: str, change: ControlChange) -> None:
    auditor = session.auditor
    asked = {name: value for name, value in asdict(change).items() if not isinstance(value, Unset)}
    detail = {name: value for name, value in asked.items() if name not in ("name", "by", "at")}
    entry = auditor.entry(action, name=change.name or None, detail=detail)
    change = replace(change, by=auditor.actor)
    controls = session.run(lambda engine: engine.control(change, audit=[entry]), creates=True)
    if session.out.as_json:
        session.out.data(as_data(controls))
    else:
        session.out.line(f"{controls.name or 'all task types'}: {describe(controls)}")
