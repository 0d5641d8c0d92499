"""Middleware: an application's own code before each submit, around each run and after each end."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tasklib.core.bytes_json import unpack
from tasklib.core.options import check_tags
from tasklib.core.task import NewTask
from tasklib.engine.current import RunningTask

AROUND = ("around", "around_async")
EVENTS = ("on_completed", "on_failed", "on_retry", "on_cancelled")


@dataclass(frozen=True, slots=True)
class Submission:
    """A task that is about to be stored."""

    id: UUID
    name: str
    tags: dict[str, Any]
    """A copy, with what earlier middleware has added."""
    _payload: str = field(repr=False)

    @property
    def arguments(self) -> Any:
        """As they are stored, in plain JSON values: keyword arguments, or the payload. A copy."""
        return unpack(json.loads(self._payload))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """What has become of a task: it is committed."""

    id: UUID
    name: str
    attempt: int
    """1 for the first; 0 if it was cancelled before it ever ran."""
    tags: dict[str, Any]
    error: str | None = None
    """As it is stored: the traceback, or a line. None if it completed."""
    exception: BaseException | None = None
    """What the handler raised, where it ran in this process."""
    seconds: float | None = None
    """How long the attempt ran. None where nobody measured it: claims made by hand, workers that vanished."""
    waited: float | None = None
    """How many seconds it had been due when its first attempt began. None of later ones, and where nobody ran it."""
    retry_in: float | None = None
    """Seconds to the next attempt, of a failed one that is tried again."""
    seen: bool = False
    """The exception has passed through the middleware around the handler, here or in a child process. False where it
    was none of the handler's: a timeout, a vanished worker, arguments or a result that do not fit."""


class Middleware:
    """Define what you need in a subclass, and name an instance of it in `Config(middleware=[...])`.

    The first that is named is the outermost.
    """

    def before_submit(self, task: Submission) -> Mapping[str, Any] | None:
        """Called before each task is stored, in the thread that submits. Tags that it returns are added; those that the
        caller gave win. What it raises refuses the submit, and nothing is stored."""
        return None

    def around(self, task: RunningTask) -> AbstractContextManager[object]:
        """Entered before each run, left after it, where the handler runs: in its thread, on its event loop, in its
        child process. What it raises fails the attempt as the handler's own exception would; a failure that it
        swallows is a failure all the same."""
        return nullcontext()

    def around_async(self, task: RunningTask) -> AbstractAsyncContextManager[object]:
        """The same for `async def` tasks, which can await; `around` unless it is defined."""
        return _around_async(self, task)

    def on_completed(self, event: TaskEvent) -> Awaitable[None] | None:
        """The task has completed."""
        return None

    def on_failed(self, event: TaskEvent) -> Awaitable[None] | None:
        """The task has failed for good."""
        return None

    def on_retry(self, event: TaskEvent) -> Awaitable[None] | None:
        """An attempt has failed and the task will be tried again."""
        return None

    def on_cancelled(self, event: TaskEvent) -> Awaitable[None] | None:
        """The task was cancelled, before it ran or while it did."""
        return None


@asynccontextmanager
async def _around_async(middleware: Middleware, task: RunningTask) -> AsyncIterator[None]:
    with middleware.around(task):
        yield


def defining(middleware: Sequence[Middleware], *methods: str) -> tuple[Middleware, ...]:
    """Those that define one of these methods themselves."""
    return tuple(
        each
        for each in middleware
        if any(getattr(type(each), name) is not getattr(Middleware, name) for name in methods)
    )


def before_submit(middleware: Sequence[Middleware], new: NewTask) -> NewTask:
    """The task as it is to be stored. Raises what the middleware raises."""
    tags: dict[str, Any] = json.loads(new.tags)
    for each in defining(middleware, "before_submit"):
        added = each.before_submit(Submission(new.id, new.name, dict(tags), new.kwargs))
        if added is not None:
            check_tags(added)
            tags = {**added, **tags}
    return new._replace(tags=check_tags(tags))


def name_of(middleware: Middleware) -> str:
    """For people, and to compare what two processes have: a main module's name differs between them."""
    return type(middleware).__qualname__


def load(given: object) -> tuple[Middleware, ...]:
    """For Config: instances, or text from the environment like `app.hooks:Timing,app.hooks:alerts`."""
    items = [_named(item.strip()) for item in given.split(",") if item.strip()] if isinstance(given, str) else given
    if not isinstance(items, (list, tuple)):
        raise ValueError("a list of Middleware is expected")
    return tuple(map(_checked, items))


def _checked(item: object) -> Middleware:
    if isinstance(item, Middleware):
        return item
    hint = "; give an instance of it" if inspect.isclass(item) and issubclass(item, Middleware) else ""
    raise ValueError(f"{item!r:.80} is not a Middleware{hint}")


def _named(path: str) -> object:
    """The object behind `module:name`; of a class, an instance."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path!r:.80} cannot be imported as module:name: {error}") from None
    return found() if inspect.isclass(found) else found
