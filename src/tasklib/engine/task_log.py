"""What happens to tasks, told to the log: the one place that does, with the same fields for every event.

How each task ended is told at level INFO, a failure that will be retried at WARNING, one for good at ERROR; what led
there at DEBUG. Payloads and results are never logged.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from tasklib.core import decide
from tasklib.core.outcome import Completed, Failed, Outcome
from tasklib.core.task import Claim, NewTask
from tasklib.stores.values import Inserted

log = logging.getLogger("tasklib.tasks")


def enqueued(tasks: Sequence[NewTask], inserted: Sequence[Inserted]) -> None:
    if log.isEnabledFor(logging.DEBUG):
        for task, kept in zip(tasks, inserted, strict=True):
            event = "enqueued" if kept.created else "known"
            log.debug("task %s (%s) is %s", kept.id, task.name, event, extra=_fields(event, kept.id, task.name))


def started(claim: Claim) -> None:
    if log.isEnabledFor(logging.DEBUG):
        fields = _fields("started", claim.id, claim.name, claim.attempt)
        log.debug("task %s (%s), attempt %d starts", claim.id, claim.name, claim.attempt, extra=fields)


def ended(claim: Claim, outcome: Outcome, *, begun: bool = True, due_in: float | None = None) -> None:
    """An outcome that was accepted. `begun`: the handler was called; `due_in`: seconds until its retry."""
    if type(outcome) is Completed:
        if log.isEnabledFor(logging.INFO):
            fields = _fields("completed", claim.id, claim.name, claim.attempt, run_ms=outcome.run_ms)
            text = "task %s (%s), attempt %d completed in %s"
            log.info(text, fields["task_id"], claim.name, claim.attempt, _took(outcome.run_ms), extra=fields)
    elif isinstance(outcome, Failed):
        _failed(claim, outcome, due_in)
    elif log.isEnabledFor(level := logging.INFO if begun else logging.DEBUG):
        event = type(outcome).__name__.lower()
        fields = _fields(event, claim.id, claim.name, claim.attempt)
        log.log(level, "task %s (%s), attempt %d was %s", claim.id, claim.name, claim.attempt, event, extra=fields)


def _failed(claim: Claim, outcome: Failed, due_in: float | None) -> None:
    """With the exception itself, which error trackers look for; its text, where it was raised in another process."""
    again = not outcome.final and decide.attempts_left(claim.retry_count, claim.max_retries)
    level = logging.WARNING if again else logging.ERROR
    if not log.isEnabledFor(level):
        return
    fields = _fields("failed", claim.id, claim.name, claim.attempt, run_ms=outcome.run_ms, will_retry=again)
    when = "" if due_in is None else f" in {due_in:.1f} s" if due_in else " now"
    ending = f"failed; will retry{when}" if again else "failed for good"
    cause, exc_info = outcome.cause, None
    if cause is not None:
        exc_info = (type(cause), cause, cause.__traceback__)
    elif "\n" in outcome.error:
        fields["traceback"] = outcome.error
    said = (claim.id, claim.name, claim.attempt, ending, outcome.error.rsplit("\n", 1)[-1])
    log.log(level, "task %s (%s), attempt %d %s: %s", *said, exc_info=exc_info, extra=fields)


def refused(claims: Sequence[Claim], write_results: Sequence[str]) -> None:
    """Outcomes that came too late: the claims were somebody else's by then. One line for a batch, however many."""
    if claims:
        first, more = claims[0], len(claims) - 1
        text = "refused: task %s (%s), attempt %d: the claim was no longer this worker's (%s); outcome dropped%s"
        fields = _fields("refused", first.id, first.name, first.attempt, more=more)
        log.warning(text, first.id, first.name, first.attempt, write_results[0], _and(more), extra=fields)


def leases_lost(claims: Sequence[Claim], reason: str) -> None:
    """Claims that this worker gives up. One line, however many: a database that is away loses them all at once."""
    if claims:
        first, more = claims[0], len(claims) - 1
        fields = _fields("lost", first.id, first.name, first.attempt, more=more)
        log.warning("lease of task %s (%s) is lost: %s%s", first.id, first.name, reason, _and(more), extra=fields)


def registered(name: str) -> None:
    log.debug("task type %s is registered", name, extra={"event": "registered", "task_name": name})


def _took(run_ms: int) -> str:
    return f"{run_ms} ms" if run_ms < 10_000 else f"{run_ms / 1000:.1f} s"


def _and(more: int) -> str:
    return f"; so with {more} more" if more else ""


def _fields(event: str, task_id: UUID, name: str, attempt: int | None = None, **more: object) -> dict[str, object]:
    fields: dict[str, object] = {"event": event, "task_id": str(task_id), "task_name": name, **more}
    if attempt is not None:
        fields["attempt"] = attempt
    return fields
