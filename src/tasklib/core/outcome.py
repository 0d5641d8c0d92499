"""What an attempt came to, and the exceptions by which a handler decides it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tasklib.core.checks import check_delay
from tasklib.core.durations import Seconds


class Completed(NamedTuple):
    """A tuple, unlike the others: it is made for nearly every task."""

    result: str
    """The stored form, `{"value": ...}` as JSON text."""
    run_ms: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """An exception, a timeout, or a result that cannot be stored."""

    error: str
    final: bool = False
    """True: no retry, whatever attempts are left."""
    delay: float | None = None
    """Seconds to the retry, where the handler chose them."""
    lost: bool = False
    """The worker vanished, or its child process did: the task may have caused it."""
    run_ms: int = 0
    seen: bool = False
    """An exception of the handler's, which has passed through the middleware around it."""
    type: str = ""
    """The class of what was raised, with its module; empty: nothing was."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """What the handler raised, for the log; not known of handlers in other processes."""

    def __post_init__(self) -> None:
        if self.cause is not None and not self.type:
            raised = self.cause.__class__
            object.__setattr__(self, "type", f"{raised.__module__}.{raised.__qualname__}")


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to run again later; the attempt is given back, and the history tells of it."""

    delay: float


@dataclass(frozen=True, slots=True)
class Released:
    """Given back unfinished, or not begun; it starts again under the same attempt number."""

    delay: float | None = None
    """Seconds until then; None: as soon as it is due."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Stopped because somebody asked for it."""

    error: str
    run_ms: int = 0


Outcome: TypeAlias = Completed | Failed | Snoozed | Released | Cancelled


class Retry(Exception):
    """Raise it in a handler to fail this attempt and set when the next one starts."""

    def __init__(self, message: str = "the handler asked for a retry", *, delay: Seconds | None = None) -> None:
        super().__init__(message)
        self.delay = None if delay is None else check_delay(delay, "delay")


class Fail(Exception):
    """Raise it in a handler to give up at once, without further retries."""


class Snooze(Exception):
    """Raise it in a handler to run again later without using up an attempt."""

    def __init__(self, *, delay: Seconds) -> None:
        self.delay = check_delay(delay, "delay")
        super().__init__(f"snoozed for {self.delay:g} s")


class TaskTimedOut(BaseException):
    """Raised inside a handler that ran into its timeout."""


class TaskStopped(BaseException):
    """Raised inside a handler that is to stop: cancelled, or its lease was lost."""
