"""Tokens of the REST API, and the record of who did what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tasklib.core import codec
from tasklib.core.errors import InvalidValue, StoreError
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditEntry, AuditFilter, ControlChange, Token
from tests.conformance.builders import OpenStore, next_id


def made_token(name: str, role: str = "operator") -> Token:
    return Token(id=name, label=f"{name}'s laptop ✓", role=role, digest=sha256(name.encode()).hexdigest())


class Tokens:
    async def test_a_token_comes_back_with_the_time_it_was_made(self, store: Store) -> None:
        assert await store.tokens() == []
        before = await store.now()
        await store.add_token(made_token("one", "read-only"))
        after = await store.now()
        [kept] = await store.tokens()
        assert kept.created_at is not None
        assert before <= kept.created_at <= after
        assert replace(kept, created_at=None) == made_token("one", "read-only")

    async def test_tokens_come_oldest_first(self, store: Store) -> None:
        for name in ("z", "a", "m"):
            await store.add_token(made_token(name))
            store.clock_offset += 1
        assert [token.id for token in await store.tokens()] == ["z", "a", "m"]

    async def test_a_revoked_token_says_since_when(self, store: Store, open_store: OpenStore) -> None:
        await store.add_token(made_token("one"))
        await store.add_token(made_token("two"))
        other = await open_store()
        before = await store.now()
        assert await other.revoke_token("one") is True
        after = await store.now()
        tokens = {token.id: token for token in await store.tokens()}
        revoked = tokens["one"].revoked_at
        assert revoked is not None
        assert before <= revoked <= after
        assert tokens["two"].revoked_at is None

    async def test_a_token_that_is_there_is_kept_and_no_other_takes_its_id(self, store: Store) -> None:
        await store.add_token(made_token("one"))
        await store.add_token(made_token("one"))  # as after a lost reply
        with pytest.raises(StoreError, match="'one' already"):
            await store.add_token(replace(made_token("one"), digest=made_token("two").digest))
        assert [replace(token, created_at=None) for token in await store.tokens()] == [made_token("one")]

    async def test_only_the_first_revocation_counts(self, store: Store) -> None:
        await store.add_token(made_token("one"))
        assert await store.revoke_token("one") is True
        before = await store.tokens()
        store.clock_offset += 100
        assert await store.revoke_token("one") is False
        assert await store.revoke_token("nobody's") is False
        assert await store.tokens() == before


async def act(store: Store, audit: Sequence[AuditEntry]) -> None:
    """Entries come with an action. This one changes nothing."""
    await store.control(ControlChange(), audit=audit)


class AuditTrail:
    async def test_an_action_comes_back_as_it_was_noted(self, store: Store) -> None:
        assert await store.list_audit() == []
        entry = AuditEntry(
            actor="ada ✓",
            action="cancel",
            task_id=next_id(),
            name="work",
            detail=codec.encode({"n": 1}, field="detail"),
        )
        before = await store.now()
        await act(store, [entry])
        after = await store.now()
        [kept] = await store.list_audit()
        assert kept.at is not None
        assert before <= kept.at <= after
        assert codec.decode(kept.detail) == {"n": 1}
        assert replace(kept, at=None, cursor=None, detail=entry.detail) == entry

    async def test_the_latest_come_first_and_no_more_than_asked_for(self, store: Store) -> None:
        for number in range(5):
            await act(store, [AuditEntry(actor="ada", action=f"action {number}")])
            store.clock_offset += 1
        assert [entry.action for entry in await store.list_audit(limit=3)] == ["action 4", "action 3", "action 2"]
        assert len(await store.list_audit()) == 5

    async def test_the_actions_on_one_task(self, store: Store, open_store: OpenStore) -> None:
        mine, other = next_id(), next_id()
        await act(store, [AuditEntry(actor="ada", action="retry", task_id=task_id) for task_id in (mine, other)])
        store.clock_offset += 1
        await act(store, [AuditEntry(actor="ada", action="pause", name="work")])
        store.clock_offset += 1
        await act(store, [AuditEntry(actor="bob", action="delete", task_id=mine)])
        second = await open_store()
        assert [entry.action for entry in await second.list_audit(AuditFilter(task_id=mine))] == ["delete", "retry"]
        assert [entry.action for entry in await second.list_audit(AuditFilter(task_id=mine), limit=1)] == ["delete"]
        assert await second.list_audit(AuditFilter(task_id=next_id())) == []
        assert len(await second.list_audit()) == 4

    async def test_what_matches_is_listed(self, store: Store) -> None:
        for number, (actor, action, name) in enumerate(
            [("ada", "retry", "mail"), ("bob", "retry", "mail"), ("ada", "pause", None), ("ada", "retry", "pay")]
        ):
            await act(store, [AuditEntry(actor=actor, action=action, name=name, detail=str(number))])
            store.clock_offset += 1

        async def found(where: AuditFilter) -> str:
            return "".join(entry.detail for entry in await store.list_audit(where))

        assert await found(AuditFilter()) == "3210"
        assert await found(AuditFilter(actor="ada")) == "320"
        assert await found(AuditFilter(action="retry")) == "310"
        assert await found(AuditFilter(name="mail")) == "10"
        assert await found(AuditFilter(actor="ada", action="retry", name="mail")) == "0"
        assert await found(AuditFilter(actor="a")) == ""
        times = [entry.at for entry in reversed(await store.list_audit())]
        assert await found(AuditFilter(after=times[2])) == "32", "its own instant is one of them"
        assert await found(AuditFilter(before=times[2])) == "10"
        assert await found(AuditFilter(after=times[1], before=times[3])) == "21"

    async def test_a_mass_action_is_one_line_with_all_its_batches(self, store: Store) -> None:
        one, two, tasks = next_id(), next_id(), [next_id() for _ in range(5)]
        batch = AuditEntry(actor="ada", action="bulk-retry", name="mail", detail='{"filter":{}}')
        each = AuditEntry(actor="ada", action="retry", name="mail")
        await act(store, [AuditEntry(actor="bob", action="pause")])
        for bulk_id, part in ((one, tasks[:2]), (two, tasks[4:]), (one, tasks[2:4])):
            parts = [replace(each, task_id=task_id, bulk_id=bulk_id) for task_id in part]
            await act(store, [replace(batch, bulk_id=bulk_id, done=len(part)), *parts])
            store.clock_offset += 1
        await act(store, [replace(each, task_id=tasks[0])])

        async def listed(**where: Any) -> list[tuple[str, int | None]]:
            found = await store.list_audit(AuditFilter(folded=True, **where))
            return [(entry.action, entry.done) for entry in found]

        assert await listed() == [("retry", None), ("bulk-retry", 1), ("bulk-retry", 4), ("pause", None)]
        assert await listed(bulk_id=one) == await listed(name="mail", actor="ada", bulk_id=one) == [("bulk-retry", 4)]
        assert [entry.done for entry in await store.list_audit(AuditFilter(bulk_id=one))] == [2, 2]
        assert len(await store.list_audit()) == 10
        own = await store.list_audit(AuditFilter(task_id=tasks[0]))
        assert [entry.bulk_id for entry in own] == [None, one], "its tasks find it"
        first, *_ = await store.list_audit(AuditFilter(folded=True, action="bulk-retry"), limit=1)
        rest = await store.list_audit(AuditFilter(folded=True), cursor=first.cursor)
        assert [entry.action for entry in rest] == ["bulk-retry", "pause"]

    async def test_a_mass_action_is_found_by_each_type_that_it_was_done_to(self, store: Store) -> None:
        """Each batch tells how many of each type. One line for all says no type, one for a type says how many of it."""
        bulk_id = next_id()
        batch = AuditEntry(actor="ada", action="bulk-cancel", bulk_id=bulk_id)
        for parts in ({"mail": 3, "pay": 1}, {"mail": 1}, {"pay": 2, "build": 1}):
            entries = [replace(batch, name=name, done=done) for name, done in parts.items()]
            each = [replace(entry, action="cancel", done=None, task_id=next_id()) for entry in entries]
            await act(store, [*each, *entries])
        await act(store, [replace(batch, bulk_id=next_id(), name="pay", done=5)])

        async def listed(**where: Any) -> list[tuple[str | None, int | None]]:
            return [(entry.name, entry.done) for entry in await store.list_audit(AuditFilter(folded=True, **where))]

        assert await listed() == [("pay", 5), (None, 8)]
        assert await listed(name="mail") == [("mail", 4)]
        assert await listed(name="pay") == [("pay", 5), ("pay", 3)]
        assert await listed(name="build", bulk_id=bulk_id) == [("build", 1)]
        assert await listed(name="nothing") == []
        first, *_ = await store.list_audit(AuditFilter(folded=True, name="pay"), limit=1)
        rest = await store.list_audit(AuditFilter(folded=True, name="pay"), cursor=first.cursor)
        assert [entry.bulk_id for entry in rest] == [bulk_id]

    async def test_pages_follow_each_other_without_gaps(self, store: Store) -> None:
        mine = next_id()
        await act(store, [AuditEntry(actor="ada", action="retry", task_id=mine, detail=str(n)) for n in range(3)])
        await act(store, [AuditEntry(actor="bob", action="pause")])
        await act(store, [AuditEntry(actor="ada", action="retry", task_id=mine, detail=str(n)) for n in range(3, 5)])
        for where in (AuditFilter(actor="ada"), AuditFilter(task_id=mine)):
            seen: list[str] = []
            cursor: str | None = None
            while page := await store.list_audit(where, limit=2, cursor=cursor):
                seen += [entry.detail for entry in page]
                cursor = page[-1].cursor
                await act(store, [AuditEntry(actor="ada", action="retry", name="meanwhile")])
            assert sorted(seen) == ["0", "1", "2", "3", "4"]

    @pytest.mark.parametrize("cursor", ["", "x", "-1", "1e3", "9" * 40, "é", "\u0661"])
    async def test_a_cursor_of_somewhere_else_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidValue, match="cursor"):
            await store.list_audit(cursor=cursor)

    async def test_nothing_to_note_is_fine(self, store: Store) -> None:
        await act(store, [])
        assert await store.list_audit() == []
