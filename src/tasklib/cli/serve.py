"""The command `serve`: the queue over HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tasklib.cli import logs
from tasklib.cli.command import command
from tasklib.cli.loading import load
from tasklib.cli.logs import LogFormat, LogLevel
from tasklib.cli.session import Session
from tasklib.cli.workerprocess import hold_lifeline
from tasklib.core.errors import InvalidInput, MissingExtra
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine

if TYPE_CHECKING:
    from tasklib.server.settings import ServerSettings

log = logging.getLogger("tasklib.server")

DEFAULT_PORT = 8700
_EVERYWHERE = frozenset({"0.0.0.0", "::"})


def register(app: typer.Typer) -> None:
    command(app, "serve", example="tasklib serve app.tasks --port 8700")(serve)


def serve(
    session: Session,
    modules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODULE",
            help="Where tasks are defined whose arguments are to be checked: app.tasks or app/tasks.py.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name under which browsers reach this server; may be given several times; * is any.",
            show_default=False,
        ),
    ] = None,
    root_path: Annotated[
        str, typer.Option(metavar="PREFIX", help="The path under which a proxy serves this.", show_default=False)
    ] = "",
    submit_rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=1e6, metavar="N", help="Submits a second that one token may make.", show_default=False
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="TASKLIB_ENVIRONMENT",
            help="What the pages call this queue: production, staging.",
            show_default=False,
        ),
    ] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Let everybody who reaches the port do everything.")
    ] = False,
    log_level: logs.Level = LogLevel.INFO,
    log_format: logs.Format = LogFormat.TEXT,
    lifeline: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the REST API, live events and metrics.

    Requests need a token: the one in TASKLIB_TOKEN, or one that `tasklib token create` made. Where there is none yet, a
    login link is printed that holds until the server stops.
    """
    logs.configure(log_level, log_format)
    if lifeline is not None:
        hold_lifeline(lifeline)
    if modules:
        load(modules)
        session.config = session.adopt_app_config()
    engine = default_engine() if modules else Engine(session.config)
    prefix = root_path.strip("/")
    order = Order(
        host=host,
        port=port,
        hosts=_hosts(host, allow_host or []),
        root_path=f"/{prefix}" if prefix else "",
        submit_rate=submit_rate,
        environment=environment or None,
        open_to_all=insecure_no_auth,
    )
    asyncio.run(_serve(session, engine, order))


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to serve, and where."""

    host: str
    port: int
    hosts: Sequence[str]
    root_path: str
    submit_rate: float | None
    environment: str | None
    open_to_all: bool


async def _serve(session: Session, engine: Engine, order: Order) -> None:
    try:
        from tasklib.server.app import create_app
        from tasklib.server.run import run
    except ImportError:
        raise MissingExtra("server", "fastapi", "tasklib serve") from None
    settings, login = await _settings(engine, order)
    listening = _listen(order.host, order.port)
    try:
        _tell(session, order, listening.getsockname()[1], login)
        await run(create_app(engine, settings=settings), listening, root_path=order.root_path)
    finally:
        listening.close()
        await engine.close()


async def _settings(engine: Engine, order: Order) -> tuple[ServerSettings, str | None]:
    """How requests are authenticated; where nobody has a token yet, one to sign in with."""
    from tasklib.server.settings import ServerSettings, token_from_environment
    from tasklib.server.tokens import identities

    shared: dict[str, Any] = {
        "allowed_hosts": order.hosts,
        "submit_rate": order.submit_rate,
        "environment": order.environment,
    }
    if order.open_to_all:
        log.warning("authentication is off: whoever reaches %s can read and change everything", order.host)
        return ServerSettings(authenticate=False, token=None, **shared), None
    if token_from_environment() is not None or identities(await (await engine.store()).tokens()):
        return ServerSettings(**shared), None
    if not _is_loopback(order.host):
        raise InvalidInput(
            f"not listening on {order.host} without authentication: set TASKLIB_TOKEN, "
            "or make a token with `tasklib token create` first",
            field="host",
        )
    login = secrets.token_urlsafe(32)
    return ServerSettings(token=login, token_label="login link", **shared), login


def _tell(session: Session, order: Order, port: int, login: str | None) -> None:
    host = f"[{order.host}]" if ":" in order.host else order.host
    url = f"http://{host}:{port}{order.root_path}"
    link = f"{url}/login#token={login}" if login else None
    if session.out.as_json:
        session.out.data({"url": url, "login": link}, masked=False)
    else:
        session.out.line(f"Serving {session.config.shown_url} at {url}")
        if link:
            session.out.line(Text(f"Sign in, once: {link}"))
    sys.stdout.flush()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"cannot listen on {host} port {port}: {reason}", field="port") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hosts(host: str, more: Sequence[str]) -> tuple[str, ...]:
    """The Host headers that are answered: this machine, the address we listen on, and what was allowed."""
    own = [] if host in _EVERYWHERE else [f"[{host}]" if ":" in host else host]
    return tuple(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", *own, *more]))
