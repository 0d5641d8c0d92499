"""The key-value bucket: a stream as KV buckets are, read many keys at a time and written in atomic batches."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklib.core.errors import InvalidValue, StoreRefused
from tasklib.stores.nats.address import Address
from tasklib.stores.nats.clock import Clock
from tasklib.stores.nats.connection import Connection
from tasklib.stores.nats.failures import Again, Conflict, refusal

T = TypeVar("T")

LARGEST_BATCH = 1000
"""Messages in one atomic batch; the servers' own limit unless they are configured otherwise."""

_SUBJECTS_AT_ONCE = 1000
_BYTES_AT_ONCE = 16 * 1024 * 1024
_UNDER_WAY = 500
_GATHER_SECONDS = 5.0
_HEADER_ROOM = 4096
"""What a message's headers take of max_payload, at most."""

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_MARKER_TTL = "1h"
"""How long the mark of a deletion stays, for watchers that were away."""


class Entry(NamedTuple):
    key: str
    revision: int
    data: bytes
    deleted: bool


class Write(NamedTuple):
    """One guarded write: what the key's revision must be (0: there is none), and what it is to hold."""

    key: str
    expected: int
    data: bytes = b""
    note: str | None = None
    deletes: bool = False


class KeyValueStore:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.replicas = 1
        self.written = 0
        """The highest sequence that this store knows of: no later read may be older."""

    @property
    def address(self) -> Address:
        return self.connection.address

    # -- reading ------------------------------------------------------------------------------------------------------

    async def api(self, subject: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
        payload = b"" if request is None else json.dumps(request).encode()
        message = await self.connection.ask(f"$JS.API.{subject}", payload)
        answer: dict[str, Any] = json.loads(message.data)
        if "error" in answer:
            raise refusal(answer["error"])
        return answer

    async def info(self) -> dict[str, Any]:
        """The stream as its leader has it; the clock learns from the answer."""
        sent = time.monotonic()
        answer = await self.api(f"STREAM.INFO.{self.address.stream}")
        self.clock.learn(answer["ts"], sent, time.monotonic())
        self.replicas = answer["config"]["num_replicas"]
        return answer

    async def read(self, keys: Sequence[str]) -> dict[str, Entry]:
        """The latest entries of these keys, deletions included. Never older than what this store has written or seen;
        a key that is not found is asked for again at the leader. Where the entries are too large for one answer, those
        at the front are there; `read_all` gives all."""
        found: dict[str, Entry] = {}
        for start in range(0, len(keys), _SUBJECTS_AT_ONCE):
            part = keys[start : start + _SUBJECTS_AT_ONCE]
            entries, whole = await self._read_part(part)
            found.update(entries)
            if not whole:
                break
        return found

    async def read_all(self, keys: Iterable[str]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        left = list(keys)
        while left:
            part, left = left[:_SUBJECTS_AT_ONCE], left[_SUBJECTS_AT_ONCE:]
            entries, whole = await self._read_part(part)
            found.update(entries)
            if not whole:
                left += [key for key in part if key not in entries]
        return found

    async def under(self, prefix: str) -> list[Entry]:
        """All entries whose keys begin so, deletions left out, in the order they were written."""
        found: list[Entry] = []
        sequence = 1
        while True:
            request = {
                "seq": sequence,
                "next_by_subj": f"{self.address.prefix}{prefix}>",
                "batch": 1000,
                "max_bytes": _BYTES_AT_ONCE,
            }
            messages, last = await self._gather(request)
            entries = [self._entry(message) for message in messages]
            found += [entry for entry in entries if not entry.deleted]
            if not entries or not int((last.headers or {}).get("Nats-Num-Pending", "0")):
                return found
            sequence = entries[-1].revision + 1

    async def leader_read(self, key: str) -> Entry | None:
        """As the leader has it: slower, and nobody knows better."""
        kept = await self._leaders_message({"last_by_subj": self.address.prefix + key})
        if kept is None:
            return None
        headers = base64.b64decode(kept.get("hdrs", "")).decode("utf-8", "replace")
        return Entry(key, kept["seq"], base64.b64decode(kept.get("data", "")), "KV-Operation:" in headers)

    async def has(self, first: int, last: int) -> bool:
        """Whether the leader still has a message of these sequences."""
        kept = await self._leaders_message({"seq": first, "next_by_subj": f"{self.address.prefix}>"})
        return kept is not None and kept["seq"] <= last

    async def _leaders_message(self, request: dict[str, Any]) -> dict[str, Any] | None:
        message = await self.connection.ask(
            f"$JS.API.STREAM.MSG.GET.{self.address.stream}", json.dumps(request).encode()
        )
        answer = json.loads(message.data)
        if "error" not in answer:
            kept: dict[str, Any] = answer["message"]
            return kept
        if answer["error"].get("code") == 404:
            return None
        raise refusal(answer["error"])

    async def _read_part(self, keys: Sequence[str]) -> tuple[dict[str, Entry], bool]:
        prefix = self.address.prefix
        request = {"multi_last": [prefix + key for key in keys], "max_bytes": _BYTES_AT_ONCE}
        messages, last = await self._gather(request)
        headers = last.headers or {}
        entries = {entry.key: entry for entry in map(self._entry, messages)}
        whole = not int(headers.get("Nats-Num-Pending", "0"))
        if self.replicas > 1:
            if "Nats-UpTo-Sequence" in headers and int(headers["Nats-UpTo-Sequence"]) < self.written:
                raise Again("a replica is behind")
            if whole:
                missing = [key for key in keys if key not in entries]
                for entry in await asyncio.gather(*map(self.leader_read, missing)):
                    if entry is not None:
                        entries[entry.key] = entry
        return entries, whole

    async def _gather(self, request: dict[str, Any]) -> tuple[list[Msg], Msg]:
        """All messages of an answer, and the one that ends it."""
        messages: list[Msg] = []

        def take(message: Msg) -> Msg | None:
            if message.headers is not None and "Status" in message.headers:
                return message
            messages.append(message)
            return None

        subject, payload = f"$JS.API.DIRECT.GET.{self.address.stream}", json.dumps(request).encode()
        last = await self.connection.exchange(
            lambda client, reply: client.publish(subject, payload, reply), take, _GATHER_SECONDS
        )
        status = (last.headers or {})["Status"]
        if status == "503":
            raise Again("nobody answers for the bucket at the moment")
        if status not in ("204", "404"):
            raise StoreRefused(f"NATS refused a read: {last.headers}")
        return messages, last

    def _entry(self, message: Msg) -> Entry:
        headers = message.headers or {}
        key = headers["Nats-Subject"].removeprefix(self.address.prefix)
        return Entry(key, int(headers["Nats-Sequence"]), message.data, "KV-Operation" in headers)

    # -- writing ------------------------------------------------------------------------------------------------------

    def check_size(self, size: int, what: str) -> None:
        limit = self.connection.max_payload
        if size + _HEADER_ROOM > limit:
            message = (
                f"{what}: a record of {size:,} bytes does not fit the NATS server's max_payload of {limit:,}; "
                f"raise max_payload in the configuration of the servers"
            )
            raise InvalidValue(message, field=what)

    async def write(self, writes: Sequence[Write]) -> int:
        """All or none, under all guards: the sequence of the last, which the others precede in order. Conflict: a guard
        did not hold. Again: the answer was lost. More than one is an atomic batch, which a server first writes to a
        file of its own: it takes ten times as long as a single write."""
        if len(writes) == 1:
            message = await self.connection.ask(*self._message(writes[0], {}))
        else:
            message = await self._write_batch(writes)
        return self._sequence(json.loads(message.data))

    def _sequence(self, answer: dict[str, Any]) -> int:
        if "error" in answer:
            raise refusal(answer["error"])
        sequence: int = answer["seq"]
        self.written = max(self.written, sequence)
        return sequence

    async def write_each(self, writes: Sequence[Write]) -> list[int]:
        """Each under its own guard, all under way at once: their sequences, 0 for those whose guard did not hold."""
        sequences: list[int] = []
        for start in range(0, len(writes), _UNDER_WAY):
            sequences += await self._write_each(writes[start : start + _UNDER_WAY])
        return sequences

    async def _write_each(self, writes: Sequence[Write]) -> list[int]:
        answers: dict[int, bytes] = {}

        async def send(client: Client, reply: str) -> None:
            for place, write in enumerate(writes):
                subject, data, headers = self._message(write, {})
                await client.publish(subject, data, f"{reply}-{place}", headers)

        def take(message: Msg) -> dict[int, bytes] | None:
            if message.headers is not None and message.headers.get("Status") == "503":
                raise Again("JetStream has no leader at the moment")
            answers[int(message.subject.rpartition("-")[2])] = message.data
            return answers if len(answers) == len(writes) else None

        await self.connection.exchange(send, take, _GATHER_SECONDS)
        sequences = []
        failure: Exception | None = None
        for answer in (json.loads(answers[place]) for place in range(len(writes))):
            try:
                sequences.append(self._sequence(answer))
            except Conflict:
                sequences.append(0)
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure
        return sequences

    async def _write_batch(self, writes: Sequence[Write]) -> Msg:
        client = self.connection.client
        batch = secrets.token_hex(8)
        *front, last = writes
        for place, write in enumerate(front, 1):
            subject, data, headers = self._message(write, {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)})
            await client.publish(subject, data, "", headers)
        headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(len(writes)), "Nats-Batch-Commit": "1"}
        return await self.connection.ask(*self._message(last, headers))

    def _message(self, write: Write, headers: dict[str, str]) -> tuple[str, bytes, dict[str, str]]:
        headers[_EXPECTED] = str(write.expected)
        if write.note is not None:
            headers["Tasklib-Note"] = write.note
        if write.deletes:
            headers["KV-Operation"] = "DEL"
            headers["Nats-TTL"] = _MARKER_TTL
        return self.address.prefix + write.key, write.data, headers

    async def update(
        self,
        key: str,
        change: Callable[[Entry | None], bytes | None],
        *,
        noted: bool = False,
        beside: Callable[[], Sequence[Write]] = tuple,
    ) -> bytes | None:
        """Reads, changes and writes a small entry until nobody came in between. None from `change`: leave it. `noted`:
        the feed, which has headers only, is to tell what it holds. `beside`: what is written with it, or not at all."""

        async def work() -> bytes | None:
            while True:
                entry = (await self.read([key])).get(key)
                data = change(None if entry is None or entry.deleted else entry)
                if data is None:
                    return None
                try:
                    note = data.decode() if noted else None
                    await self.write([Write(key, 0 if entry is None else entry.revision, data, note), *beside()])
                except Conflict:
                    continue
                return data

        return await self.connection.run(work)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self.connection.run(work)
