"""Searches: words, values in payloads, keys, the ends of ids. What is masked in a list cannot be found. The longest."""

from __future__ import annotations

from typing import Any

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.core.redact import SECRET_KEYS
from tasklib.core.words import PAYLOAD_BYTES, short_id
from tasklib.stores import values
from tasklib.stores.protocol import Store
from tasklib.stores.values import Count, Filter
from tests.conformance.builders import apply, claim_one, completed, failed, in_phase, submit, submit_several

PAYLOADS: list[Any] = [
    {"order_id": 4711, "to": "Ada@example.com"},
    {"order_id": "4711"},
    {"order_id": 4711.0},
    {"order_id": 47110},
    {"order": {"id": 4711, "lines": [{"sku": "RED-7"}]}},
    {"order_id": [4711]},
    {"order_id": None, "paid": True},
    ["a list", {"naïve": 'ÄRGER "quoted" \\ ✓'}],
    "only text",
    {"order.id": 4711},
]


class Searches:
    async def test_values_in_the_payload(self, store: Store) -> None:
        ids = [await submit(store, payload=payload) for payload in PAYLOADS]

        async def found(**pairs: str) -> list[int]:
            paths = {tuple(names.split("__")): text for names, text in pairs.items()}
            where = Filter(payload_texts=paths)
            page = await store.page(where, limit=50, oldest_first=True)
            assert (await store.count(where, 50)).value == len(page.tasks)
            return [ids.index(task.id) for task in page.tasks]

        assert await found(order_id="4711") == [0, 1, 2]
        assert await found(order_id="4711.0") == [0, 2]
        assert await found(order__id="4711") == [4]
        assert await found(order_id="4711", to="Ada@example.com") == [0]
        assert await found(order_id="4711", to="ada@example.com") == []
        assert await found(order_id="null", paid="true") == [6]
        assert await found(order__lines="4711") == []
        assert await found(nothing="4711") == []
        assert await found(**{"order.id": "4711"}) == [9]

    async def test_a_word_is_looked_for_in_all_that_a_list_shows(self, store: Store) -> None:
        ids = [await submit(store, "mail", payload=payload) for payload in PAYLOADS]
        ids.append(await submit(store, "Send_Invoice", tags={"customer": 4711, "shop": {"city": "Ülm"}}))
        ids.append(await submit(store, "keyed", key="Order-4711"))
        await submit(store, "broken")
        broken = await claim_one(store, "broken")
        await apply(store, failed(broken, "PayError: order 4711 has insufficient funds", final=True))
        ids.append(broken.id)

        async def found(*words: str, **others: Any) -> list[int]:
            where = Filter(words=words, secret_keys=SECRET_KEYS, **others)
            page = await store.page(where, limit=50, oldest_first=True)
            assert (await store.count(where, 50)).value == len(page.tasks)
            return [ids.index(task.id) for task in page.tasks]

        assert await found("4711") == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12]
        assert await found("ada@EXAMPLE") == [0]
        assert await found("red-7") == [4]
        assert await found("invoice") == [10]
        assert await found("Ülm") == [10]
        assert await found("ÄRger") == [7]
        assert await found('"quoted" \\') == [7]
        assert await found("FUNDS", "insufficient") == [12]
        assert await found("4711", "funds") == [12]
        assert await found("4711", states=["failed"]) == [12]
        assert await found("4711", names=["mail"], payload_texts={("order_id",): "4711"}) == [0, 1, 2]
        assert await found("true") == []
        assert await found("order_id") == [], "names in a payload are not values"
        assert await found("%") == []
        assert await found("order_4711") == [], "taken literally"
        assert await found(short_id(ids[3])) == [3]
        assert await found(short_id(ids[3])[1:]) == []
        no_values = await store.page(Filter(words=["4711"]), limit=50, oldest_first=True)
        assert [ids.index(task.id) for task in no_values.tasks] == [11, 12], "by default no values"

    async def test_what_is_masked_cannot_be_found_out(self, store: Store) -> None:
        """Neither as a whole nor letter by letter, wherever it lies."""
        hidden: list[dict[str, Any]] = [
            {"password": "hunter2"},
            {"db": {"dbPassword": "hunter2"}},
            {"auth": {"user": "hunter2", "more": ["hunter2"]}},
            {"APIKey": "hunter2"},
            {"a_pin": 1234},
            {"userPIN2": "hunter2"},
            {"PINCode": 1234},
            {"my-card-number": "hunter2"},
            {"secrets": ["hunter2"]},
            {"url": "postgresql://me:hunter2@db/x"},
            {"line": "password=hunter2"},
            {"header": "Bearer hunter2"},
            {"own": "hunter2"},
        ]
        for value in hidden:
            await submit(store, payload=value, tags=value)
        shown = [
            await submit(store, payload={name: "hunter2"})
            for name in ("shipping", "author", "cardinality", "tokenizer", "spin")
        ]
        for word in ("hunter2", "hunt", "1234", "r2@db", "=hunter2"):
            where = Filter(words=[word], secret_keys=(*SECRET_KEYS, "own"))
            page = await store.page(where, limit=50, oldest_first=True)
            assert [task.id for task in page.tasks] == (shown if word in ("hunter2", "hunt") else []), word
            assert (await store.count(where, 50)).value == len(page.tasks)
        whole = Filter(words=["postgresql://me:hunter2@db/x"], secret_keys=SECRET_KEYS)
        assert len((await store.page(whole, limit=9)).tasks) == 1, "who knows it all learns nothing"

    async def test_large_payloads_are_not_looked_at(self, store: Store) -> None:
        small = await submit(store, payload={"n": 4711, "text": "x" * (PAYLOAD_BYTES - 100)})
        # Compresses well, so that its stored size is small.
        await submit(store, payload={"n": 4711, "text": "x" * PAYLOAD_BYTES})
        await submit(store, payload={"n": 4711, "text": [f"{number}!" for number in range(5_000)]})
        for where in (Filter(words=["4711"], secret_keys=SECRET_KEYS), Filter(payload_texts={("n",): "4711"})):
            assert [task.id for task in (await store.page(where, limit=9)).tasks] == [small]
            assert await store.count(where, 9) == Count(1, False)

    async def test_by_idempotency_key_and_by_the_end_of_an_id(self, store: Store) -> None:
        keyed = await submit(store, "a", key="order-4711")
        other = await submit(store, "b", key="order-47110")
        plain = await submit(store, "b")

        async def found(**conditions: Any) -> list[Any]:
            page = await store.page(Filter(**conditions), limit=9, oldest_first=True)
            assert (await store.count(Filter(**conditions), 9)).value == len(page.tasks)
            return [task.id for task in page.tasks]

        assert await found(idempotency_key="order-4711") == [keyed]
        assert await found(idempotency_key="Order-4711") == []
        assert await found(idempotency_key="order-4711", names=["b"]) == []
        assert await found(idempotency_key="order-4711", ids=[other]) == []
        assert await found(short_ids=[short_id(plain), short_id(keyed)]) == [keyed, plain]
        assert await found(short_ids=[short_id(plain)], names=["a"]) == []
        assert await found(short_ids=["0" * 12]) == []

    async def test_a_search_looks_at_so_many_and_goes_on(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(values, "SEARCHED_TASKS", 4)
        wanted = await submit(store, "pay", payload={"order_id": 4711})
        await submit_several(store, 9, "mail")
        for where in (
            Filter(words=["4711"], secret_keys=SECRET_KEYS),
            Filter(payload_texts={("order_id",): "4711"}),
            Filter(short_ids=[short_id(wanted)]),
        ):
            assert await store.count(where, 9) == Count(0, True)
            page = await store.page(where, limit=9)
            while not page.tasks:
                assert page.next_cursor is not None
                page = await store.page(where, limit=9, cursor=page.next_cursor)
            assert [task.id for task in page.tasks] == [wanted]

    async def test_the_longest_first_among_the_newest(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        waiting = await submit(store, "later", delay_seconds=600)
        ran = []
        for seconds in (5, 60, 1, 30):
            await submit(store, "work")
            running = await claim_one(store, "work")
            await apply(store, completed(running, run_ms=seconds * 1000))
            ran.append(running.id)
        runs = (await in_phase(store, Phase.RUNNING, "runs")).id
        store.clock_offset += 45
        longest = [ran[1], runs, ran[3], ran[0], ran[2], waiting]

        async def found(limit: int = 9, offset: int = 0, **conditions: Any) -> list[Any]:
            page = await store.page_longest(Filter(**conditions), limit=limit, offset=offset)
            assert page.next_cursor is None
            return [task.id for task in page.tasks]

        assert await found() == longest
        assert await found(limit=2, offset=1) == longest[1:3]
        assert await found(names=["work"]) == [each for each in longest if each in ran]
        assert await found(states=["running"]) == [runs]
        assert await found(states=["pending"]) == [waiting]
        assert await found(states=["failed"]) == []
        assert await found(states=[]) == []
        monkeypatch.setattr(values, "LONGEST_AMONG", 3)
        assert await found() == [runs, ran[3], ran[2]]
        assert await found(names=["work"]) == [ran[1], ran[3], ran[2]]
