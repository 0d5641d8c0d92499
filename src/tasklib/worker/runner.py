"""Claim -> Outcome: decode the arguments, call the function, encode the result. Never sees a store, never raises.

Whatever user code does (SystemExit, a `__str__` that raises, a result that is not JSON) fails that task alone.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from tasklib.core.codec import clip_error
from tasklib.core.errors import InvalidInput, TaskValidationError
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
from tasklib.core.outputs import place_of, pointer
from tasklib.core.registry import TaskOptions, TaskType
from tasklib.engine.current import RunningTask, current_task
from tasklib.engine.middleware import Middleware
from tasklib.engine.parents import Sources
from tasklib.engine.tracing import RunSpan
from tasklib.worker.in_flight import Execution, Stop

_NO_LISTS = TaskOptions()
NEVER_STARTED: Outcome = Failed("TaskStopped: told to stop before it started")


def call(
    task_type: TaskType,
    payload: str,
    max_result_bytes: int,
    around: Sequence[Middleware] = (),
    trace: str | None = None,
    sources: Sources | None = None,
) -> Outcome:
    """Runs a `def` task here and now, inside of this middleware."""
    begun = time.monotonic()
    try:
        arguments = task_type.decode_call(payload)
    except BaseException as error:
        return refused(error, sources)
    try:
        function = task_type.function
        if trace is not None:
            around = (RunSpan(trace), *around)
        if around:
            handler = partial(function, arguments) if task_type.takes_payload else partial(function, **arguments)
            result = _inside(around, current_task(), handler)
        else:
            result = function(arguments) if task_type.takes_payload else function(**arguments)
        return Completed(task_type.encode_result(result, max_result_bytes), _ms(begun))
    except BaseException as error:
        return raised(error, _ms(begun), task_type.options)


async def call_async(
    task_type: TaskType,
    payload: str,
    max_result_bytes: int,
    around: Sequence[Middleware] = (),
    trace: str | None = None,
    sources: Sources | None = None,
) -> Outcome:
    """Runs an `async def` task in the running loop, inside of this middleware."""
    begun = time.monotonic()
    try:
        arguments = task_type.decode_call(payload)
    except BaseException as error:
        return refused(error, sources)
    try:
        function = task_type.function
        if trace is not None:
            around = (RunSpan(trace), *around)
        if around:
            handler = partial(function, arguments) if task_type.takes_payload else partial(function, **arguments)
            result = await _inside_async(around, current_task(), handler)
        else:
            result = await (function(arguments) if task_type.takes_payload else function(**arguments))
        return Completed(task_type.encode_result(result, max_result_bytes), _ms(begun))
    except BaseException as error:
        return raised(error, _ms(begun), task_type.options)


def _inside(around: Sequence[Middleware], task: RunningTask, handler: Callable[[], Any]) -> Any:
    """Calls the handler inside of this middleware, the first outermost. None can make a failure a success."""
    if not around:
        return handler()
    raised: BaseException | None = None
    result = None
    with around[0].around(task):
        try:
            result = _inside(around[1:], task, handler)
        except BaseException as error:
            raised = error
            raise
    if raised is not None:
        try:
            raise raised
        finally:
            raised = None  # it holds this frame, which holds it
    return result


async def _inside_async(around: Sequence[Middleware], task: RunningTask, handler: Callable[[], Awaitable[Any]]) -> Any:
    if not around:
        return await handler()
    raised: BaseException | None = None
    result = None
    async with around[0].around_async(task):
        try:
            result = await _inside_async(around[1:], task, handler)
        except BaseException as error:
            raised = error
            raise
    if raised is not None:
        try:
            raise raised
        finally:
            raised = None
    return result


def refused(error: BaseException, sources: Sources | None = None) -> Outcome:
    """Arguments that the model refuses at run time will not get better by trying again. Where results of other tasks
    are among them, it is told whose they are."""
    if isinstance(error, (TaskTimedOut, TaskStopped, asyncio.CancelledError)):
        return raised(error, 0)
    _trim(error)
    text = f"{type(error).__name__}: {_text(error)}"
    if sources and isinstance(error, TaskValidationError):
        text = "\n".join([text, *_blamed(error, sources)])
    return Failed(text, final=True, cause=error)


def _blamed(error: TaskValidationError, sources: Sources) -> list[str]:
    found: dict[str, None] = {}
    for detail in error.errors:
        place = detail.get("loc")
        at = pointer(place) if isinstance(place, tuple) else ""
        for each, source in sources.items():
            if f"{at}/".startswith(f"{each}/") or f"{each}/".startswith(f"{at}/"):
                found[f"{'.'.join(place_of(each)) or 'payload'} is {source}"] = None
    return list(found)


def raised(error: BaseException, run_ms: int, options: TaskOptions = _NO_LISTS) -> Outcome:
    """What a handler's exception means."""
    _trim(error)
    seen = isinstance(error, Exception)
    final = not options.retries_after(type(error))
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Retry():
            return Failed(describe(error), delay=error.delay, run_ms=run_ms, seen=seen, cause=error)
        case Fail():
            return Failed(describe(error), final=True, run_ms=run_ms, seen=seen, cause=error)
        case InvalidInput() if error.field is not None and error.field.startswith("result"):
            return Failed(f"{type(error).__name__}: {error}", final, run_ms=run_ms, cause=error)
        case _:
            return Failed(describe(error), final, run_ms=run_ms, seen=seen, cause=error)


def stopped(execution: Execution, outcome: Outcome) -> Outcome | None:
    """The outcome of an execution that was told to stop; None where nothing may be recorded."""
    match execution.stop:
        case Stop.LOST:
            return None
        case Stop.SILENT if isinstance(outcome, Completed):
            return outcome  # late, which alone costs nothing
        case Stop.SILENT if outcome is NEVER_STARTED:
            return Released()
        case Stop.SILENT:
            # If another has it by now, this is refused. If not, the task need not wait for the end of its lease.
            text = f"WorkerLost: worker {execution.claim.worker_id} could not confirm its lease in time, and gave up"
            return Failed(text, delay=0.0, lost=True)
        case Stop.TIMEOUT:
            limit = execution.claim.timeout_seconds
            text = f"TaskTimedOut: ran longer than its timeout of {limit} s"
            run_ms = 0 if limit is None else limit * 1000
            final = not execution.task_type.options.retries_after(TaskTimedOut)
            if not isinstance(outcome, Failed):
                return Failed(text, final, run_ms=run_ms)
            return Failed(f"{outcome.error}\n{text}", final, run_ms=run_ms, seen=outcome.seen, cause=outcome.cause)
        case Stop.CANCEL if isinstance(outcome, Failed):
            return Cancelled("TaskCancelled: stopped on request", outcome.run_ms)
        case Stop.SHUTDOWN if not isinstance(outcome, Completed):
            return Released()
        case _:
            return outcome


def _trim(error: BaseException) -> None:
    """Takes our own frames from its traceback: what people read begins with the handler."""
    frames: TracebackType | None = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    error.__traceback__ = frames


def describe(error: BaseException) -> str:
    """The traceback as text, whatever the exception's own methods do."""
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-50))
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
