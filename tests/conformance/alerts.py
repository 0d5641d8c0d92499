"""The states of alert rules: of two who write one, one does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from tasklib.core.alerts import Alert
from tasklib.stores.protocol import Store
from tests.conformance.builders import OpenStore


class Alerts:
    async def test_an_alert_is_kept_as_it_is(self, store: Store, open_store: OpenStore) -> None:
        assert await store.alerts() == []
        now = (await store.now()).replace(microsecond=123_000)
        whole = Alert(
            name="naïve ✓ %_.>",
            state="firing",
            since=now,
            text="5 of 20 attempts ✓",
            fired_at=now - timedelta(hours=1),
            over_at=now - timedelta(minutes=1),
            told=False,
            tries=3,
            try_at=now + timedelta(minutes=2),
            version=1,
        )
        bare = Alert(name="", state="ok", since=now, version=1)
        assert [await store.put_alert(alert) for alert in (whole, bare)] == [True, True]
        assert await (await open_store()).alerts() == [bare, whole]

    async def test_one_of_those_who_write_a_version_does(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        alert = Alert(name="a", state="ok", since=await store.now())
        for version in (1, 2):
            tries = [replace(alert, version=version, text=str(number)) for number in range(4)]
            done = await asyncio.gather(
                *(each.put_alert(one) for each, one in zip(stores, tries, strict=True)), return_exceptions=True
            )
            assert sorted(map(str, done)) == ["False"] * 3 + ["True"]
            [kept] = await store.alerts()
            assert (kept.version, kept.text) == (version, str(done.index(True)))
        assert not await store.put_alert(replace(alert, version=2)), "it is there"
        assert not await store.put_alert(replace(alert, version=4)), "one is missing between"
