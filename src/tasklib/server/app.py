"""Puts the application together, to run alone or to be mounted under any prefix of another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tasklib.core.registry import Registry, default_registry
from tasklib.engine.alerts import alert_watch
from tasklib.engine.config import Config
from tasklib.engine.default import default_engine, engine_of
from tasklib.engine.engine import Engine
from tasklib.server import (
    bulk,
    claims,
    controls,
    dashboard,
    docs,
    events,
    export,
    failures,
    flows,
    health,
    login,
    metrics,
    schedules,
    series,
    tasks,
    types,
    workers,
)
from tasklib.server.asgi import route_path
from tasklib.server.auth import AuthMiddleware
from tasklib.server.distributions import LatestTimes
from tasklib.server.feed import Feed
from tasklib.server.headers import SecureHeaders
from tasklib.server.limits import BodyLimit, StreamCap, SubmitRate, TimeLimit
from tasklib.server.meters import Meters
from tasklib.server.problems import Problems, on_http_exception, on_invalid_request
from tasklib.server.representation import Representation
from tasklib.server.service import Service
from tasklib.server.sessions import Sessions
from tasklib.server.settings import ServerSettings
from tasklib.server.tokens import TokenStore

VERSION = "1"
"""Of the API."""

ROUTERS = (
    *(bulk, controls, export, tasks, claims, health, login, types, schedules, workers, series, failures, events),
    *(flows, metrics, dashboard),
)
"""In this order: fixed paths under /api/tasks come before `/api/tasks/{task_id}`. What programs ask for comes before
what people do: each request is held against one route after the other."""


def create_app(
    queue: Engine | Config | None = None,
    *,
    registry: Registry | None = None,
    settings: ServerSettings | None = None,
) -> FastAPI:
    """The HTTP API of a queue; without one, of the queue that `init` set.

    `registry` holds the task types whose arguments are checked when they are submitted: all that `@task` defined,
    unless given. The queue is opened by the first request, so that it also works where no lifespan is run.
    """
    settings = settings or ServerSettings()
    engine = queue if isinstance(queue, Engine) else default_engine() if queue is None else engine_of(queue)
    token_store = TokenStore(engine, settings)
    service = Service(
        engine=engine,
        registry=default_registry if registry is None else registry,
        settings=settings,
        token_store=token_store,
        sessions=Sessions(token_store, settings),
        submits=SubmitRate(settings.submit_rate),
        streams=StreamCap(settings.max_streams),
        meters=Meters(engine),
        feed=Feed(engine),
        latest_times=LatestTimes(engine),
    )

    alerts = alert_watch(engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        checking = None if alerts is None else asyncio.create_task(alerts.run())
        yield
        if checking is not None:
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)
        service.feed.end()
        if engine is not queue and queue is not None:
            await engine.close()

    app = FastAPI(
        title="tasklib",
        version=VERSION,
        description="A durable task queue.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.tasklib = service
    for part in ROUTERS:
        # As they are: including a router builds each of its routes anew, for every application.
        app.router.routes.extend(part.router.routes)
    dashboard.mount_assets(app)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    # The last one added is the first to see a request.
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(AuthMiddleware, settings=settings, token_store=token_store, sessions=service.sessions)
    app.add_middleware(TimeLimit, seconds=settings.request_seconds)
    app.add_middleware(Problems)
    app.add_middleware(Representation)
    app.add_middleware(SecureHeaders)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            app.openapi_schema = docs.amend(schema)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app


async def _on_http_exception(request: Request, error: Exception) -> Response:
    answer = await on_http_exception(request, error)
    if answer.status_code == 404 and request.scope[dashboard.PAGE_WANTED]:
        return dashboard.page(request.scope, 404)
    if answer.status_code == 405:
        answer.headers["Allow"] = ", ".join(_methods(route_path(request.scope)))
    return answer


def _methods(path: str) -> list[str]:
    """What a path can be asked; the framework names only the methods of the first route that fits."""
    fitting = [
        route
        for part in ROUTERS
        for route in part.router.routes
        if isinstance(route, APIRoute) and route.path_regex.match(path)
    ]
    return sorted({method for route in fitting if route.path == fitting[0].path for method in route.methods or ()})
