"""A database URL, and how to connect by it. libpq's options are translated; what is not known is refused by name,
because asyncpg would send it to the server as a setting."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import asyncpg

from tasklib.core.errors import InvalidConfig
from tasklib.stores.sql.postgres.failures import why_read_only

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_SCHEME = re.compile(r"postgres(ql)?(\+[a-z0-9_]+)?")
_SWITCHES = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}

_LONGEST_CHANNEL = 63
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # Milliseconds: after so long without an acknowledgement the kernel gives a connection up, before a call's deadline.
    "tcp_user_timeout": 15_000,
}
"""By libpq's names."""
_SOCKET_OPTIONS = (  # each platform has its own selection
    ("keepalives_idle", "TCP_KEEPIDLE"),
    ("keepalives_idle", "TCP_KEEPALIVE"),
    ("keepalives_interval", "TCP_KEEPINTVL"),
    ("keepalives_count", "TCP_KEEPCNT"),
    ("tcp_user_timeout", "TCP_USER_TIMEOUT"),
)

_NOT_THIS_HOST = (
    OSError,  # TimeoutError is one
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,  # starting up or shutting down: the next may be the primary
    asyncpg.TargetServerAttributeNotMatched,
)

Connection = Any
"""asyncpg ships no types."""


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    """Keeps a few prepared statements at hand. asyncpg keeps all of them, which takes it longer to find one."""

    __slots__ = ("kept",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.kept: dict[str, Any] = {}
        """By their text."""

    async def keep(self, sql: str) -> Any:
        self.kept[sql] = statement = await self.prepare(sql)
        return statement


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tables are and how to get there."""

    hosts: tuple[tuple[str | None, int | None], ...]
    arguments: dict[str, Any]
    """For asyncpg.connect, the same for every host."""
    schema: str = "public"
    creates_schema: bool = False
    """The schema was asked for by name: it is made where it does not exist."""
    pgbouncer: bool | None = None
    """None: to be found out."""
    connect_timeout: float = 10.0
    session: dict[str, str] = field(default_factory=dict)
    """Settings the URL asks for; ours are added to them."""
    keepalives: dict[str, int] = field(default_factory=lambda: dict(_KEEPALIVES))

    @property
    def quoted_schema(self) -> str:
        return f'"{self.schema}"'

    @property
    def work_channel(self) -> str:
        return _channel(self.schema, "")

    @property
    def done_channel(self) -> str:
        return _channel(self.schema, ":done")


def parse(url: str) -> Target:
    parts = urlsplit(url)
    if not _SCHEME.fullmatch(parts.scheme):
        raise InvalidConfig(f"not a PostgreSQL URL: {parts.scheme}://", field="database_url")
    userinfo, _, hostlist = parts.netloc.rpartition("@")
    user, colon, password = userinfo.partition(":")
    options = _Options(parts.query)
    arguments: dict[str, Any] = {
        "user": unquote(user) or options.take("user"),
        "password": unquote(password) if colon else options.take("password"),
        "database": unquote(parts.path.removeprefix("/")) or options.take("dbname") or options.take("database"),
        "passfile": options.take("passfile"),
        "krbsrvname": options.take("krbsrvname"),
    }
    hosts = _hosts(unquote(hostlist) or options.take("host") or "", options.take("port") or "")
    arguments["target_session_attrs"] = _session_attrs(options.take("target_session_attrs"), len(hosts))
    dsn = _tls_dsn(options)
    if dsn:
        arguments["dsn"] = dsn
    schema = options.take("schema")
    if schema is not None and not _IDENTIFIER.fullmatch(schema):
        message = f"schema: letters, digits and underscores, at most 63, no digit first; got {schema!r:.80}"
        raise InvalidConfig(message, field="schema")
    target = Target(
        hosts=hosts,
        arguments={name: value for name, value in arguments.items() if value is not None},
        schema=schema or "public",
        creates_schema=schema is not None,
        pgbouncer=options.switch("pgbouncer"),
        connect_timeout=float(options.number("connect_timeout", 10) or 10),
        session=_session(options),
        keepalives={name: options.number(name, default) for name, default in _KEEPALIVES.items()},
    )
    _refuse_required(options)
    options.finish()
    return target


async def connect(target: Target, settings: dict[str, str], timeout: float) -> Connection:
    """The first host that answers and fits. Each gets its share of the time, so that one that is silent does not use
    up the time of the next."""
    error: BaseException | None = None
    unfit: list[tuple[str | None, int | None]] = []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    for index, (host, port) in enumerate(target.hosts):
        share = min(target.connect_timeout, (deadline - loop.time()) / (len(target.hosts) - index))
        if share <= 0:
            break
        try:
            # asyncpg's own annotation says int, its code takes any number of seconds.
            connect_one: Any = asyncpg.connect
            connection = await connect_one(
                host=host,
                port=port,
                timeout=share,
                connection_class=_Connection,
                # Statements live as long as their connection.
                statement_cache_size=0 if target.pgbouncer else 200,
                max_cached_statement_lifetime=0,
                server_settings={**target.session, **settings} or None,
                **target.arguments,
            )
        except _NOT_THIS_HOST as failure:
            error = failure
            if isinstance(failure, asyncpg.TargetServerAttributeNotMatched):
                unfit.append((host, port))
        else:
            _watch_socket(connection, target.keepalives)
            return connection
    if unfit and target.arguments.get("target_session_attrs") == "read-write":
        await _check_primary(replace(target, hosts=tuple(unfit)), settings, deadline - loop.time())
    raise error or TimeoutError("no time left to connect")


async def _check_primary(target: Target, settings: dict[str, str], timeout: float) -> None:
    """Raises if one of these hosts is the primary, and it is a lasting setting that lets us only read there."""
    target = replace(target, arguments={**target.arguments, "target_session_attrs": "primary"})
    with suppress(*_NOT_THIS_HOST):
        connection = await connect(target, settings, timeout)
        try:
            refused = await why_read_only(connection, timeout)
        finally:
            connection.terminate()
        if refused is not None:
            raise refused


def _watch_socket(connection: Connection, keepalives: dict[str, int]) -> None:
    """The kernel finds half-open connections: by keepalives while idle, by missing acknowledgements while not."""
    transport = getattr(connection, "_transport", None)
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6) or not keepalives["keepalives"]:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, option in _SOCKET_OPTIONS:
        if hasattr(socket, option) and keepalives[name]:
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), keepalives[name])


def _channel(schema: str, suffix: str) -> str:
    name = f"tasklib_{schema}{suffix}"
    # A channel's name is an identifier of at most 63 bytes; a schema's may fill that alone.
    return name if len(name) <= _LONGEST_CHANNEL else f"tasklib_{schema[-45:]}{suffix}"


def _hosts(hostlist: str, ports: str) -> tuple[tuple[str | None, int | None], ...]:
    default = [_port(port) for port in ports.split(",")] if ports else []
    hosts: list[tuple[str | None, int | None]] = []
    entries = hostlist.split(",") if hostlist else [""]
    for index, entry in enumerate(entries):
        bracketed = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?", entry)
        if bracketed:
            name, port = bracketed[1], bracketed[2] or ""
        elif entry.startswith("/"):
            name, port = entry, ""
        else:
            name, _, port = entry.partition(":")
        fallback = default[index] if index < len(default) else (default[0] if len(default) == 1 else None)
        hosts.append((name or None, _port(port) if port else fallback))
    return tuple(hosts)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise InvalidConfig(f"port: a number from 1 to 65535, got {text!r:.20}", field="port")
    return int(text)


def _session_attrs(given: str | None, hosts: int) -> str | None:
    """Several hosts are a primary with standbys, and only the primary will do."""
    if given is None:
        return "read-write" if hosts > 1 else None
    if given not in ("any", "read-write", "primary"):
        message = f"target_session_attrs: tasklib writes, so it must be any, read-write or primary, got {given!r:.40}"
        raise InvalidConfig(message, field="target_session_attrs")
    return given


_TLS = (
    "sslmode",
    "sslcert",
    "sslkey",
    "sslrootcert",
    "sslcrl",
    "sslpassword",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "sslnegotiation",
)


def _tls_dsn(options: _Options) -> str | None:
    """asyncpg takes the TLS files only from a DSN."""
    mode = options.peek("sslmode")
    if mode is not None and mode not in ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"):
        raise InvalidConfig(f"sslmode: unknown mode {mode!r:.40}", field="sslmode")
    given = {name: options.take_raw(name) for name in _TLS}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
    return f"postgresql://?{query}" if query else None


def _session(options: _Options) -> dict[str, str]:
    session = {
        "application_name": options.take("application_name") or options.take("fallback_application_name") or "tasklib"
    }
    for name in ("options", "timezone", "search_path"):
        if (value := options.take(name)) is not None:
            session[name] = value
    encoding = options.take("client_encoding")
    if encoding is not None and encoding.lower().replace("-", "") not in ("utf8", "auto"):
        raise InvalidConfig("client_encoding: only utf8", field="client_encoding")
    return session


def _refuse_required(options: _Options) -> None:
    """Protections that asyncpg does not have may be preferred, but not required."""
    for name in ("channel_binding", "gssencmode"):
        value = options.take(name)
        if value not in (None, "disable", "prefer"):
            raise InvalidConfig(f"{name}: the driver cannot do this, leave it out or say prefer", field=name)


class _Options:
    """The query of a URL. What nobody took is unknown."""

    def __init__(self, query: str) -> None:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            raise InvalidConfig(
                "the part of the URL behind the question mark is not name=value", field="database_url"
            ) from None
        self._given = dict(pairs)

    def peek(self, name: str) -> str | None:
        return self._given.get(name)

    def take(self, name: str) -> str | None:
        return self._given.pop(name, None)

    def take_raw(self, name: str) -> str | None:
        value = self.take(name)
        return None if value is None else quote(value, safe="")

    def switch(self, name: str) -> bool | None:
        value = self.take(name)
        if value is None:
            return None
        if value.lower() not in _SWITCHES:
            raise InvalidConfig(f"{name}: true or false, got {value!r:.40}", field=name)
        return _SWITCHES[value.lower()]

    def number(self, name: str, default: int) -> int:
        value = self.take(name)
        if value is None:
            return default
        if not value.isascii() or not value.isdigit():
            raise InvalidConfig(f"{name}: a whole number, got {value!r:.40}", field=name)
        return int(value)

    def finish(self) -> None:
        if self._given:
            name = next(iter(self._given))
            raise InvalidConfig(f"unknown option in the database URL: {name!r:.80}", field=name)
