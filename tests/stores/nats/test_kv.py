"""The bucket and its server: the URL that names them, what is refused, and how much fits."""

import json
import sys
from typing import Any
from uuid import UUID

import nats
import pytest

from tasklib.core.errors import (
    InvalidConfig,
    InvalidValue,
    SchemaMismatch,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from tasklib.stores.nats import NatsStore, keys, schema
from tasklib.stores.nats.address import Address, parse
from tasklib.stores.nats.kv import KeyValueStore, Write
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    apply,
    claim_one,
    completed,
    failed,
    fetch,
    new_task,
    settle,
    submit,
    submit_several,
)
from tests.nats_servers import NatsServer
from tests.stores.conftest import number_of

# -- the URL ----------------------------------------------------------------------------------------------------------


def test_a_url_names_servers_and_a_bucket():
    assert parse("nats://") == Address(("nats://localhost:4222",))
    address = parse("nats://ann:p%40ss@a:1,b,[::1]:3/?bucket=shop_1&replicas=3&max_bytes=1000000")
    assert address.servers == ("nats://a:1", "nats://b:4222", "nats://[::1]:3")
    assert (address.user, address.password, address.token) == ("ann", "p@ss", None)
    assert (address.bucket, address.replicas, address.max_bytes) == ("shop_1", 3, 1_000_000)
    assert parse("nats://s3cret@a").token == "s3cret"
    assert "p@ss" not in str(address)


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("nats://a?colour=red", "colour"),
        ("nats://a?sync=always", "sync"),
        ("nats://a?bucket=a.b", "bucket"),
        ("nats://a?bucket=", "bucket"),
        ("nats://a?replicas=0", "replicas"),
        ("nats://a?replicas=six", "replicas"),
        ("nats://a?max_bytes=-1", "max_bytes"),
        ("nats://a?tls=perhaps", "tls"),
        ("nats://a?tls_ca=/no/such/file", "tls_ca"),
        ("nats://a?credentials=/no/such/file", "credentials"),
        ("nats://a/path", "database_url"),
        ("nats://a:99999", "database_url"),
        ("nats://a b", "database_url"),
        ("redis://a", "database_url"),
    ],
)
def test_urls_that_are_refused(url: str, field: str):
    with pytest.raises(InvalidConfig) as caught:
        NatsStore(url)
    assert caught.value.field == field


def test_without_nats_py_the_store_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name == "nats" or name.startswith(("nats.", "tasklib.stores.nats"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(ImportError, match=r"pip install 'tasklib-queue\[nats\]'"):
        __import__("tasklib.stores.nats")


# -- the bucket -------------------------------------------------------------------------------------------------------


async def test_a_server_that_does_not_compare_is_refused(nats_url: str, monkeypatch: pytest.MonkeyPatch):
    honest = KeyValueStore._message

    def careless(self: KeyValueStore, write: Write, headers: dict[str, str]) -> tuple[str, bytes, dict[str, str]]:
        subject, data, headers = honest(self, write, headers)
        if write.key.startswith(keys.PROBE):
            del headers["Nats-Expected-Last-Subject-Sequence"]
        return subject, data, headers

    monkeypatch.setattr(KeyValueStore, "_message", careless)
    with pytest.raises(StoreRefused, match="does not honour compare-and-set"):
        await NatsStore(nats_url).open()


async def test_a_bucket_of_somebody_else_is_left_alone(nats_url: str):
    connection = await nats.connect(nats_url.partition("?")[0])
    theirs = await connection.jetstream().create_key_value(bucket=nats_url.rpartition("=")[2])
    await theirs.put("colour", b"red")
    with pytest.raises(SchemaMismatch, match="not tasklib's"):
        await NatsStore(nats_url).open()
    assert (await theirs.get("colour")).value == b"red"
    await connection.close()


async def test_a_newer_schema_is_refused(store: NatsStore, kv: Any, nats_url: str):
    await kv.put(keys.SCHEMA, json.dumps({"version": schema.CURRENT + 1}).encode())
    with pytest.raises(SchemaMismatch, match="upgrade tasklib"):
        await NatsStore(nats_url).open()


async def test_a_bucket_of_version_1_is_refused_until_it_is_migrated(store: NatsStore, kv: Any, nats_url: str):
    task_id = await submit(store)
    record = json.loads((await kv.get(keys.task(task_id))).value)
    for name in ("run_ms", "last_worker_id"):
        del record[name]
    await kv.put(keys.task(task_id), json.dumps(record).encode())
    await kv.put(keys.SCHEMA, json.dumps({"version": 1}).encode())

    another = NatsStore(nats_url)
    with pytest.raises(SchemaMismatch, match="tasklib migrate"):
        await another.open()
    assert await another.migrate(plan=True) == ["0002_schedules_and_flows"]
    assert await another.migrate() == ["0002_schedules_and_flows"]
    assert await another.migrate() == []
    await another.open()
    assert (await fetch(another, task_id)).run_ms is None
    await another.close()


async def test_replicas_that_cannot_be_had_are_refused(nats_url: str):
    with pytest.raises(StoreRefused, match="replicas"):
        await NatsStore(f"{nats_url}&replicas=3").open()


async def test_replicas_that_differ_are_named(store: NatsStore, nats_url: str):
    with pytest.raises(StoreRefused, match="has 1 replicas, the URL says 3"):
        await NatsStore(f"{nats_url}&replicas=3").open()


async def test_an_old_server_is_refused(nats_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasklib.stores.nats.connection.MINIMUM", (99, 0, 0))
    with pytest.raises(StoreRefused, match=r"too old: tasklib needs 99\.0\.0"):
        await NatsStore(nats_url).open()


async def test_no_server_is_told_within_the_deadline():
    with pytest.raises(StoreUnavailable, match="no NATS server answers"):
        await NatsStore("nats://127.0.0.1:1", call_timeout=0.5).open()


async def test_a_wrong_password_is_told_at_once():
    with NatsServer("authorization { user: ann, password: right }") as server:
        hosts = server.url.removeprefix("nats://")
        with pytest.raises(StoreRefused, match="refused the connection"):
            await NatsStore(f"nats://ann:wrong@{hosts}").open()
        store = NatsStore(f"nats://ann:right@{hosts}")
        await store.open()
        await submit(store)
        await store.close()


async def test_a_server_without_jetstream_is_named():
    with NatsServer("jetstream: disabled") as server, pytest.raises(StoreError, match="JetStream"):
        await NatsStore(server.url, call_timeout=1.0).open()


# -- room -------------------------------------------------------------------------------------------------------------


async def test_a_record_must_fit_and_the_limit_is_named():
    with NatsServer("max_payload: 65536") as server:
        store = NatsStore(server.url)
        await store.open()
        with pytest.raises(InvalidValue, match=r"max_payload of 65,536"):
            await submit(store, payload={"text": "x" * 70_000})
        assert await number_of(store) == 0
        await submit(store, payload={"text": "x" * 50_000})
        running = await claim_one(store)
        with pytest.raises(InvalidValue, match=r"result: .* max_payload of 65,536"):
            await settle(store, completed(running, "y" * 50_000))
        await apply(store, failed(running, "too large", final=True))
        findings = {finding.subject: finding for finding in await store.check_up()}
        assert findings["max_payload"].level == "warning"
        await store.close()


async def test_full_is_an_error_and_passes(nats_url: str):
    """Fault 22, limits reached: full is an error, and nothing is silently discarded."""
    store = NatsStore(f"{nats_url}&max_bytes=300000")
    await store.open()
    kept: list[UUID] = []

    async def fill() -> None:
        while True:
            kept.extend([await submit(store, payload={"text": "x" * 5000})])

    with pytest.raises(StoreFull, match="maximum bytes"):
        await fill()
    assert len(kept) > 20
    with pytest.raises(StoreFull, match="maximum bytes"):
        await submit_several(store, 20, payload={"text": "x" * 5000})
    assert {task.id for task in (await store.page(Filter(), limit=1000)).tasks} == set(kept), "nothing was discarded"
    info = await store._kv.info()
    await store._kv.api(f"STREAM.UPDATE.{store._kv.address.stream}", {**info["config"], "max_bytes": 10_000_000})
    await submit(store)
    await store.close()


async def test_the_callers_transaction_is_refused_by_name(store: NatsStore):
    with pytest.raises(Unsupported, match="nats queue cannot join"):
        store.insert_on(object(), [new_task()])
