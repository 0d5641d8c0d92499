"""One call to the database: a connection, a deadline, and what to do when it fails."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import asyncpg

from tasklib.core.errors import StoreBusy, StoreClosed, StoreError, StoreRefused, StoreUnavailable, TaskLibError
from tasklib.stores.sql.columns import TASK_ROW
from tasklib.stores.sql.dialect import column_list, fill, load
from tasklib.stores.sql.postgres import external
from tasklib.stores.sql.postgres.deadlines import Deadline, Deadlines
from tasklib.stores.sql.postgres.failures import (
    Remedy,
    connection_limit,
    is_out_of_time,
    remedy,
    translate,
    why_read_only,
)
from tasklib.stores.sql.postgres.pool import Pool
from tasklib.stores.sql.postgres.statements import SPELLINGS, Statements
from tasklib.stores.sql.postgres.url import Connection, Target, connect
from tasklib.stores.sql.steps import BEGIN, Play, Steps

T = TypeVar("T")

log = logging.getLogger("tasklib.stores")

QUERIES = load("tasklib.stores.sql.postgres", SPELLINGS)
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_NO_OFFSET = timedelta(0)

_BEGIN_READING = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL plan_cache_mode = force_custom_plan;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL statement_timeout = {milliseconds}
"""


class PostgresDriver:
    """What every verb stands on. Belongs to the event loop that started it."""

    def __init__(self, target: Target, pool_size: int, call_timeout: float, clock_offset: float) -> None:
        self.target = target
        self.call_timeout = call_timeout
        self.clock_offset = clock_offset
        self.sql = render(target)
        self.statements = Statements(self.sql)
        self._for_any_driver = Statements(self.sql, any_driver=True)
        self._pool_size = pool_size
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def offset(self) -> timedelta:
        return timedelta(seconds=self.clock_offset) if self.clock_offset else _NO_OFFSET

    @property
    def pool(self) -> Pool:
        if self._pool is None:
            raise StoreClosed("the store is not open, or was closed")
        return self._pool

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(self.connect, self._pool_size)
        self._deadlines = Deadlines()

    async def stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
            self._deadlines.close()

    async def read(self, steps: Callable[[], Steps[T]], *, seconds: float | None = None) -> T:
        if seconds is None:
            return await self.write(steps)

        async def work(connection: Connection, timeout: float) -> T:
            play = Play(steps())
            async with reading(connection, timeout, seconds):
                await self.statements.play(connection, play, self.offset)
            return play.result

        return await self.run(work)

    async def write(self, steps: Callable[[], Steps[T]], *, repeat: bool = True, atomic: bool = False) -> T:
        """Each statement stands alone until the steps ask for a transaction."""

        tries = 0

        async def work(connection: Connection, timeout: float) -> T:
            nonlocal tries
            tries += 1
            play = Play(steps())
            await self.statements.play(connection, play, self.offset, in_doubt=tries > 1)
            if play.query is BEGIN:
                async with transaction(connection, timeout):
                    while play.query is BEGIN:  # steps inside of steps ask for the one that there is
                        play.send(None)
                        await self.statements.play(connection, play, self.offset)
            return play.result

        return await self.run(work, repeat=repeat)

    def play_on(self, connection: object, steps: Callable[[], Steps[T]]) -> T | Awaitable[T]:
        return external.play_on(connection, steps, self._for_any_driver, self.offset)

    async def run(self, work: Callable[[Connection, float], Awaitable[T]], *, repeat: bool = True) -> T:
        """Calls `work` with a connection and the seconds it may take; again, on another connection, when that one was
        lost, and when the database asks for it. `repeat=False`: a statement whose reply was lost is not sent again."""
        pool = self.pool
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            raise StoreError("the store was opened in another event loop")
        deadline = loop.time() + self.call_timeout
        pause = _FIRST_PAUSE
        refusal: Exception | None = None
        while True:
            connection = None
            try:
                connection = pool.take() or await pool.acquire(deadline)
                with Deadline(self._deadlines, deadline):
                    result = await work(connection, deadline - loop.time())
            except BaseException as error:
                if connection is not None:
                    try:
                        refused = await _refused(connection, error, deadline - loop.time())
                    finally:
                        _return(pool, connection, error)
                    if refused is not None:
                        raise refused from error
                if not isinstance(error, Exception):
                    raise
                if refusal is not None and is_out_of_time(error):
                    raise _given_up(refusal, self.call_timeout) from error  # the deadline came before the next refusal
                cure = remedy(error)
                in_doubt = connection is not None and cure is Remedy.RECONNECT
                if isinstance(error, TaskLibError):
                    raise
                # Told at once; but a session that this call has lost may still be counted for a while.
                at_limit = connection_limit(error) is not None and refusal is None
                if cure is Remedy.NONE or at_limit or (in_doubt and not repeat):
                    raise translate(error) from error
                if self._pool is None:
                    raise StoreClosed("the store was closed during the call") from error
                wait = pause * random.uniform(0.5, 1.0)
                if loop.time() + wait >= deadline:
                    raise _given_up(error, self.call_timeout) from error
                if connection is None and refusal is None:
                    log.warning("cannot connect, and will try for %g s: %s", self.call_timeout, translate(error))
                await asyncio.sleep(wait)
                pause, refusal = min(pause * 2, _LONGEST_PAUSE), error
            else:
                pool.release(connection)
                return result

    async def connect(self, timeout: float) -> Connection:
        """A new connection with our settings; finds out whether a pooler that cannot keep them stands in between."""
        if self.target.pgbouncer is None:
            try:
                connection = await connect(self.target, self._settings(), timeout)
            except asyncpg.ProtocolViolationError:  # unsupported startup parameter
                self.target = replace(self.target, pgbouncer=True)
            else:
                try:
                    direct = await _is_direct(connection, timeout)
                except BaseException:
                    connection.terminate()
                    raise
                self.target = replace(self.target, pgbouncer=not direct)
                if direct:
                    return connection
                connection.terminate()
        return await connect(self.target, self._settings(), timeout)

    def _settings(self) -> dict[str, str]:
        if self.target.pgbouncer:
            return {}  # a session of ours is nobody's in particular
        milliseconds = str(max(1, round(self.call_timeout * 1000)))
        return {
            # The statistics of a queue are always wrong. Every statement of ours has an index to go by, and these are
            # what the planner would fall for.
            "enable_seqscan": "off",
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            "jit": "off",
            # The claim takes most of a millisecond to plan, and PostgreSQL's own choice would be to plan each one anew.
            "plan_cache_mode": "force_generic_plan",
            # A statement whose caller gave up ends too, and a stopped process does not keep its locks.
            "statement_timeout": milliseconds,
            "idle_in_transaction_session_timeout": milliseconds,
        }


@asynccontextmanager
async def transaction(connection: Connection, timeout: float | None) -> AsyncIterator[None]:
    """READ COMMITTED, whatever the server's default is: each statement is to see what was committed before it. The
    timeout is for all statements together."""
    async with _block(connection, timeout, "BEGIN ISOLATION LEVEL READ COMMITTED"):
        yield


@asynccontextmanager
async def reading(connection: Connection, timeout: float, seconds: float) -> AsyncIterator[None]:
    """For people, who would rather be told that it takes too long. Planned for the values at hand, by an index that has
    the order: the planner's guesses at how many rows match would lead it elsewhere."""
    seconds = min(timeout, seconds)
    begin = _BEGIN_READING.format(milliseconds=max(1, round(seconds * 1000)))
    try:
        async with _block(connection, timeout, begin):
            yield
    except asyncpg.QueryCanceledError as error:
        raise StoreBusy(f"the answer took longer than {seconds:g} s and was given up; narrow the filter") from error


@asynccontextmanager
async def _block(connection: Connection, timeout: float | None, begin: str) -> AsyncIterator[None]:
    async with asyncio.timeout(timeout):
        await connection.execute(begin)
        try:
            yield
        except (asyncpg.PostgresError, TaskLibError):
            # Refused by the server, which is there, or by us. After anything else the connection is given up.
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")


def render(target: Target) -> dict[str, str]:
    """The queries with names of this schema filled in: once, when the store is made. All are checked identifiers."""
    names = {
        "task_columns": column_list(TASK_ROW),
        "schema": target.quoted_schema,
        "schema_name": f"'{target.schema}'",
        "work_channel": f"'{target.work_channel}'",
        "done_channel": f"'{target.done_channel}'",
    }
    return {name: fill(text, names) for name, text in QUERIES.items()}


def _return(pool: Pool, connection: Connection, error: BaseException) -> None:
    """After an error: whole only if the server itself said no, and nothing is left open."""
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        connection.kept.clear()
    whole = (
        isinstance(error, (asyncpg.PostgresError, asyncpg.InterfaceError, TaskLibError))
        and remedy(error) is not Remedy.RECONNECT
        and not connection.is_closed()
        and not connection.is_in_transaction()
    )
    if whole:
        pool.release(connection)
    else:
        pool.drop(connection, softly=isinstance(error, (TimeoutError, asyncio.CancelledError)))


async def _refused(connection: Connection, error: BaseException, timeout: float) -> StoreRefused | None:
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        with suppress(Exception):  # whatever it is, it happens again when the call is repeated
            return await why_read_only(connection, timeout)
    return None


def _given_up(error: Exception, seconds: float) -> Exception:
    told = translate(error)
    if isinstance(told, (StoreBusy, StoreUnavailable)):
        return type(told)(f"{told} (tried for {seconds:g} s)")
    return told


async def _is_direct(connection: Connection, timeout: float) -> bool:
    """A pooler makes up the process number it gives at the start. The simple protocol passes through all of them."""
    pid = int(connection.get_server_pid())
    status = await connection.execute(f"SELECT WHERE pg_backend_pid() = {pid}", timeout=timeout)
    return bool(status == "SELECT 1")
