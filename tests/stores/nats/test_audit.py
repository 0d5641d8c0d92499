"""Lines that are cut while an operator acts."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.stores.nats import NatsStore
from tasklib.stores.values import AuditEntry
from tests.conformance.builders import cancelled, in_phase
from tests.stores.conftest import Fault, faults
from tests.stores.proxy import Proxy


@pytest.fixture
async def proxy(nats_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(nats_url) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[NatsStore]:
    store = NatsStore(proxy.url)
    await store.open()
    yield store
    await store.close()


@faults
async def test_an_action_in_doubt_has_one_entry(store: NatsStore, proxy: Proxy, fault: Fault):
    """Cut before the commit arrives, or before its answer does: the second try finds what the first one did."""

    def of_ids(applied: Sequence[UUID]) -> list[AuditEntry]:
        return [AuditEntry(actor="ada", action="act", task_id=task_id) for task_id in applied]

    pending, done = await in_phase(store, Phase.PENDING), await in_phase(store, Phase.COMPLETED)
    fault(proxy, b"Nats-Batch-Commit")
    [cancel] = await store.settle([cancelled(pending)], audit=of_ids)
    assert cancel in (WriteResult.APPLIED, WriteResult.DUPLICATE)
    fault(proxy, b"Nats-Batch-Commit")
    [delete] = await store.delete([(done.id, done.version)], audit=of_ids)
    assert delete in (WriteResult.APPLIED, WriteResult.DUPLICATE)
    assert proxy.faults == 2
    assert [entry.task_id for entry in await store.list_audit()] == [done.id, pending.id]
