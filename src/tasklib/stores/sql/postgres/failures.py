"""What a failed statement means: repeat it, give the connection up, or tell the caller, in our words."""

from __future__ import annotations

from enum import Enum
from typing import Any

import asyncpg

from tasklib.core.errors import (
    InvalidValue,
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    TaskConflict,
    TaskLibError,
)


class Remedy(Enum):
    RECONNECT = "the connection is gone, or led to a server that cannot serve us now"
    REPEAT = "the database undid the statement and asks for another try"
    NONE = "trying again would not help"


_GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.TargetServerAttributeNotMatched,
    asyncpg.ReadOnlySQLTransactionError,  # a primary that became a standby under us
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_NO_WRITES = (asyncpg.ReadOnlySQLTransactionError, asyncpg.TargetServerAttributeNotMatched)
_LIMITS = {"InitializeSessionUserId": "role", "CheckMyDatabase": "database"}
"""Whose limit is reached: by the function that found it, because the text is in the server's language."""
_READ_ONLY = {
    "user": "this role (ALTER ROLE)",
    "database": "this database (ALTER DATABASE)",
    "database user": "this role in this database (ALTER ROLE ... IN DATABASE)",
    "client": "this session, by the options of the database URL",
}
"""For whom somebody set it, by PostgreSQL's word for where a setting comes from. That of the whole server is not among
them: it is made for a while when servers change places."""
_WHY_READ_ONLY = """
SELECT source FROM pg_settings
WHERE name = 'default_transaction_read_only' AND setting = 'on' AND NOT pg_is_in_recovery()
"""
_UNDONE = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,  # the schema changed under a prepared statement, inside a transaction
)
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.DatabaseDroppedError,
    asyncpg.ClientConfigurationError,
)
SCHEMA = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.InvalidColumnReferenceError,  # there is no unique index of idempotency keys
)
CONFLICTS = (asyncpg.UniqueViolationError, asyncpg.ExclusionViolationError)
_TOO_LATE = (TimeoutError, asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError)
_NO_STATEMENT = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)


def is_out_of_time(error: Exception) -> bool:
    """By our own deadline: a timeout of the network has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def remedy(error: Exception) -> Remedy:
    if isinstance(error, (*_REFUSED, TaskLibError)) or is_out_of_time(error):
        return Remedy.NONE
    if isinstance(error, (*_GONE, OSError)):
        return Remedy.RECONNECT
    return Remedy.REPEAT if isinstance(error, _UNDONE) else Remedy.NONE


def connection_limit(error: BaseException) -> str | None:
    """Whether it is the role or the database that may have no more connections. A server that has none left is not
    meant: others give theirs back all the time."""
    if isinstance(error, asyncpg.TooManyConnectionsError):
        # Not in asyncpg's types.
        return _LIMITS.get(getattr(error, "server_source_function", None) or "")
    return None


async def why_read_only(connection: Any, timeout: float) -> StoreRefused | None:
    """For a session that cannot write: what lasts, as opposed to a standby, which may become the primary."""
    source = await connection.fetchval(_WHY_READ_ONLY, timeout=timeout)
    if source not in _READ_ONLY:
        return None
    return StoreRefused(f"PostgreSQL refused: default_transaction_read_only is on for {_READ_ONLY[source]}")


def translate(error: Exception) -> Exception:
    """The error for the caller. What is not the database's fault comes back as it is."""
    if isinstance(error, TaskLibError):
        return error
    text = _text(error)
    if isinstance(error, _REFUSED):
        return StoreRefused(f"PostgreSQL refused: {text}")
    if isinstance(error, SCHEMA):
        return SchemaMismatch(f"the tables are not what this version of tasklib expects: {text}; run: tasklib migrate")
    if isinstance(error, CONFLICTS):  # the text names the index
        return TaskConflict(f"PostgreSQL refused: {text}")
    if isinstance(error, asyncpg.DiskFullError):
        return StoreFull(f"PostgreSQL is out of disk space: {text}")
    if (owner := connection_limit(error)) is not None:
        return StoreBusy(f"the CONNECTION LIMIT of the {owner} is used up: {text}")
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return StoreBusy(f"all connections that the server may have (max_connections) are in use: {text}")
    if isinstance(error, _NO_WRITES):
        where = "a standby, or default_transaction_read_only is on for the whole server"
        return StoreUnavailable(f"PostgreSQL takes no writes: {text}; it is {where}")
    if isinstance(error, (*_TOO_LATE, *_UNDONE, asyncpg.InsufficientResourcesError)):
        return StoreBusy(f"PostgreSQL did not answer within the deadline: {text}")
    if isinstance(error, _NO_STATEMENT):
        return StoreRefused(f"{text}; behind PgBouncer in transaction mode add pgbouncer=true to the database URL")
    if isinstance(error, (asyncpg.DataError, asyncpg.ProgramLimitExceededError)):
        return InvalidValue(f"PostgreSQL cannot store this: {text}")
    if isinstance(error, (*_GONE, OSError)):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {text}")
    if isinstance(error, asyncpg.PostgresError):
        return StoreError(f"PostgreSQL: {text}")
    return error


def _text(error: Exception) -> str:
    return str(error).partition("\n")[0].strip() or type(error).__name__
