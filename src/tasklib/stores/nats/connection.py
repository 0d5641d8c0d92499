"""The connection: one client of nats-py at a time, replaced by a new one when it is lost.

nats-py's own reconnecting is off: it would send again, after the reconnect, what a caller has long given up on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklib.core.errors import StoreClosed, StoreError, StoreRefused, StoreUnavailable
from tasklib.stores.nats.address import Address
from tasklib.stores.nats.failures import PASSING, Again, given_up, is_permanent

log = logging.getLogger("tasklib.store")

T = TypeVar("T")

MINIMUM = (2, 12, 0)
"""The first server with atomic batches, without which a submit of several tasks could not be all or none."""

_PING_SECONDS = 5
_CONNECT_SECONDS = 5.0
_ATTEMPT_SECONDS = 2.5
"""How long an answer is waited for before it is looked up whether the call was carried out."""
_CANCEL_SECONDS = 0.05
_LOOK_SECONDS = 0.1
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_BUFFERED_BYTES = 16 * 1024 * 1024


class Connection:
    def __init__(self, address: Address, call_timeout: float) -> None:
        self.address = address
        self.call_timeout = call_timeout
        self.max_payload = 0
        self.version = ""
        self._client: Client | None = None
        self._inbox = ""
        self._waiting: dict[str, Callable[[Msg | None], None]] = {}
        """What to do with a reply; None: the connection was lost."""
        self._tokens = 0
        self._connected = asyncio.Event()
        self._lost: list[Callable[[], None]] = []
        self._keeper: asyncio.Task[None] | None = None
        self._refused: StoreError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._servers = list(address.servers)
        self._told_at = float("-inf")

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")
        if self._keeper is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._keeper = self._loop.create_task(self._keep())
        try:
            async with asyncio.timeout(self.call_timeout):
                await self._connected.wait()
        except TimeoutError:
            await self.stop(forever=False)
            raise StoreUnavailable(f"no NATS server answers at {self.address}") from None
        except BaseException:
            await self.stop(forever=False)
            raise
        if self._refused is not None:
            refused = self._refused
            await self.stop(forever=False)
            raise refused

    async def stop(self, *, forever: bool = True) -> None:
        self._closed = self._closed or forever
        keeper, self._keeper = self._keeper, None
        while keeper is not None and not keeper.done():
            keeper.cancel()  # more than once: a client that is just connecting swallows it
            await asyncio.wait([keeper], timeout=_CANCEL_SECONDS)
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        self._forget()

    @property
    def alive(self) -> bool:
        return self._keeper is not None and not self._keeper.done()

    def on_loss(self, call: Callable[[], None]) -> None:
        self._lost.append(call)

    # -- talking ------------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of now; Again while there is none."""
        if self._closed:
            raise StoreClosed("the store is closed")
        if self._keeper is None:
            raise StoreClosed("the store is not open")
        if asyncio.get_running_loop() is not self._loop:
            raise StoreError("the store was opened in another event loop")
        if self._client is None or not self._client.is_connected:
            raise Again("not connected")
        return self._client

    async def exchange(
        self, send: Callable[[Client, str], Awaitable[None]], take: Callable[[Msg], T | None], seconds: float
    ) -> T:
        """Calls `send` with a subject to reply to, and `take` with every message that comes there, or there with a dash
        and a number behind it, until it returns something or raises."""
        client = self.client
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def handle(message: Msg | None) -> None:
            if answer.done():
                return
            try:
                if message is None:
                    raise Again("the connection was lost")
                taken = take(message)
            except Exception as error:
                answer.set_exception(error)
            else:
                if taken is not None:
                    answer.set_result(taken)

        self._tokens += 1
        token = str(self._tokens)
        self._waiting[token] = handle
        try:
            await send(client, f"{self._inbox}.{token}")
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            self._waiting.pop(token, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen, also where sending has failed before it

    async def ask(self, subject: str, payload: bytes = b"", headers: dict[str, str] | None = None) -> Msg:
        """One question, one answer."""
        return await self.exchange(
            lambda client, reply: client.publish(subject, payload, reply, headers), _answer, _ATTEMPT_SECONDS
        )

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Calls `work`, again and again while it gets no answer, until the call's deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.call_timeout
        pause = _FIRST_PAUSE
        last: BaseException | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await work()
            except StoreError:
                raise
            except PASSING as error:
                if not isinstance(error, TimeoutError) or last is None:
                    last = error
            if self._refused is not None and self._client is None:
                raise self._refused
            wait = pause * random.uniform(0.5, 1.0)
            if loop.time() + wait >= deadline:
                raise given_up(last, self.call_timeout)
            await asyncio.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                async with asyncio.timeout_at(deadline):
                    await self._connected.wait()
            except TimeoutError:
                raise given_up(last, self.call_timeout) from None

    # -- keeping it up ------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                gone = await self._connect()
            except Exception as error:
                self._refused = _lasting(error)
                if self._refused is not None:
                    self._connected.set()  # whoever waits is told
                self._tell("cannot connect to NATS: %s", error)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            self._refused = None
            self._connected.set()
            await self._until_lost(gone)
            self._connected.clear()
            client, self._client = self._client, None
            self._tell("the connection to NATS was lost%s", "")
            if client is not None:
                await client.close()
            self._forget()
            for call in list(self._lost):
                call()

    async def _until_lost(self, gone: asyncio.Event) -> None:
        """nats-py closes a lost connection by sending what is left first. Where that fails or hangs it tells nobody,
        but it has called itself closed before: so that is looked at, too."""
        while self._client is not None and not self._client.is_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await gone.wait()
                    return

    async def _connect(self) -> asyncio.Event:
        """Tries each server once. The event is set when the connection is lost."""
        failure: Exception = nats.errors.NoServersError()
        for server in random.sample(self._servers, len(self._servers)):
            client, gone = Client(), asyncio.Event()
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await client.connect(server, **self._options(gone))
                self._check(client)
                inbox = f"_INBOX.{secrets.token_hex(11)}"
                await client.subscribe(f"{inbox}.*", cb=self._answered, pending_msgs_limit=0, pending_bytes_limit=0)
            except (OSError, nats.errors.Error, StoreError) as error:
                failure = error
                await client.close()
                if _lasting(error) is not None:
                    break
                continue
            except BaseException:
                await client.close()
                raise
            self._client, self._inbox = client, inbox
            self.max_payload = client.max_payload
            self._servers += [
                found for uri in client.discovered_servers if (found := f"nats://{uri.netloc}") not in self._servers
            ]
            return gone
        raise failure

    def _options(self, gone: asyncio.Event) -> dict[str, Any]:
        address = self.address

        async def closed() -> None:
            gone.set()

        async def failed(error: Exception) -> None:
            log.debug("nats: %s", error)

        options: dict[str, Any] = {
            "name": "tasklib",
            "allow_reconnect": False,
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0,
            "connect_timeout": _CONNECT_SECONDS,
            "ping_interval": _PING_SECONDS,
            "max_outstanding_pings": 2,
            "pending_size": _BUFFERED_BYTES,
            "flush_timeout": _CONNECT_SECONDS,
            "skip_subject_validation": True,
            "closed_cb": closed,
            "disconnected_cb": closed,
            "error_cb": failed,
            "user": address.user,
            "password": address.password,
            "token": address.token,
            "user_credentials": address.credentials,
            "tls": address.context(),
        }
        return {name: value for name, value in options.items() if value is not None}

    def _check(self, client: Client) -> None:
        version = client.connected_server_version
        if (version.major, version.minor, version.patch) < MINIMUM:
            wanted = ".".join(map(str, MINIMUM))
            raise StoreRefused(f"NATS server {version} is too old: tasklib needs {wanted} or newer (atomic batches)")
        self.version = f"{version.major}.{version.minor}.{version.patch}"

    async def _answered(self, message: Msg) -> None:
        handle = self._waiting.get(message.subject.rpartition(".")[2].partition("-")[0])
        if handle is not None:
            handle(message)

    def _forget(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for handle in waiting.values():
            handle(None)

    def _tell(self, message: str, detail: object) -> None:
        """A server that goes away costs a few log lines, however many calls are under way."""
        now = time.monotonic()
        if now - self._told_at >= 10:
            self._told_at = now
            log.warning(message, detail)


def _answer(message: Msg) -> Msg:
    if message.headers is not None and message.headers.get("Status") == "503":
        raise Again("JetStream does not answer: it is off, or has no leader at the moment")
    return message


def _lasting(error: Exception) -> StoreError | None:
    if isinstance(error, StoreError):
        return error
    return StoreRefused(f"NATS refused the connection: {error}") if is_permanent(error) else None
