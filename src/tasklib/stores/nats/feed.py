"""The feed: every change of the bucket in order, headers only, without gaps.

An ephemeral ordered consumer. Each message tells its number; a missing one, a silent consumer or a lost connection make
a new consumer that goes on behind the last message seen.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any

from nats.aio.msg import Msg

from tasklib.core.errors import StoreClosed, StoreError
from tasklib.stores.nats.failures import PASSING
from tasklib.stores.nats.kv import KeyValueStore

log = logging.getLogger("tasklib.store")

_HEARTBEAT_SECONDS = 2
_SILENCE_SECONDS = 3.0 * _HEARTBEAT_SECONDS
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class Feed:
    """Calls `changed(sequence, subject, headers)` for each change, and `current(anew)` whenever it has caught up, with
    `anew` where an interruption came before."""

    def __init__(
        self,
        kv: KeyValueStore,
        changed: Callable[[int, str, dict[str, str]], None],
        current: Callable[[bool], None],
        restarted: Callable[[], None],
        *,
        only_new: bool,
    ) -> None:
        self._kv = kv
        self._changed = changed
        self._current = current
        self._restarted = restarted
        self._only_new = only_new
        self.seen = 0
        """Nothing up to this sequence is left to be told."""
        self.caught_up = False
        self._told = 0
        self._delivered = 0
        self._behind = 0
        self._anew = True
        self._heard_at = 0.0
        self._broken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._kv.connection.on_loss(self._broken.set)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._follow()
                pause = _FIRST_PAUSE
            except StoreClosed:
                return
            except (*PASSING, StoreError) as error:
                log.debug("the feed of changes is interrupted: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except Exception:
                log.exception("the feed of changes stumbled")
                await asyncio.sleep(_LONGEST_PAUSE)

    async def _follow(self) -> None:
        """One consumer, until something is wrong with it."""
        self._broken.clear()
        client = self._kv.connection.client
        last: int = (await self._kv.info())["state"]["last_seq"]
        if last < self.seen:  # the bucket was made anew, or went back to an older state
            self._start_over()
        name = f"tasklib-{secrets.token_hex(8)}"
        inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._delivered = 0
        subscription = await client.subscribe(inbox, cb=self._received, pending_msgs_limit=0, pending_bytes_limit=0)
        stream = self._kv.address.stream
        try:
            answer = await self._kv.api(
                f"CONSUMER.CREATE.{stream}.{name}",
                {"stream_name": stream, "config": self._config(name, inbox, last)},
            )
            self._behind, self._anew = last, True
            if not answer["num_pending"]:
                await self._catch_up()
            await self._until_broken()
        finally:
            await _quietly(subscription.unsubscribe())
            await _quietly(client.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}"))

    def _start_over(self) -> None:
        self.seen = self._told = 0
        self._only_new = False
        self.caught_up = False
        self._restarted()

    def _config(self, name: str, inbox: str, last: int) -> dict[str, Any]:
        if self._only_new and not self._told:
            self._told = last
        if self._told:
            start: dict[str, Any] = {"deliver_policy": "by_start_sequence", "opt_start_seq": self._told + 1}
        else:
            start = {"deliver_policy": "last_per_subject"}
        return {
            "name": name,
            "deliver_subject": inbox,
            "filter_subject": f"{self._kv.address.prefix}>",
            "ack_policy": "none",
            "max_deliver": 1,
            "flow_control": True,
            "idle_heartbeat": _HEARTBEAT_SECONDS * 1_000_000_000,
            "inactive_threshold": 30 * 1_000_000_000,
            "headers_only": True,
            "mem_storage": True,
            "num_replicas": 1,
            "replay_policy": "instant",
            **start,
        }

    async def _until_broken(self) -> None:
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        while not self._broken.is_set():
            left = self._heard_at + _SILENCE_SECONDS - loop.time()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self._broken.wait()
            except TimeoutError:
                continue

    async def _received(self, message: Msg) -> None:
        if self._broken.is_set():
            return
        self._heard_at = asyncio.get_running_loop().time()
        headers = message.headers or {}
        if "Status" in headers:
            await self._control(message, headers)
            return
        fields = message.reply.split(".")
        sequence, number, pending = int(fields[-4]), int(fields[-3]), fields[-1]
        if number != self._delivered + 1:
            self._broken.set()
            return
        self._delivered = number
        if sequence > self._told:
            self._told = sequence
            self.seen = max(self.seen, sequence)
            self._changed(sequence, message.subject, headers)
        if pending == "0":
            await self._catch_up()

    async def _catch_up(self) -> None:
        """The consumer has nothing more. What was last in the stream may have been a mark that has expired, which will
        never come; or the replica that the consumer is on is behind, and it will."""
        if self._told < self._behind and await self._kv.has(self._told + 1, self._behind):
            return
        self.seen = max(self.seen, self._behind)
        self.caught_up = True
        anew, self._anew = self._anew, False
        self._current(anew)

    async def _control(self, message: Msg, headers: dict[str, str]) -> None:
        if headers["Status"] != "100":  # the consumer is gone
            self._broken.set()
            return
        answer = message.reply or headers.get("Nats-Consumer-Stalled")
        if answer:
            await self._kv.connection.client.publish(answer)
        told = headers.get("Nats-Last-Consumer")
        if told is None:
            return  # in the midst of what it sends: to ask anything now would let the rest pile up
        if int(told) != self._delivered:
            self._broken.set()
        elif self._anew:
            await self._catch_up()


async def _quietly(call: Any) -> None:
    try:
        await call
    except (*PASSING, RuntimeError):
        pass
