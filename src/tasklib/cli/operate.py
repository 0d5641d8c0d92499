"""retry, run, cancel, revive, delete, cleanup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Protocol
from uuid import UUID, uuid4

import typer

from tasklib.cli import record
from tasklib.cli.arguments import FinishedState, Names, States, Tags, TaskIds, Yes, chosen
from tasklib.cli.command import command
from tasklib.cli.exits import Exit, code_of
from tasklib.cli.output import Printer
from tasklib.cli.progress import progress_bar
from tasklib.cli.session import Session
from tasklib.cli.times import duration, span
from tasklib.core.checks import check_delay
from tasklib.core.errors import InvalidInput, TaskConflict, TaskNotFound
from tasklib.core.task import Task, TaskState
from tasklib.engine import bulk
from tasklib.engine.bulk import Action
from tasklib.engine.engine import Engine
from tasklib.stores.values import Audit, Filter

_BATCH = 1000
_WHICH = {
    Action.RETRY: "that failed",
    Action.CANCEL: "that wait or run",
    Action.DELETE: "that are finished, for good",
    Action.REVIVE: "that were cancelled",
    Action.RUN_NOW: "that wait for their time or for a retry",
}
_DONE = {
    Action.RETRY: "queued again",
    Action.CANCEL: "cancelled or asked to stop",
    Action.DELETE: "deleted",
    Action.REVIVE: "revived",
    Action.RUN_NOW: "made due now",
}


class _Act(Protocol):
    def __call__(self, engine: Engine, task_id: UUID, /, *, audit: Audit[Task]) -> Awaitable[Task | None]: ...


_Word = Callable[[Task | None], str]
_ONE: dict[Action, tuple[_Act, _Word]] = {
    Action.RETRY: (Engine.retry, lambda task: "will run again"),
    Action.CANCEL: (
        Engine.cancel,
        lambda task: "cancelled" if task is None or task.state == TaskState.CANCELLED else "asked to stop",
    ),
    Action.DELETE: (Engine.delete, lambda task: "deleted"),
    Action.REVIVE: (Engine.revive, lambda task: "waits again"),
    Action.RUN_NOW: (Engine.run_now, lambda task: "is due now"),
}
"""What is done to one task, and what is said then."""
All = Annotated[bool, typer.Option("--all", help="All tasks that it can be done to.")]


def register(app: typer.Typer) -> None:
    command(app, "retry", example="tasklib retry --name send_email")(retry)
    command(app, "run", example="tasklib run 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10")(run)
    command(app, "cancel", example="tasklib cancel 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10")(cancel)
    command(app, "revive", example="tasklib revive --name send_email")(revive)
    command(app, "delete", example="tasklib delete --state cancelled --tag customer=ada --yes")(delete)
    command(app, "cleanup", example="tasklib cleanup --older-than 30d --state completed --dry-run")(cleanup)


def retry(
    session: Session,
    task_ids: TaskIds = None,
    state: States = None,
    name: Names = None,
    tag: Tags = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Run failed tasks again, now, with all their attempts. Their history is kept.

    Without ids: all that match, after asking, or with --yes.
    """
    _act(session, Action.RETRY, task_ids, chosen(state, name, tag), every=every, yes=yes)


def run(
    session: Session,
    task_ids: TaskIds = None,
    state: States = None,
    name: Names = None,
    tag: Tags = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Run tasks now that wait for their time or for a retry. Their attempts are kept; what is due already stays.

    Without ids: all that match, after asking, or with --yes.
    """
    _act(session, Action.RUN_NOW, task_ids, chosen(state, name, tag), every=every, yes=yes)


def revive(
    session: Session,
    task_ids: TaskIds = None,
    name: Names = None,
    tag: Tags = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Undo a cancel: the tasks wait again, with all their attempts, due when they were due.

    Without ids: all that match, after asking, or with --yes.
    """
    _act(session, Action.REVIVE, task_ids, chosen(None, name, tag), every=every, yes=yes)


def cancel(
    session: Session,
    task_ids: TaskIds = None,
    state: States = None,
    name: Names = None,
    tag: Tags = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Cancel waiting tasks; running ones are asked to stop.

    Without ids: all that match, after asking, or with --yes.
    """
    _act(session, Action.CANCEL, task_ids, chosen(state, name, tag), every=every, yes=yes)


def delete(
    session: Session,
    task_ids: TaskIds = None,
    state: States = None,
    name: Names = None,
    tag: Tags = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Delete finished tasks for good: by their ids, or all that match. Asks first, or needs --yes."""
    _act(session, Action.DELETE, task_ids, chosen(state, name, tag), every=every, yes=yes)


def cleanup(
    session: Session,
    older_than: Annotated[
        float,
        typer.Option(
            parser=duration, metavar="DURATION", help="Finished longer ago than this: 12h, 30d.", show_default=False
        ),
    ],
    state: Annotated[
        list[FinishedState] | None,
        typer.Option(
            "--state",
            "-s",
            metavar="STATE",
            help="Only these: completed, failed (for good) or cancelled; all three unless given.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
    yes: Yes = False,
) -> None:
    """Delete tasks that finished long ago, in batches. Asks first, or needs --yes."""
    states = list(dict.fromkeys(state or FinishedState))
    which = [str(each.value) for each in states]
    check_delay(older_than, "older_than")
    found = session.run(lambda engine: engine.prune(which, older_than, _BATCH, dry_run=True))
    listed = " and ".join(filter(None, (", ".join(which[:-1]), which[-1])))
    what = f"{listed} tasks that finished more than {span(older_than)} ago"
    if dry_run:
        _report_cleanup(session.out, found=found, deleted=0, text=f"{found:,} {what} would be deleted.")
        return
    if found:
        session.confirm(f"delete {found:,} {what}", yes=yes)
    audit = session.auditor.of_clean_up(uuid4(), {"olderThanSeconds": older_than, "status": which})
    deleted = session.run(lambda engine: _prune(engine, which, older_than, found, session.out, audit)) if found else 0
    _report_cleanup(session.out, found=found, deleted=deleted, text=f"{deleted:,} {what} were deleted.")


async def _prune(
    engine: Engine, states: Sequence[str], older_than: float, found: int, out: Printer, audit: Audit[str]
) -> int:
    deleted = 0
    with progress_bar(out, "Deleting") as bar:
        line = bar.add_task("", total=found)
        while (count := await engine.prune(states, older_than, _BATCH, audit=audit)) > 0:
            deleted += count
            bar.update(line, completed=deleted, total=max(found, deleted))
    return deleted


def _act(
    session: Session, action: Action, task_ids: Sequence[UUID] | None, where: Filter, *, every: bool, yes: bool
) -> None:
    """On the tasks with these ids, or on all that match."""
    ways = [bool(task_ids), where != Filter(), every]
    if sum(ways) != 1:
        raise InvalidInput("choose tasks one way: by their ids, by --state, --name and --tag, or --all", field="ID")
    if not task_ids:
        act_on_matching(session, action, where, yes=yes)
        return
    if action is Action.DELETE:
        session.confirm(f"delete {_tasks(len(task_ids))} for good", yes=yes)
    _each(session, task_ids, action, *_ONE[action])


def act_on_matching(session: Session, action: Action, where: Filter, *, yes: bool) -> None:
    """All that match and that it can be done to, counted first."""
    found = session.run(lambda engine: bulk.count(engine, action, where))
    done = 0
    if found.value or found.capped:
        verb, more = action.replace("-", " "), "or more " if found.capped else ""
        session.confirm(f"{verb} {_tasks(found.value)} {more}{_WHICH[action]}", yes=yes)
        audit = session.auditor.of_bulk(action, uuid4(), _asked(where))
        done = session.run(lambda engine: _perform(engine, action, where, found.value, session.out, audit))
    if session.out.as_json:
        session.out.data({"found": found.value, "done": done})
    else:
        session.out.line(f"{_tasks(done)} {'was' if done == 1 else 'were'} {_DONE[action]}.")


def _asked(where: Filter) -> dict[str, Any]:
    """The filter, as the audit trail tells it."""
    told: dict[str, Any] = {"type": where.names, "status": where.states, "finished": where.terminal, "tags": where.tags}
    told["flow"] = None if where.flow_id is None else str(where.flow_id)
    return {name: value for name, value in told.items() if value is not None}


async def _perform(engine: Engine, action: Action, where: Filter, found: int, out: Printer, audit: Audit[Task]) -> int:
    done = 0
    with progress_bar(out, action.capitalize().replace("-", " ")) as bar:
        line = bar.add_task("", total=found)
        async for batch in bulk.perform(engine, action, where, audit=audit):
            done += len(batch.tasks)
            bar.update(line, completed=done, total=max(found, done))
    return done


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"


def _report_cleanup(out: Printer, *, found: int, deleted: int, text: str) -> None:
    if out.as_json:
        out.data({"found": found, "deleted": deleted})
    else:
        out.line(text)


def _each(
    session: Session,
    task_ids: Sequence[UUID],
    action: str,
    act: _Act,
    word: _Word,
) -> None:
    """Acts on one after the other; a task that refuses does not keep the others from it."""
    audit = session.auditor.of_tasks(action)

    async def work(engine: Engine) -> list[tuple[UUID, Task | TaskNotFound | TaskConflict | None]]:
        results: list[tuple[UUID, Task | TaskNotFound | TaskConflict | None]] = []
        for task_id in dict.fromkeys(task_ids):
            try:
                results.append((task_id, await act(engine, task_id, audit=audit)))
            except (TaskNotFound, TaskConflict) as error:
                results.append((task_id, error))
        return results

    results = session.run(work)
    refused = [error for _, error in results if isinstance(error, (TaskNotFound, TaskConflict))]
    done = [(task_id, task) for task_id, task in results if not isinstance(task, (TaskNotFound, TaskConflict))]
    if session.out.as_json:
        session.out.data(
            {
                "done": [
                    {"id": task_id} if task is None else record.record(task, session.config.redact)
                    for task_id, task in done
                ],
                "refused": [{"id": each.task_id, "code": each.code, "message": str(each)} for each in refused],
            }
        )
    else:
        for task_id, task in done:
            session.out.line(f"{task_id}  {word(task)}")
        for error in refused:
            session.out.error(str(error), error.code, code_of(error))
    if refused:
        raise typer.Exit(Exit.FAILED)
