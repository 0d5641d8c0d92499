"""What every store must do, whatever its engine: one class of tests to inherit.

    class TestMyStore(StoreSuite):
        @pytest_asyncio.fixture
        async def open_store(self, tmp_path):
            async with AsyncExitStack() as stack:

                async def open_store():
                    store = MyStore(f"mine:///{tmp_path}/tasks")
                    await store.open()
                    stack.push_async_callback(store.close)
                    return store

                yield open_store

        @pytest_asyncio.fixture
        async def store(self, open_store):
            return await open_store()

`store` is an open store on an empty database; `open_store` opens further ones onto the same database, for races
between several connections. No test sleeps: time is moved by `clock_offset`, wake-ups are awaited with a deadline.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.conformance.access import AuditTrail, Tokens
from tests.conformance.alerts import Alerts
from tests.conformance.audited import Audited
from tests.conformance.batches import Batches
from tests.conformance.builders import OpenStore
from tests.conformance.cancelling import Cancelling
from tests.conformance.checkups import CheckUps
from tests.conformance.claim_by_id import Taking
from tests.conformance.claiming import Claiming
from tests.conformance.closing import Closing
from tests.conformance.controls import ControlsKept
from tests.conformance.deleting import Deleting
from tests.conformance.due import DueTimes
from tests.conformance.failures import LatestFailures
from tests.conformance.figures import Figures
from tests.conformance.filters import Filters
from tests.conformance.flow_ends import FlowEnds
from tests.conformance.flows import Flows
from tests.conformance.guards import Guards
from tests.conformance.history import History
from tests.conformance.keys import Keys
from tests.conformance.leases import Leases
from tests.conformance.limits import ConcurrencyLimits, RateLimits
from tests.conformance.lists import Lists
from tests.conformance.lost import LostLeases
from tests.conformance.pausing import Pausing
from tests.conformance.prefetch import Prefetch
from tests.conformance.races import Races
from tests.conformance.reads import Looking
from tests.conformance.retrying import Retrying
from tests.conformance.schedules import SchedulesKept
from tests.conformance.schema import Schema
from tests.conformance.searches import Searches
from tests.conformance.series import Arrivals, Backlog, Series, Versions, Waited
from tests.conformance.settling import Settling
from tests.conformance.submitting import Submitting
from tests.conformance.unique import UniqueTasks
from tests.conformance.unknown_states import Strangers
from tests.conformance.values import Values
from tests.conformance.waking import Waking
from tests.conformance.ways_back import WaysBack
from tests.conformance.workers import Workers


class StoreSuite(
    Submitting,
    Batches,
    Keys,
    UniqueTasks,
    Values,
    Claiming,
    DueTimes,
    Prefetch,
    Settling,
    Guards,
    History,
    Leases,
    LostLeases,
    Cancelling,
    Retrying,
    WaysBack,
    Deleting,
    Races,
    Looking,
    Filters,
    Lists,
    Searches,
    Figures,
    Series,
    Backlog,
    Waited,
    Arrivals,
    Versions,
    LatestFailures,
    Workers,
    ControlsKept,
    Pausing,
    RateLimits,
    ConcurrencyLimits,
    Taking,
    Tokens,
    AuditTrail,
    Audited,
    Alerts,
    Waking,
    Strangers,
    SchedulesKept,
    Flows,
    FlowEnds,
    Schema,
    CheckUps,
    Closing,
):
    pytestmark: ClassVar = [pytest.mark.asyncio]


__all__ = ["OpenStore", "StoreSuite"]
