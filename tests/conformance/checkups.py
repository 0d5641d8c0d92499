"""The check-up: what is wrong is found, and each finding says what to do."""

from __future__ import annotations

from typing import cast

from tasklib.stores.protocol import Admin, Store
from tasklib.stores.values import Finding
from tests.conformance.builders import WORKER_A, WORKER_B, apply, claim_one, failed, heartbeat_of, submit


async def findings(store: Store) -> dict[str, Finding]:
    """By subject."""
    found = await cast(Admin, store).check_up()
    assert all(finding.advice for finding in found if finding.level != "ok")
    return {finding.subject: finding for finding in found}


class CheckUps:
    async def test_a_check_up_of_a_healthy_store_is_well(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await submit(store)
        await submit(store)
        await claim_one(store, lease=60)
        found = await findings(store)
        assert "error" not in {finding.level for finding in found.values()}
        for subject in ("schema", "clock", "workers", "leases"):
            assert found[subject].level == "ok", found[subject]

    async def test_a_check_up_names_what_no_live_worker_handles(self, store: Store) -> None:
        await submit(store, "later", delay_seconds=60)
        assert (await findings(store))["workers"].level == "ok", "it is not due"
        await submit(store, "orphan")
        await store.heartbeat(heartbeat_of(WORKER_B, names=["something else"]))
        found = (await findings(store))["workers"]
        assert found.level == "warning"
        assert "'orphan'" in found.message
        assert "'later'" not in found.message
        await store.heartbeat(heartbeat_of(WORKER_A, names=["orphan"]))
        assert (await findings(store))["workers"].level == "ok"
        store.clock_offset += 61
        assert (await findings(store))["workers"].level == "warning", "she has not been heard of for a minute"

    async def test_a_check_up_counts_what_has_fallen_due_since(self, store: Store) -> None:
        """A delayed task and a retry whose time has come: no claim has looked at them yet, and none will."""
        await submit(store, "delayed", delay_seconds=60)
        await submit(store, "retry")
        await apply(store, failed(await claim_one(store, "retry"), delay=60))
        assert (await findings(store))["workers"].level == "ok"
        store.clock_offset += 61
        found = (await findings(store))["workers"]
        assert found.level == "warning"
        assert "'delayed'" in found.message
        assert "'retry'" in found.message
        await store.heartbeat(heartbeat_of(WORKER_A, names=["delayed", "retry"]))
        assert (await findings(store))["workers"].level == "ok"

    async def test_a_check_up_knows_who_has_stopped(self, store: Store) -> None:
        await submit(store, "orphan")
        await store.heartbeat(heartbeat_of(WORKER_A, names=["orphan"]))
        await store.deregister_worker(WORKER_A)
        assert "'orphan'" in (await findings(store))["workers"].message

    async def test_a_check_up_counts_leases_that_end(self, store: Store) -> None:
        for lease in (-1, 5, 5, 60):
            await submit(store)
            await claim_one(store, lease=lease)
        found = (await findings(store))["leases"]
        assert (found.level, found.message) == ("warning", "1 running tasks have an expired lease")

    async def test_a_check_up_counts_leases_that_are_about_to_end(self, store: Store) -> None:
        for lease in (5, 5, 60):
            await submit(store)
            await claim_one(store, lease=lease)
        found = (await findings(store))["leases"]
        message = "2 running tasks have a lease that ends within 10 seconds"
        assert (found.level, found.message) == ("warning", message)
