"""What `tasklib doctor` wants to know of a NATS server and its bucket."""

from __future__ import annotations

from typing import Any

from tasklib.core import codec
from tasklib.core.errors import SchemaMismatch
from tasklib.stores.checkup import LEASE_ENDS_SOON, SEEN_LATELY, clock, leases, unhandled
from tasklib.stores.nats import schema
from tasklib.stores.nats.cache import TaskCache
from tasklib.stores.nats.kv import KeyValueStore
from tasklib.stores.nats.operate import Workers
from tasklib.stores.nats.reads import Reads
from tasklib.stores.values import Finding

_ROOMY_PAYLOAD = 2 * codec.MAX_BYTES + 256 * 1024
"""A payload and a result of the largest size, errors and history beside them."""


async def findings(kv: KeyValueStore, cache: TaskCache, reads: Reads, workers: Workers) -> list[Finding]:
    found = [Finding("ok", "server", f"NATS {kv.connection.version}"), _payload(kv.connection.max_payload)]
    try:
        version = await schema.version(kv)
    except SchemaMismatch as error:
        return [*found, Finding("error", "schema", str(error))]
    if version is None:
        return [*found, Finding("warning", "schema", "there is no bucket yet", "run: tasklib migrate")]
    if version != schema.CURRENT:
        message = f"version {version}, this tasklib needs {schema.CURRENT}"
        return [*found, Finding("error", "schema", message, "run: tasklib migrate")]
    found.append(Finding("ok", "schema", f"version {version} in bucket {kv.address.bucket}"))
    info = await kv.run(kv.info)
    found += [clock(-kv.clock.correction, "server"), _replicas(info), _room(info), _flushing(info)]
    found += [await _backlog(reads, workers), await _leases(kv, cache)]
    return found


def _payload(limit: int) -> Finding:
    message = f"a record may take {limit:,} bytes (max_payload)"
    if limit >= _ROOMY_PAYLOAD:
        return Finding("ok", "max_payload", message)
    advice = "set max_payload: 4MB on every server for payloads and results of up to 1 MiB"
    return Finding("warning", "max_payload", message, advice)


def _replicas(info: dict[str, Any]) -> Finding:
    wanted = info["config"]["num_replicas"]
    if wanted == 1:
        message = "one replica: the loss of its server's disk is the loss of the queue"
        return Finding("warning", "replicas", message, "three servers and ?replicas=3")
    behind = [
        peer["name"]
        for peer in info.get("cluster", {}).get("replicas") or []
        if peer.get("offline") or not peer.get("current")
    ]
    if behind:
        message = f"{len(behind)} of {wanted} replicas are away or behind: {', '.join(behind)}"
        return Finding("warning", "replicas", message, "look after those servers")
    return Finding("ok", "replicas", f"{wanted} replicas, all current")


def _room(info: dict[str, Any]) -> Finding:
    most, used = info["config"]["max_bytes"], info["state"]["bytes"]
    if most <= 0:
        return Finding("ok", "room", f"{used:,} bytes; no limit of the bucket's own")
    message = f"{used:,} of {most:,} bytes"
    return Finding(
        "ok" if used < 0.8 * most else "warning", "room", message, "raise max_bytes, or keep tasks less long"
    )


def _flushing(info: dict[str, Any]) -> Finding:
    message = "what is acknowledged is flushed to disk every two minutes unless sync_interval says otherwise"
    advice = (
        "a server does not tell its clients: look at sync_interval in its configuration (always: before each reply)"
    )
    return Finding("ok" if info["config"]["num_replicas"] > 1 else "warning", "disk", message, advice)


async def _backlog(reads: Reads, workers: Workers) -> Finding:
    live = [each for each in await workers.all() if each.stopped_at is None and each.seconds_since_seen <= SEEN_LATELY]
    served = {name for worker in live for name in worker.names}
    waiting = {name for name, stats in (await reads.stats()).items() if stats.oldest_due_seconds is not None}
    return unhandled(sorted(waiting - served))


async def _leases(kv: KeyValueStore, cache: TaskCache) -> Finding:
    await kv.run(cache.sync)
    now = kv.clock.micros()
    left = [found.locked - now for found in cache.index.running.values() if found.locked is not None]
    expired = sum(each <= 0 for each in left)
    return leases(expired, sum(each <= LEASE_ENDS_SOON * 1_000_000 for each in left) - expired)
