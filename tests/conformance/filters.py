"""Filters: each condition by itself, all of them together, and nothing in them has a hidden meaning."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    apply,
    claim_one,
    failed,
    in_phase,
    next_id,
    submit,
    submit_several,
)

ODD_NAMES = ["mail", "mail.send", "mail_send", "mailXsend", "mail%", "Mail", "a\\b", "a\\\\b", "it's", "ümlaut", "[a]"]


class Filters:
    async def test_by_names(self, store: Store) -> None:
        for name in ODD_NAMES:
            await submit(store, name)
        assert await _names(store, Filter(names=["mail"])) == ["mail"]
        assert await _names(store, Filter(names=["Mail", "it's", "nothing"])) == ["Mail", "it's"]

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("mail", ["mail", "mail.send", "mail_send", "mailXsend", "mail%"]),
            ("mail_", ["mail_send"]),
            ("mail%", ["mail%"]),
            ("%", []),
            ("_", []),
            ("M", ["Mail"]),
            ("a\\", ["a\\b", "a\\\\b"]),
            ("a\\\\", ["a\\\\b"]),
            ("it'", ["it's"]),
            ("ü", ["ümlaut"]),
            ("[", ["[a]"]),
            ("*", []),
            ("", ODD_NAMES),
        ],
    )
    async def test_by_prefix_taken_literally(self, store: Store, prefix: str, expected: list[str]) -> None:
        for name in ODD_NAMES:
            await submit(store, name)
        assert await _names(store, Filter(name_prefix=prefix)) == expected

    async def test_by_state(self, store: Store) -> None:
        tasks = {phase: await in_phase(store, phase) for phase in Phase}

        async def found(**conditions: Any) -> list[Phase]:
            page = await store.page(Filter(**conditions), limit=50, oldest_first=True)
            return [next(phase for phase in Phase if tasks[phase].id == task.id) for task in page.tasks]

        assert await found(states=["pending"]) == [Phase.PENDING]
        assert await found(states=["failed"]) == [Phase.WAITING, Phase.FAILED]
        assert await found(states=["failed"], terminal=True) == [Phase.FAILED]
        assert await found(states=["failed"], terminal=False) == [Phase.WAITING]
        assert await found(states=["cancelled", "running"]) == [Phase.RUNNING, Phase.CANCELLED]
        assert await found(terminal=True) == [Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED]
        assert await found(terminal=False) == [Phase.PENDING, Phase.RUNNING, Phase.WAITING]
        assert await found(states=["no such state"]) == []

    async def test_by_tags(self, store: Store) -> None:
        tags: list[dict[str, Any]] = [
            {},
            {"n": 1},
            {"n": "1"},
            {"n": True},
            {"n": None},
            {"n": 1, "batch": "daily"},
            {"n": 1.5},
            {"a.b": "x", '"q"': "y", "$": "z", "naïve": "✓"},
            {"a": {"b": "x"}},
            {"n": [1]},
            {"n": "%"},
            {"a": {"b": "x", "c": 1}},
            {"n": [1, 2]},
        ]
        ids = [await submit(store, tags=pairs) for pairs in tags]

        async def found(**pairs: Any) -> list[int]:
            page = await store.page(Filter(tags=pairs), limit=50, oldest_first=True)
            return [ids.index(task.id) for task in page.tasks]

        assert await found(n=1) == [1, 5]
        assert await found(n="1") == [2]
        assert await found(n=True) == [3]
        assert await found(n=None) == [4]
        assert await found(n=1.5) == [6]
        assert await found(n="%") == [10]
        assert await found(n=1, batch="daily") == [5]
        assert await found(batch="daily", n=2) == []
        assert await found(**{"a.b": "x"}) == [7]
        assert await found(**{'"q"': "y", "$": "z", "naïve": "✓"}) == [7]
        assert await found(a={"b": "x"}) == [8], "a pair is there as a whole or not at all"
        assert await found(n=[1]) == [9]
        assert await found(n=[True]) == []
        assert await found(batch="dail") == []
        assert await found() == list(range(len(tags)))

    async def test_by_tags_as_people_write_them(self, store: Store) -> None:
        """A text finds itself, and the number, the truth value or the null that is written so."""
        values: list[Any] = [
            4711,
            "4711",
            4711.0,
            "4711.0",
            True,
            "true",
            None,
            "null",
            1,
            "x",
            "",
            [4711],
            0.5,
            "[1]",
            [1],
        ]
        ids = [await submit(store, tags={"customer": value, "shop": "a"}) for value in values]
        await submit(store, tags={"shop": "a"})

        async def found(text: str, **others: Any) -> list[Any]:
            where = Filter(tag_texts={"customer": text}, **others)
            page = await store.page(where, limit=50, oldest_first=True)
            assert (await store.count(where, 50)).value == len(page.tasks)
            return [ids.index(task.id) for task in page.tasks]

        assert await found("4711") == [0, 1, 2]
        assert await found("4711.0") == [0, 2, 3]
        assert await found("true") == [4, 5]
        assert await found("null") == [6, 7]
        assert await found("1") == [8]
        assert await found("x") == [9]
        assert await found("") == [10]
        assert await found("0.5") == [12]
        assert await found("[1]") == [13], "lists and objects are not written in a search"
        for text in ("True", "NaN", "-Infinity", "1e999", "9" * 5000, " 4711", "04711"):
            assert await found(text) == [], text
        assert await found("4711", tags={"shop": "a"}, states=["pending"]) == [0, 1, 2]
        assert await found("4711", tags={"customer": 4711}) == [0, 2], "both must hold"
        assert await found("4711", tags={"shop": "b"}) == []

    async def test_by_worker(self, store: Store) -> None:
        await submit_several(store, 3)
        of_anna = await claim_one(store, worker=WORKER_A)
        of_bert = await claim_one(store, worker=WORKER_B)
        assert [task.id for task in (await store.page(Filter(worker_id=WORKER_A), limit=9)).tasks] == [of_anna.id]
        assert [task.id for task in (await store.page(Filter(worker_id=WORKER_B), limit=9)).tasks] == [of_bert.id]
        assert (await store.page(Filter(worker_id="an"), limit=9)).tasks == []

    async def test_by_error_text_taken_literally(self, store: Store) -> None:
        errors = ["ValueError: 100% wrong", "KeyError: 'a_b'", "KeyError: 'aXb'", "C:\\temp", "plain", "naïve ✓ 名前"]
        for name, error in zip("abcdef", errors, strict=True):
            await submit(store, name)
            await apply(store, failed(await claim_one(store, name), error, delay=600))
        await submit(store, "no error")
        for text, expected in [
            ("error", "abc"),
            ("valueERROR", "a"),
            ("100%", "a"),
            ("%", "a"),
            ("a_b", "b"),
            ("_", "b"),
            ("'", "bc"),
            ("c:\\TEMP", "d"),
            ("\\", "d"),
            ("plain", "e"),
            ("ve ✓ 名", "f"),
            ("NAïVE", "f"),
            ("nothing of the sort", ""),
        ]:
            assert "".join(await _names(store, Filter(error_text=text))) == expected, text

    async def test_by_time(self, store: Store) -> None:
        instants = []
        for name in "abc":
            await submit(store, name)
            store.clock_offset += 50
            instants.append(await store.now())
            store.clock_offset += 50
        first, second, _ = instants
        assert "".join(await _names(store, Filter(created_after=first))) == "bc"
        assert "".join(await _names(store, Filter(created_before=first))) == "a"
        assert "".join(await _names(store, Filter(created_after=first, created_before=second))) == "b"
        assert await _names(store, Filter(created_after=first + timedelta(days=1))) == []

    async def test_by_ids(self, store: Store) -> None:
        ids = await submit_several(store, 5)
        page = await store.page(Filter(ids=[ids[3], next_id(), ids[0]]), limit=9, oldest_first=True)
        assert [task.id for task in page.tasks] == [ids[0], ids[3]]

    @pytest.mark.parametrize("where", [Filter(names=[]), Filter(states=[]), Filter(ids=[])])
    async def test_an_empty_list_matches_nothing(self, store: Store, where: Filter) -> None:
        """A bulk action over an empty selection must not become one over everything."""
        await submit(store)
        assert (await store.page(where, limit=9)).tasks == []
        assert (await store.count(where, 9)).value == 0

    async def test_all_conditions_must_hold(self, store: Store) -> None:
        ids = [await submit(store, name, tags={"t": number}) for name in ("a", "b") for number in (1, 2)]
        where = Filter(names=["a", "b"], name_prefix="b", states=["pending"], terminal=False, tags={"t": 2}, ids=ids)
        assert [task.id for task in (await store.page(where, limit=9)).tasks] == [ids[3]]

    async def test_a_count_and_a_page_agree(self, store: Store) -> None:
        tasks = [await in_phase(store, phase, name="n", tags={"t": phase.name}) for phase in reversed(Phase)]
        conditions = [
            Filter(),
            Filter(names=["n"]),
            Filter(name_prefix="n"),
            Filter(states=["failed"], terminal=True),
            Filter(tags={"t": "RUNNING"}),
            Filter(worker_id=WORKER_A),
            Filter(error_text="BOOM"),
            Filter(ids=[task.id for task in tasks[:2]]),
            Filter(created_after=tasks[2].created_at - timedelta(days=1)),
        ]
        sizes = []
        for where in conditions:
            sizes.append((await store.count(where, 100)).value)
            assert sizes[-1] == len((await store.page(where, limit=100)).tasks)
        assert sizes == [6, 6, 6, 1, 1, 1, 2, 2, 6]


async def _names(store: Store, where: Filter) -> list[str]:
    return [task.name for task in (await store.page(where, limit=100, oldest_first=True)).tasks]
