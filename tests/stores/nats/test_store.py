"""What only the NATS store does: its keys, its bucket, its limits, its memory."""

import asyncio
import json
import random
import sys
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import nats
import pytest
from nats.aio.msg import Msg

from tasklib.core.decide import Verdict
from tasklib.core.errors import (
    InvalidConfig,
    InvalidValue,
    SchemaMismatch,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from tasklib.core.task import Claim
from tasklib.stores.base import ControlChange, Filter, Inserted
from tasklib.stores.nats import NatsStore, keys, schema
from tasklib.stores.nats.address import Address, parse
from tasklib.stores.nats.bucket import Bucket, Entry, Write
from tasklib.stores.nats.clock import Clock, written
from tasklib.stores.nats.feed import Feed
from tasklib.stores.nats.record import decode, new_record
from tasklib.testing.suite.builders import (
    ANNA,
    WORK,
    apply,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    new_task,
    next_id,
    settle,
    submit,
    submit_several,
)
from tests.nats_servers import NatsServer
from tests.stores.conftest import number_of
from tests.waiting import eventually_async, turns

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
    with pytest.raises(ImportError, match=r"pip install 'tasklib\[nats\]'"):
        __import__("tasklib.stores.nats")


# -- keys and records -------------------------------------------------------------------------------------------------


def test_keys_stay_literal_where_they_can():
    assert keys.idem("order-123_process") == "tasks.idem.order-123_process"


def test_no_two_texts_share_a_key(rng: random.Random):
    odd = ["", ".", "a.b", "*", ">", " ", "=", "=YQ", "é", "名前", "a\nb", "A", "a" * 255, "é" * 127]
    odd += ["".join(rng.choices("ab.=*>-_ é", k=rng.randrange(1, 9))) for _ in range(300)]
    tokens = {text: keys.token_of(text) for text in odd}
    assert len(set(tokens.values())) == len(tokens)
    for text, token in tokens.items():
        assert keys.text_of(token) == text
        assert not set(token) & set(" .*>\n")


async def test_people_read_a_task_as_json(store: NatsStore, kv: Any):
    task_id = await submit(store, payload={"a": [1, "line\nbreak"]}, tags={"t": 1}, key="order-1")
    record = json.loads((await kv.get(f"tasks.task.{task_id}")).value)
    assert (record["id"], record["state"], record["kwargs"]) == (str(task_id), "pending", {"a": [1, "line\nbreak"]})
    assert json.loads((await kv.get("tasks.idem.order-1")).value)["id"] == str(task_id)


async def test_a_record_written_by_hand_is_found_and_run(store: NatsStore, kv: Any):
    assert await claim(store) == []  # the index is there before the task
    task_id = next_id()
    now = written(await store.now())
    record = {"id": str(task_id), "name": WORK, "state": "pending", "created_at": now, "kwargs": {"n": 1}}
    await kv.put(f"tasks.task.{task_id}", json.dumps(record, indent=2).encode())
    [claimed] = await eventually_async(lambda: claim(store))
    assert (claimed.id, json.loads(claimed.kwargs)) == (task_id, {"n": 1})
    await apply(store, completed(claimed, 2))
    assert (await fetch(store, task_id)).result == {"value": 2}


async def test_what_is_no_record_harms_nobody(store: NatsStore, kv: Any):
    await claim(store)
    await kv.put(f"tasks.task.{next_id()}", b"not json")
    await kv.put("tasks.task.no-id", b"{}")
    task_id = await submit(store)
    assert [claimed.id for claimed in await claim(store, 5)] == [task_id]


# -- keys of submits --------------------------------------------------------------------------------------------------


async def test_a_key_without_its_task_gets_its_task(store: NatsStore):
    """The submitter was killed between the two writes."""
    lost = new_task(payload={"n": 1}, key="half")
    await store._bucket.write([Write(keys.idem("half"), 0, new_record(lost, await store.now()).encode())])
    assert await store.get([lost.id]) == [None]
    assert await store.insert([new_task(payload={"n": 2}, key="half")]) == [Inserted(lost.id, False)]
    assert (await fetch(store, lost.id)).kwargs == {"n": 1}
    assert [claimed.id for claimed in await claim(store, 5)] == [lost.id]


async def test_whoever_looks_a_key_up_writes_its_task_too(store: NatsStore):
    lost = new_task(key="half")
    await store._bucket.write([Write(keys.idem("half"), 0, new_record(lost, await store.now()).encode())])
    found = await store.get_by_key("half")
    assert found is not None
    assert found == await fetch(store, lost.id)


async def test_a_key_whose_task_was_deleted_by_hand_is_free(store: NatsStore, kv: Any):
    for alone in (True, False):
        task_id = await submit(store, key="k")
        await kv.delete(f"tasks.task.{task_id}")
        assert await store.get_by_key("k") is None
        fresh = new_task(key="k")
        others = [] if alone else [new_task()]
        assert (await store.insert([fresh, *others]))[0] == Inserted(fresh.id, True)
        found = await store.get_by_key("k")
        assert found is not None
        assert found.id == fresh.id
        await kv.delete(f"tasks.task.{fresh.id}")


async def test_a_key_is_not_taken_over_on_a_stale_read(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    """A replica that is behind may show a key without its task."""
    kept, _ = await store.insert([new_task(key="k"), new_task()])
    read, hidden = store._bucket.read_all, 0

    async def stale(wanted: Iterable[str]) -> dict[str, Entry]:
        nonlocal hidden
        found = await read(wanted)
        if not hidden and keys.task(kept.id) in found:
            del found[keys.task(kept.id)]
            hidden += 1
        return found

    monkeypatch.setattr(store._bucket, "read_all", stale)
    assert await store.insert([new_task(key="k")]) == [Inserted(kept.id, False)]
    assert hidden == 1


async def test_a_deleted_task_leaves_nothing_behind(store: NatsStore, kv: Any):
    await submit(store, key="k")
    await apply(store, completed(await claim_one(store)))
    [task] = (await store.page(Filter(), limit=5)).tasks
    assert await store.delete([(task.id, task.version)]) == [Verdict.APPLIED]
    left = {key for key in await kv.keys() if key.startswith(("tasks.task.", "tasks.idem."))}
    assert left == set()


async def test_a_caller_that_goes_away_leaves_no_half_key(store: NatsStore):
    for steps in range(8):
        task = new_task(key=f"key-{steps}")
        writing = asyncio.create_task(store.insert([task]))
        await turns(steps)
        writing.cancel()
        await asyncio.wait([writing])
        await store._submits.close()  # what was under way has ended
        both = await store._bucket.read([keys.idem(f"key-{steps}"), keys.task(task.id)])
        assert len(both) in (0, 2)


# -- the bucket -------------------------------------------------------------------------------------------------------


async def test_a_server_that_does_not_compare_is_refused(nats_url: str, monkeypatch: pytest.MonkeyPatch):
    honest = Bucket._message

    def careless(self: Bucket, write: Write, headers: dict[str, str]) -> tuple[str, bytes, dict[str, str]]:
        subject, data, headers = honest(self, write, headers)
        if write.key.startswith(keys.PROBE):
            del headers["Nats-Expected-Last-Subject-Sequence"]
        return subject, data, headers

    monkeypatch.setattr(Bucket, "_message", careless)
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


async def test_replicas_that_cannot_be_had_are_refused(nats_url: str):
    with pytest.raises(StoreRefused, match="replicas"):
        await NatsStore(f"{nats_url}&replicas=3").open()


async def test_replicas_that_differ_are_named(store: NatsStore, nats_url: str):
    with pytest.raises(StoreRefused, match="has 1 replicas, the URL says 3"):
        await NatsStore(f"{nats_url}&replicas=3").open()


async def test_an_old_server_is_refused(nats_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasklib.stores.nats.link.MINIMUM", (99, 0, 0))
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
    info = await store._bucket.info()
    await store._bucket.api(
        f"STREAM.UPDATE.{store._bucket.address.stream}", {**info["config"], "max_bytes": 10_000_000}
    )
    await submit(store)
    await store.close()


# -- the feed ---------------------------------------------------------------------------------------------------------


async def test_a_claim_knows_all_that_was_there_when_it_began(
    store: NatsStore, nats_url: str, monkeypatch: pytest.MonkeyPatch
):
    received, flowing = Feed._received, asyncio.Event()

    async def late(self: Feed, message: Msg) -> None:
        await flowing.wait()
        await received(self, message)

    async def claim_late() -> list[Claim]:
        """With a feed that is held up for a while."""
        claiming = asyncio.create_task(claim(other))
        done, _ = await asyncio.wait([claiming], timeout=0.1)
        assert not done, "it waits for the feed"
        flowing.set()
        return await claiming

    monkeypatch.setattr(Feed, "_received", late)
    other = NatsStore(nats_url)
    await other.open()
    flowing.set()
    assert await claim(other) == []
    flowing.clear()
    task_id = await submit(store)
    assert [claimed.id for claimed in await claim_late()] == [task_id]
    await submit(store)
    flowing.clear()
    await store.control(ControlChange(name=WORK, paused=True))
    assert await claim_late() == []
    await other.close()


async def test_a_claim_that_waits_ends_with_its_store(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    async def deaf(self: Feed, message: Msg) -> None:
        pass

    monkeypatch.setattr(Feed, "_received", deaf)
    await submit(store)
    claiming = asyncio.create_task(claim(store))
    await eventually_async(lambda: store._mirror._goals)
    await store.close()
    with pytest.raises(StoreClosed):
        await claiming


async def test_a_change_that_got_lost_on_the_way_is_fetched_again(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    received, lost = Feed._received, 0

    async def forgetful(self: Feed, message: Msg) -> None:
        nonlocal lost
        if "Tasklib-Note" in (message.headers or {}) and not lost:
            lost += 1
            return
        await received(self, message)

    assert await claim(store) == []
    monkeypatch.setattr(Feed, "_received", forgetful)
    await store._mirror._feed.stop()  # type: ignore[union-attr]
    store._mirror._feed.start()  # type: ignore[union-attr]
    ids = [await submit(store) for _ in range(5)]
    assert [claimed.id for claimed in await claim(store, 10)] == ids
    assert lost == 1


# -- limits and refusals ----------------------------------------------------------------------------------------------


async def test_claims_under_a_limit_exclude_each_other(store: NatsStore):
    """Whoever counted what runs before another claimed must count again: the control's revision tells."""
    await store.control(ControlChange(name=WORK, concurrency=1))
    await submit_several(store, 2)
    before = (await store._bucket.read([keys.control(WORK)]))[keys.control(WORK)]
    assert len(await claim(store, 2)) == 1
    after = (await store._bucket.read([keys.control(WORK)]))[keys.control(WORK)]
    assert after.revision > before.revision


async def test_the_callers_transaction_is_refused_by_name(store: NatsStore):
    with pytest.raises(Unsupported, match="NATS cannot join"):
        store.insert_on(object(), [new_task()])


# -- the clock --------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_right_is_not_moved():
    clock = Clock(0.0)
    before = clock.correction
    now = clock.now()
    clock.learn(written(now), *_asked_around(now, clock, 0.001))
    assert clock.correction == before


def test_a_clock_that_is_wrong_is_moved_no_further_than_it_must():
    for hours in (-1, 1):
        clock = Clock(0.0)
        now = clock.now()
        sent, received = _asked_around(now, clock, 0.001)
        clock.learn(written(now.replace(year=now.year + hours)), sent, received)
        assert abs(abs(clock.correction) - 365.25 * 86400) < 86400 * 1.5
        assert abs((clock.now() - now.replace(year=now.year + hours)).total_seconds()) < 0.5


def _asked_around(moment: Any, clock: Clock, width: float) -> tuple[float, float]:
    at = moment.timestamp() - clock._shift
    return at - width, at + width


async def test_a_machine_whose_clock_is_wrong_agrees_with_the_others(
    store: NatsStore, nats_url: str, monkeypatch: pytest.MonkeyPatch
):
    """Fault 18 on NATS: a wrong clock is corrected by the server's."""
    monkeypatch.setattr("tasklib.stores.nats.clock._START", 0.0)  # 1970
    wrong = NatsStore(nats_url)
    await wrong.open()
    assert abs((await wrong.now() - await store.now()).total_seconds()) < 1
    await submit(wrong)
    running = await claim_one(store, lease=60)
    assert await wrong.lost_leases(30, 10) == []
    assert await wrong.extend(ANNA, [], 60) == []
    assert abs((running.started_at - await wrong.now()).total_seconds()) < 5
    await wrong.close()


# -- memory -----------------------------------------------------------------------------------------------------------


async def test_the_leader_is_not_asked_in_the_midst_of_a_load(store: NatsStore, monkeypatch: pytest.MonkeyPatch):
    """Its answer would come behind all that is under way, which would pile up until then. A heartbeat means that all of
    it has come."""
    await submit(store)
    await store._mirror.sync()
    feed = store._mirror._feed
    assert feed is not None
    asked: list[int] = []

    async def has(first: int, last: int) -> bool:
        asked.append(first)
        return True

    monkeypatch.setattr(store._bucket, "has", has)
    feed._anew, feed._behind = True, feed._told + 10
    flow = {"Status": "100", "Description": "FlowControl Request"}
    beat = {"Status": "100", "Description": "Idle Heartbeat", "Nats-Last-Consumer": str(feed._delivered)}
    await feed._received(Msg(store._bucket.link.client, headers=flow))
    assert not asked
    await feed._received(Msg(store._bucket.link.client, headers=beat))
    assert asked == [feed._told + 1]


async def test_a_store_that_only_submits_keeps_no_index(store: NatsStore):
    await submit_several(store, 10, key=None)
    await fetch(store, await submit(store, key="k"))
    assert store._mirror._feed is None


async def test_a_worker_keeps_no_list_of_all_tasks(store: NatsStore):
    """It claims, looks after leases, samples the backlog and tidies: for none of that it needs what is finished."""
    await submit_several(store, 3)
    await apply(store, completed(await claim_one(store)))
    await store.lost_leases(30, 10)
    await store.sample()
    await store.tidy()
    assert len(await claim(store, slots=5)) == 2
    assert store._mirror.roster is None


def test_a_foreign_record_is_read_as_far_as_it_is_one():
    record = decode(b'{"id":"x","name":"n","state":"pending","extra":1}', 3)
    assert (record.head["name"], record.head["max_retries"], record.revision) == ("n", 3, 3)
    assert json.loads(record.encode())["extra"] == 1
