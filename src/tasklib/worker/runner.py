"""Claim -> Outcome: decode the arguments, call the function, encode the result. Never sees a store, never raises.

Whatever user code does (SystemExit, a `__str__` that raises, a result that is no JSON) fails that task alone.
"""

from __future__ import annotations

import asyncio
import time
import traceback

from tasklib.core.codec import clip_error
from tasklib.core.errors import InvalidInput
from tasklib.core.outcome import (
    Cancelled,
    Completed,
    Fail,
    Failed,
    Outcome,
    Released,
    Retry,
    Snooze,
    Snoozed,
    TaskStopped,
    TaskTimedOut,
)
from tasklib.core.registry import TaskType
from tasklib.worker.flight import Flight, Stop

NEVER_STARTED: Outcome = Failed("TaskStopped: told to stop before it started")


def call(task_type: TaskType, payload: str, max_result_bytes: int) -> Outcome:
    """Runs a `def` task here and now."""
    begun = time.monotonic()
    try:
        arguments = task_type.decode_call(payload)
    except BaseException as error:
        return refused(error)
    try:
        function = task_type.function
        result = function(arguments) if task_type.takes_payload else function(**arguments)
        return Completed(task_type.encode_result(result, max_result_bytes), _ms(begun))
    except BaseException as error:
        return raised(error, _ms(begun))


async def call_async(task_type: TaskType, payload: str, max_result_bytes: int) -> Outcome:
    """Runs an `async def` task in the running loop."""
    begun = time.monotonic()
    try:
        arguments = task_type.decode_call(payload)
    except BaseException as error:
        return refused(error)
    try:
        function = task_type.function
        result = await (function(arguments) if task_type.takes_payload else function(**arguments))
        return Completed(task_type.encode_result(result, max_result_bytes), _ms(begun))
    except BaseException as error:
        return raised(error, _ms(begun))


def refused(error: BaseException) -> Outcome:
    """Arguments that the model refuses at run time will not get better by trying again."""
    if isinstance(error, (TaskTimedOut, TaskStopped, asyncio.CancelledError)):
        return raised(error, 0)
    return Failed(f"{type(error).__name__}: {_text(error)}", final=True, cause=error)


def raised(error: BaseException, run_ms: int) -> Outcome:
    """What a handler's exception means."""
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Retry():
            return Failed(describe(error), delay=error.delay, run_ms=run_ms, cause=error)
        case Fail():
            return Failed(describe(error), final=True, run_ms=run_ms, cause=error)
        case InvalidInput() if error.field is not None and error.field.startswith("result"):
            return Failed(f"{type(error).__name__}: {error}", run_ms=run_ms, cause=error)
        case _:
            return Failed(describe(error), run_ms=run_ms, cause=error)


def stopped(flight: Flight, outcome: Outcome) -> Outcome | None:
    """The outcome of a flight that was told to stop; None where nothing may be recorded."""
    match flight.stop:
        case Stop.LOST:
            return None
        case Stop.SILENT if isinstance(outcome, Completed):
            return outcome  # late, which alone costs nothing
        case Stop.SILENT if outcome is NEVER_STARTED:
            return Released()
        case Stop.SILENT:
            # If another has it by now, this is refused. If not, the task need not wait for the end of its lease.
            text = f"WorkerLost: worker {flight.claim.worker_id} could not confirm its lease in time, and gave up"
            return Failed(text, delay=0.0, lost=True)
        case Stop.TIMEOUT:
            limit = flight.claim.timeout_seconds
            text = f"TaskTimedOut: ran longer than its timeout of {limit} s"
            trace, cause = (outcome.error, outcome.cause) if isinstance(outcome, Failed) else ("", None)
            run_ms = 0 if limit is None else limit * 1000
            return Failed(f"{trace}\n{text}" if trace else text, run_ms=run_ms, cause=cause)
        case Stop.CANCEL if isinstance(outcome, Failed):
            return Cancelled("TaskCancelled: stopped on request", outcome.run_ms)
        case Stop.SHUTDOWN if not isinstance(outcome, Completed):
            return Released()
        case _:
            return outcome


def describe(error: BaseException, *, whole: bool = False) -> str:
    """The traceback as text, from the handler on unless `whole`, whatever the exception's own methods do."""
    try:
        frames = error.__traceback__
        if frames is not None and not whole:
            frames = frames.tb_next
        text = "".join(traceback.format_exception(type(error), error, frames, limit=-50))
    except BaseException:
        text = f"{type(error).__name__}: {_text(error)}"
    return clip_error(text.rstrip("\n"))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:
        return f"(its __str__ raised {type(second).__name__})"


def _ms(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)
