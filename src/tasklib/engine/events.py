"""What happens to tasks, told to the log: the one place that does, with the same fields for every event.

What happens to each task is told at level DEBUG, failures at WARNING. Payloads and results are never logged.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from tasklib.core import decide
from tasklib.core.outcome import Completed, Failed, Outcome
from tasklib.core.task import Claim, NewTask
from tasklib.stores.base import Inserted

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


def ended(claim: Claim, outcome: Outcome) -> None:
    """An outcome that was accepted."""
    if type(outcome) is Completed:
        if log.isEnabledFor(logging.DEBUG):
            fields = _fields("completed", claim.id, claim.name, claim.attempt, run_ms=outcome.run_ms)
            log.debug("task %s (%s), attempt %d completed", claim.id, claim.name, claim.attempt, extra=fields)
    elif isinstance(outcome, Failed):
        last_line = outcome.error.rsplit("\n", 1)[-1]
        again = not outcome.final and decide.attempts_left(claim.retry_count, claim.max_retries)
        fields = _fields("failed", claim.id, claim.name, claim.attempt, run_ms=outcome.run_ms, will_retry=again)
        text = "task %s (%s), attempt %d failed; will retry: %s" if again else "task %s (%s), attempt %d failed: %s"
        log.warning(text, claim.id, claim.name, claim.attempt, last_line, extra=fields)
    elif log.isEnabledFor(logging.DEBUG):
        event = type(outcome).__name__.lower()
        fields = _fields(event, claim.id, claim.name, claim.attempt)
        log.debug("task %s (%s), attempt %d was %s", claim.id, claim.name, claim.attempt, event, extra=fields)


def refused(claim: Claim, verdict: str) -> None:
    """An outcome that came too late: the claim was somebody else's by then."""
    text = "refused: task %s (%s), attempt %d: the claim was no longer this worker's (%s); outcome dropped"
    fields = _fields("refused", claim.id, claim.name, claim.attempt)
    log.warning(text, claim.id, claim.name, claim.attempt, verdict, extra=fields)


def registered(name: str) -> None:
    log.debug("task type %s is registered", name, extra={"event": "registered", "task_name": name})


def _fields(event: str, task_id: UUID, name: str, attempt: int | None = None, **more: object) -> dict[str, object]:
    fields: dict[str, object] = {"event": event, "task_id": str(task_id), "task_name": name, **more}
    if attempt is not None:
        fields["attempt"] = attempt
    return fields
