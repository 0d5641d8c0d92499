"""The bucket's own life: made when it is not there, checked when it is, and proved to honour compare-and-set."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from tasklib.core.errors import SchemaMismatch, StoreRefused
from tasklib.stores.nats import keys
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.kv import Entry, KeyValueStore, Write

STEPS = [
    (
        "0001_bucket",
        "A KV bucket with history 1, atomic batches, TTLs for marks of deletions, and discard new: full is an error.\n"
        "Keys: tasks.task.{id}, tasks.idem.{key}, tasks.control.{name}, tasks.worker.{id}, tasks.type.{name},\n"
        "tasks.count.{...}, tasks.token.{id}, tasks.audit.{...}, tasks.schema.",
    ),
    (
        "0002_schedules_and_flows",
        "Nothing is rewritten: what a record of version 1 does not have is null. New keys: tasks.alert.{name}.\n"
        "Marks the bucket, so that a tasklib which does not know the new fields no longer opens it.",
    ),
]
CURRENT = len(STEPS)

_MARK = "tasklib"
_NOT_FOUND = 10059
_REQUIRED = {"allow_atomic": True, "allow_direct": True, "allow_msg_ttl": True, "max_msgs_per_subject": 1}


def _config(kv: KeyValueStore) -> dict[str, Any]:
    address = kv.address
    return {
        "name": address.stream,
        "description": "tasklib",
        "subjects": [f"{address.prefix}>"],
        "retention": "limits",
        "storage": "file",
        "num_replicas": address.replicas or 1,
        "max_msgs_per_subject": 1,
        "max_bytes": address.max_bytes or -1,
        "max_msgs": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "max_consumers": -1,
        "discard": "new",
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "allow_atomic": True,
        "allow_msg_ttl": True,
        "deny_delete": True,
        "duplicate_window": 120_000_000_000,
    }


async def exists(kv: KeyValueStore) -> bool:
    try:
        return await kv.run(lambda: _exists(kv))
    except StoreRefused as error:
        raise _explained(error) from None


async def _exists(kv: KeyValueStore) -> bool:
    try:
        await kv.info()
    except StoreRefused as error:
        if str(_NOT_FOUND) in str(error):
            return False
        raise
    return True


async def version(kv: KeyValueStore) -> int | None:
    """None: there is no bucket yet. A bucket of somebody else is refused."""
    if not await exists(kv):
        return None
    entry = await kv.run(lambda: kv.leader_read(keys.SCHEMA))
    if entry is None or entry.deleted:
        info = await kv.run(kv.info)
        if info["config"].get("description") != _MARK and info["state"]["messages"]:
            raise SchemaMismatch(f"the bucket {kv.address.bucket} is not tasklib's; name another with ?bucket=")
        return 0
    found: int = json.loads(entry.data)["version"]
    return found


async def prepare(kv: KeyValueStore) -> None:
    """Gives an empty server its bucket; refuses an older, newer or foreign one."""
    found = await version(kv)
    if not found:
        await migrate(kv)
        found = CURRENT
    if found > CURRENT:
        raise SchemaMismatch(f"the bucket's schema is version {found}, this tasklib knows {CURRENT}: upgrade tasklib")
    if found < CURRENT:
        raise SchemaMismatch(
            f"the bucket's schema is version {found}, this tasklib needs {CURRENT}; run: tasklib migrate"
        )
    await _check_config(kv)
    await _prove(kv)


def behind(version: int | None) -> list[str]:
    return [name for name, _ in STEPS[version or 0 :]]


async def migrate(kv: KeyValueStore) -> list[str]:
    found = await version(kv)
    if found is None:
        await kv.run(lambda: _create(kv))
    await kv.run(kv.info)
    done: list[str] = []

    def mark(entry: Entry | None) -> bytes | None:
        there = 0 if entry is None else int(json.loads(entry.data)["version"])
        done[:] = behind(there)
        return json.dumps({"version": CURRENT}).encode() if done else None

    await kv.update(keys.SCHEMA, mark)
    return done


async def _create(kv: KeyValueStore) -> None:
    try:
        await kv.api(f"STREAM.CREATE.{kv.address.stream}", _config(kv))
    except StoreRefused as error:
        if await _exists(kv):
            return
        raise _explained(error) from None


async def _check_config(kv: KeyValueStore) -> None:
    config = (await kv.run(kv.info))["config"]
    wrong = [name for name, value in _REQUIRED.items() if config.get(name) != value]
    if config.get("discard") != "new":
        wrong.append("discard")
    if wrong:
        raise StoreRefused(f"the bucket {kv.address.bucket} is not set up as tasklib needs it: {', '.join(wrong)}")
    wanted = kv.address.replicas
    if wanted is not None and config["num_replicas"] != wanted:
        message = f"the bucket {kv.address.bucket} has {config['num_replicas']} replicas, the URL says {wanted}"
        raise StoreRefused(f"{message}; change it with: nats stream edit {kv.address.stream} --replicas {wanted}")


async def _prove(kv: KeyValueStore) -> None:
    """Everything rests on compare-and-set: a write under a wrong revision must be refused, alone and in a batch."""

    async def refused(*writes: Write) -> bool:
        try:
            await kv.write(writes)
        except Conflict:
            return True
        return False

    async def work() -> bool:
        key = keys.PROBE + secrets.token_hex(8)
        first = await kv.write([Write(key, 0, b"1")])
        honoured = await asyncio.gather(
            refused(Write(key, 0, b"2")),
            refused(Write(key, first + 1, b"2")),
            refused(Write(key + "-other", 0, b"2"), Write(key, 0, b"2")),
        )
        await refused(Write(key, first, deletes=True))
        return all(honoured)

    if not await kv.run(work):
        raise StoreRefused("this server does not honour compare-and-set: tasks would be lost or run twice")


def _explained(error: StoreRefused) -> StoreRefused:
    if "10039" in str(error) or "10076" in str(error):
        return StoreRefused("JetStream is not enabled on this server or for this account")
    return error
