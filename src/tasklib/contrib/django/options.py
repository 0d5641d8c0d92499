"""What `TASKS[alias]["OPTIONS"]` says: which queue it is, when a task is stored, and tasklib's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS
from django.utils.connection import ConnectionDoesNotExist
from django.utils.module_loading import import_string

from tasklib.core.errors import InvalidConfig
from tasklib.core.options import check_max_retries
from tasklib.engine.config import Config
from tasklib.engine.middleware import Middleware

_OWN = ("database", "database_url", "schema", "commit", "max_retries", "middleware")
_PASSED_ON = frozenset(
    {
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation", "passfile"),
        *("connect_timeout", "target_session_attrs", "krbsrvname", "keepalives", "keepalives_idle"),
        *("keepalives_interval", "keepalives_count", "tcp_user_timeout", "channel_binding", "gssencmode"),
    }
)
"""libpq's options that tasklib's own connections take, too. All others are Django's, or of no consequence for them."""


class Commit(StrEnum):
    """When a task is stored that is enqueued inside `atomic()`."""

    TRANSACTION = "transaction"
    """At once, as a part of the transaction: it is there when the rest is, and gone if the rest is."""
    ON_COMMIT = "on_commit"
    """After the commit."""
    IMMEDIATELY = "immediately"
    """At once and for good, whatever becomes of the transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    database: str = DEFAULT_DB_ALIAS
    """The alias in DATABASES whose transactions count, and which holds the queue if no URL is given."""
    database_url: str | None = None
    schema: str | None = None
    given_commit: Commit | None = None
    max_retries: int = 0
    """Of Django's tasks that do not say it themselves: a task that fails has failed, as Django has it."""
    middleware: tuple[Middleware, ...] = ()
    settings: Mapping[str, Any]
    """The other fields of Config."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> QueueOptions:
        """Raises InvalidConfig, with the name of what is wrong."""
        settings = {name: value for name, value in given.items() if name not in _OWN}
        commit = given.get("commit")
        if commit is not None and commit not in set(Commit):
            raise InvalidConfig(f"commit: one of {', '.join(Commit)}, got {commit!r:.60}", field="commit")
        found = cls(
            database=given.get("database", DEFAULT_DB_ALIAS),
            database_url=given.get("database_url"),
            schema=given.get("schema"),
            given_commit=None if commit is None else Commit(commit),
            max_retries=check_max_retries(given.get("max_retries", 0)),
            middleware=tuple(map(_loaded, given.get("middleware", ()))),
            settings=settings,
        )
        if found.database_url is not None and found.schema is not None:
            raise InvalidConfig("schema: say it in database_url, with ?schema=", field="schema")
        if commit == Commit.TRANSACTION and not found.in_database:
            reason = "only a queue in the PostgreSQL database of DATABASES can be part of its transactions"
            raise InvalidConfig(f"commit: {reason}; say on_commit", field="commit")
        return found

    @property
    def in_database(self) -> bool:
        """Whether the queue is in Django's own database, so that its connections see it."""
        return self.database_url is None and self._connection.vendor == "postgresql"

    @property
    def commit(self) -> Commit:
        return self.given_commit or (Commit.TRANSACTION if self.in_database else Commit.ON_COMMIT)

    def url(self) -> str:
        """Where the queue is. Asked each time: a test's database takes the place of the real one."""
        if self.database_url is not None:
            return self.database_url
        connection = self._connection
        if connection.vendor == "postgresql":
            return _postgres_url(connection.settings_dict, self.schema)
        if self.schema is not None:
            raise InvalidConfig("schema: only PostgreSQL has schemas", field="schema")
        if connection.vendor == "sqlite":
            return _sqlite_url(str(connection.settings_dict["NAME"]), self.database)
        raise InvalidConfig(
            f"database_url: {connection.vendor} holds no queue; give the URL of one, sqlite:///... or postgresql://...",
            field="database_url",
        )

    def config(self, *own: Middleware) -> Config:
        return Config(database_url=self.url(), middleware=[*own, *self.middleware], **self.settings)

    @property
    def _connection(self) -> Any:
        try:
            return connections[self.database]
        except ConnectionDoesNotExist:
            raise InvalidConfig(f"database: no {self.database!r:.60} in DATABASES", field="database") from None


def _loaded(given: Any) -> Middleware:
    """An instance, or the dotted path of a class or of an instance."""
    found = import_string(given) if isinstance(given, str) else given
    return found() if isinstance(found, type) else found


def _postgres_url(settings: Mapping[str, Any], schema: str | None) -> str:
    options = settings.get("OPTIONS") or {}
    if "service" in options or not settings["NAME"]:
        raise InvalidConfig(
            "database_url: where a service file leads is not known here; give the URL", field="database_url"
        )
    query = {name: str(value) for name, value in options.items() if name in _PASSED_ON}
    host, port = str(settings["HOST"] or ""), str(settings["PORT"] or "")
    if host.startswith("/") or "," in host:
        query |= {"host": host} | ({"port": port} if port else {})
        place = ""
    else:
        place = f"[{host}]" if ":" in host else host
        place += f":{port}" if port else ""
    user, password = quote(str(settings["USER"] or ""), safe=""), quote(str(settings["PASSWORD"] or ""), safe="")
    login = user + (f":{password}" if password else "") + ("@" if user or password else "")
    if schema is not None:
        query["schema"] = schema
    return f"postgresql://{login}{place}/{quote(settings['NAME'], safe='')}" + (f"?{urlencode(query)}" if query else "")


def _sqlite_url(name: str, alias: str) -> str:
    """A file beside Django's: two SQLite libraries on one file would undo each other's locks. In memory, as in tests,
    the queue is in memory, too."""
    if name == ":memory:" or "mode=memory" in name:
        return f"memory://django-{quote(alias, safe='')}"
    path = Path(name.removeprefix("file:").partition("?")[0]).absolute()
    return f"sqlite:///{quote(str(path.with_name(f'{path.stem}.tasks{path.suffix}')))}"
