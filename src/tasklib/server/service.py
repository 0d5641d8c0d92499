"""What the routes share: the queue, the settings, and who is asking."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import Depends, Request

from tasklib.core.redact import redact
from tasklib.core.registry import Registry
from tasklib.core.task import Task
from tasklib.engine.audit import Auditor
from tasklib.engine.diagnose import Reason
from tasklib.engine.engine import Engine
from tasklib.engine.linked import Linked
from tasklib.server.auth import IDENTITY
from tasklib.server.distributions import LatestTimes
from tasklib.server.feed import Feed
from tasklib.server.limits import StreamCap, SubmitRate
from tasklib.server.meters import Meters
from tasklib.server.schemas import LargeField, ListedTask, TaskDetail, TaskView
from tasklib.server.sessions import Sessions
from tasklib.server.settings import ServerSettings
from tasklib.server.tokens import Identity, TokenStore
from tasklib.server.views import detail_view, listed_view, task_view


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    engine: Engine
    registry: Registry
    settings: ServerSettings
    token_store: TokenStore
    sessions: Sessions
    submits: SubmitRate
    streams: StreamCap
    meters: Meters
    feed: Feed
    latest_times: LatestTimes

    @property
    def dead_after(self) -> float:
        return self.engine.config.dead_after_seconds

    def redact(self, value: Any) -> Any:
        """By the application's own rule, if it has one; passwords in URLs are masked whatever that says."""
        own = self.settings.redact
        return self.engine.config.redact(value) if own is None else redact(own(value), ())

    @property
    def secret_keys(self) -> tuple[str, ...] | None:
        """Under which names a search does not look; None where the application's own rule cannot be told to a store."""
        return self.engine.config.secret_keys if self.settings.redact is None else None

    def show(self, task: Task) -> TaskView:
        return task_view(task, self.redact)

    def show_listed(self, task: Task, whole: Collection[LargeField]) -> ListedTask:
        return listed_view(task, self.redact, whole)

    def show_all(self, task: Task, reasons: Iterable[Reason], linked: Linked) -> TaskDetail:
        return detail_view(task, self.redact, reasons, linked)

    def auditor(self, who: Identity) -> Auditor:
        return Auditor(who.label, self.redact)


# Coroutines, although nothing is awaited: a plain function would be called in a thread, for every request.
async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.tasklib)


async def _identity(request: Request) -> Identity:
    return cast(Identity, request.scope[IDENTITY])


Served = Annotated[Service, Depends(_service)]
IdentityDep = Annotated[Identity, Depends(_identity)]
