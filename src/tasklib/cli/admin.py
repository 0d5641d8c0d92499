"""stats, types, workers, migrate, doctor."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import typer

from tasklib import __version__
from tasklib.cli.command import command
from tasklib.cli.controls import ALL, as_data, describe
from tasklib.cli.exits import Exit
from tasklib.cli.output import Cell, Column, styled
from tasklib.cli.session import Session
from tasklib.cli.times import absolute, relative, span
from tasklib.cli.watching import EVERY_SECONDS, Every, Watch, look_and_show
from tasklib.core.errors import InvalidInput
from tasklib.engine.backends import Backend
from tasklib.engine.diagnose import WorkerState, worker_state
from tasklib.engine.engine import Engine
from tasklib.installed import ADVICE, DISTRIBUTION, foreign_distribution
from tasklib.stores.values import Controls, Finding, NameStats, WorkerInfo

_COUNTS = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_LEVEL_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def register(app: typer.Typer) -> None:
    command(app, "stats", example="tasklib stats --watch")(stats)
    command(app, "types", example="tasklib types")(types)
    command(app, "workers", example="tasklib workers")(workers)
    command(app, "migrate", example="tasklib migrate --plan --database-url postgresql://localhost/shop")(migrate)
    command(app, "doctor", example="tasklib doctor --database-url postgresql://localhost/shop")(doctor)


class _Picture(NamedTuple):
    """The queue at one moment."""

    stats: Mapping[str, NameStats]
    workers: Sequence[WorkerInfo]
    controls: Mapping[str, Controls]
    dead_after: float

    def handlers(self, name: str) -> int:
        return sum(name in worker.names for worker in self.workers if _condition(worker, self.dead_after) == "alive")

    def remark(self, name: str) -> str:
        counts = self.stats.get(name, NameStats())
        remarks = []
        if name in self.controls and (said := describe(self.controls[name])) != describe(Controls()):
            remarks.append(said)
        if counts.pending + counts.waiting and not self.handlers(name):
            remarks.append("no live worker handles it")
        if counts.oldest_due_seconds is not None and counts.oldest_due_seconds >= 1:
            remarks.append(f"oldest due for {span(counts.oldest_due_seconds)}")
        return ", ".join(remarks)


async def _look(engine: Engine) -> _Picture:
    return _Picture(
        await engine.stats(), await engine.workers(), await engine.controls(), engine.config.dead_after_seconds
    )


def stats(session: Session, watch: Watch = False, every: Every = EVERY_SECONDS) -> None:
    """Count tasks by type and state, with limits, pauses, and types that no live worker handles."""
    look_and_show(session, _look, lambda picture: _show_stats(session, picture), watch=watch, every=every)


def _show_stats(session: Session, picture: _Picture) -> None:
    names = sorted({*picture.stats, *picture.controls} - {ALL})
    counts = {name: picture.stats.get(name, NameStats()) for name in names}
    total = {state: sum(getattr(each, state) for each in counts.values()) for state in _COUNTS}
    alive = sum(_condition(worker, picture.dead_after) == "alive" for worker in picture.workers)
    general = picture.controls.get(ALL, Controls())
    if session.out.as_json:
        types = [_type_data(picture, name, counts[name]) for name in names]
        session.out.data({"total": total, "types": types, "all": as_data(general), "live_workers": alive})
        return
    columns = [Column("NAME"), *(Column(state.upper(), right=True, whole=True) for state in _COUNTS), Column("REMARK")]
    rows = [[name, *(f"{getattr(counts[name], state):,}" for state in _COUNTS), picture.remark(name)] for name in names]
    rows.append(["all", *(f"{total[state]:,}" for state in _COUNTS), f"{alive} live worker{'' if alive == 1 else 's'}"])
    session.out.table(columns, rows)
    if general != Controls():
        session.out.line(f"For all types together: {describe(general)}.")


def _type_data(picture: _Picture, name: str, counts: NameStats) -> dict[str, Any]:
    return {
        "name": name,
        **asdict(counts),
        "controls": as_data(picture.controls.get(name, Controls(name=name))),
        "live_workers": picture.handlers(name),
    }


def types(session: Session) -> None:
    """List task types: their queues, how many live workers handle them, pauses and limits."""
    picture = session.run(_look)
    live = [worker for worker in picture.workers if _condition(worker, picture.dead_after) == "alive"]
    queues = {name: worker.queue_of(name) for worker in live for name in worker.names}
    names = sorted({*picture.stats, *picture.controls, *queues} - {ALL})
    if session.out.as_json:
        rows = [
            {
                "name": name,
                "queue": queues.get(name),
                "live_workers": picture.handlers(name),
                "controls": as_data(picture.controls.get(name, Controls(name=name))),
            }
            for name in names
        ]
        session.out.data({"types": rows})
        return
    if not names:
        session.out.note("No task types are known yet.")
        return
    columns = [Column("NAME"), Column("QUEUE"), Column("WORKERS", right=True, whole=True), Column("REMARK")]
    session.out.table(
        columns,
        [[name, queues.get(name, ""), str(picture.handlers(name)), picture.remark(name)] for name in names],
    )


def workers(session: Session) -> None:
    """List workers: which are alive, what they handle, how much they run."""

    async def look(engine: Engine) -> tuple[list[WorkerInfo], datetime]:
        return await engine.workers(), await (await engine.store()).now()

    found, now = session.run(look)
    dead_after = session.config.dead_after_seconds
    if session.out.as_json:
        session.out.data({"workers": [{**asdict(each), "condition": _condition(each, dead_after)} for each in found]})
        return
    if not found:
        session.out.note("No worker has been seen.")
        return
    columns = [
        Column("WORKER"),
        Column("HOST", optional=True),
        Column("PID", right=True, optional=True),
        Column("CONDITION", whole=True),
        Column("BUSY", right=True, whole=True),
        Column("STARTED", optional=True),
        Column("SEEN", whole=True),
        Column("QUEUES"),
        Column("HANDLES"),
    ]
    rows: list[list[Cell]] = []
    for each in found:
        condition = _condition(each, dead_after)
        rows.append(
            [
                each.id,
                each.hostname,
                str(each.pid),
                styled(condition, {"alive": "green", "stopping": "yellow", "stopped": "dim"}.get(condition, "red")),
                f"{each.running}/{each.concurrency}",
                absolute(each.started_at),
                relative(each.seen_at, now),
                ", ".join(sorted({each.queue_of(name) for name in each.names})),
                ", ".join(each.names),
            ]
        )
    session.out.table(columns, rows)


def migrate(
    session: Session,
    plan: Annotated[bool, typer.Option("--plan", help="Only say which steps would be taken.")] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL of all steps, for people who apply it themselves.")
    ] = False,
) -> None:
    """Bring the schema up to date. Safe to run twice, and twice at once.

    An empty database gets its schema by itself when it is first used; migrating is for upgrades.
    """
    if plan and sql:
        raise InvalidInput("give --plan or --sql, not both", field="sql")
    if sql:
        _print_sql(session, Engine(session.config).new_store().migration_sql())
        return

    async def work(store: Backend) -> tuple[list[str], int | None]:
        steps = await store.migrate(plan=plan)
        return steps, await store.schema_version()

    # A migration may take its time.
    steps, version = session.run_unopened(work, session.config.call_timeout_seconds)
    if session.out.as_json:
        session.out.data({"planned" if plan else "applied": steps, "version": version})
        return
    for step in steps:
        session.out.line(f"{'would apply' if plan else 'applied'} {step}")
    if not steps:
        session.out.line(f"The schema is up to date: version {version}.")


def _print_sql(session: Session, steps: Sequence[tuple[str, str]]) -> None:
    if session.out.as_json:
        session.out.data({"steps": [{"name": name, "sql": text} for name, text in steps]})
        return
    for name, text in steps:
        sys.stdout.write(f"-- {name}\n{text.strip()}\n\n")
    sys.stdout.flush()


def doctor(session: Session) -> None:
    """Check the database and the queue, and say what to do about what is wrong.

    Exits with 1 if it finds an error; warnings alone are no failure.
    """
    findings = [_installation(), *session.run_unopened(lambda store: store.check_up())]
    if session.out.as_json:
        session.out.data({"database_url": session.config.shown_url, "findings": [each._asdict() for each in findings]})
    else:
        session.out.line(f"Checked {session.config.shown_url}")
        for finding in findings:
            session.out.line(_finding(finding))
            if finding.advice and finding.level != "ok":
                session.out.line(f"           advice: {finding.advice}")
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(Exit.FAILED)


def _installation() -> Finding:
    subject, here = "installation", f"{DISTRIBUTION} {__version__}"
    foreign = foreign_distribution()
    if foreign is None:
        return Finding("ok", subject, here)
    return Finding("warning", subject, f"{here}, and beside it another project: {foreign}", ADVICE)


def _finding(finding: Finding) -> Cell:
    level = styled(f"{finding.level:<9}", _LEVEL_STYLES.get(finding.level, "reverse"))
    subject, message = styled(finding.subject, "bold"), styled(f": {finding.message}", "")
    return styled("  ", "").append_text(level).append_text(subject).append_text(message)


def _condition(worker: WorkerInfo, dead_after: float) -> str:
    state = worker_state(worker, dead_after)
    return {WorkerState.LIVE: "alive", WorkerState.LOST: "silent"}.get(state, state.value)
