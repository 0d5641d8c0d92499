"""retry, cancel, delete, cleanup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from uuid import UUID

import typer

from tasklib.cli import record
from tasklib.cli.arguments import TaskIds, Yes
from tasklib.cli.command import command
from tasklib.cli.exits import Exit, code_of
from tasklib.cli.output import Printer
from tasklib.cli.progress import progress_bar
from tasklib.cli.session import Session
from tasklib.cli.times import duration, span
from tasklib.core.errors import InvalidOption, TaskConflict, TaskNotFound
from tasklib.core.options import check_delay
from tasklib.core.task import Task, TaskState
from tasklib.engine.engine import Engine

_PANEL = "Tasks"
_BATCH = 1000
_FINISHED = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)


def register(app: typer.Typer) -> None:
    command(app, "retry", panel=_PANEL, example="tasklib retry 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10")(retry)
    command(app, "cancel", panel=_PANEL, example="tasklib cancel 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10")(cancel)
    command(app, "delete", panel=_PANEL, example="tasklib delete 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10 --yes")(delete)
    command(app, "cleanup", panel=_PANEL, example="tasklib cleanup --older-than 30d --state completed --dry-run")(
        cleanup
    )


def retry(session: Session, task_ids: TaskIds) -> None:
    """Run failed tasks again, now, with all their attempts. Their history is kept."""
    _each(session, task_ids, lambda engine, task_id: engine.retry(task_id), lambda task: "will run again")


def cancel(session: Session, task_ids: TaskIds) -> None:
    """Cancel waiting tasks; running ones are asked to stop."""

    def told(task: Task | None) -> str:
        return "cancelled" if task is None or task.state == TaskState.CANCELLED else "asked to stop"

    _each(session, task_ids, lambda engine, task_id: engine.cancel(task_id), told)


def delete(session: Session, task_ids: TaskIds, yes: Yes = False) -> None:
    """Delete finished tasks for good. Asks first, or needs --yes."""
    count = "1 task" if len(task_ids) == 1 else f"{len(task_ids)} tasks"
    session.confirm(f"delete {count} for good", yes=yes)
    _each(session, task_ids, lambda engine, task_id: engine.delete(task_id), lambda task: "deleted")


def cleanup(
    session: Session,
    older_than: Annotated[
        float,
        typer.Option(
            parser=duration, metavar="DURATION", help="Finished longer ago than this: 12h, 30d.", show_default=False
        ),
    ],
    state: Annotated[
        list[TaskState] | None,
        typer.Option(
            help="Only these: completed, failed (for good) or cancelled; all three unless given.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
    yes: Yes = False,
) -> None:
    """Delete tasks that finished long ago, in batches. Asks first, or needs --yes."""
    states = list(dict.fromkeys(state or _FINISHED))
    wrong = [each.value for each in states if each not in _FINISHED]
    if wrong:
        raise InvalidOption(
            f"--state {wrong[0]}: only completed, failed and cancelled tasks can be cleaned up", field="state"
        )
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
    deleted = session.run(lambda engine: _prune(engine, which, older_than, found, session.out)) if found else 0
    _report_cleanup(session.out, found=found, deleted=deleted, text=f"{deleted:,} {what} were deleted.")


async def _prune(engine: Engine, states: Sequence[str], older_than: float, found: int, out: Printer) -> int:
    deleted = 0
    with progress_bar(out, "Deleting") as bar:
        line = bar.add_task("", total=found)
        while (count := await engine.prune(states, older_than, _BATCH)) > 0:
            deleted += count
            bar.update(line, completed=deleted, total=max(found, deleted))
    return deleted


def _report_cleanup(out: Printer, *, found: int, deleted: int, text: str) -> None:
    if out.as_json:
        out.data({"found": found, "deleted": deleted})
    else:
        out.line(text)


def _each(
    session: Session,
    task_ids: Sequence[UUID],
    act: Callable[[Engine, UUID], Awaitable[Task | None]],
    word: Callable[[Task | None], str],
) -> None:
    """Acts on one after the other; a task that refuses does not keep the others from it."""

    async def work(engine: Engine) -> list[tuple[UUID, Task | TaskNotFound | TaskConflict | None]]:
        results: list[tuple[UUID, Task | TaskNotFound | TaskConflict | None]] = []
        for task_id in dict.fromkeys(task_ids):
            try:
                results.append((task_id, await act(engine, task_id)))
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
