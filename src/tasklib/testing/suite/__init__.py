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

from tasklib.testing.suite.access import Audit, Tokens
from tasklib.testing.suite.batches import Batches
from tasklib.testing.suite.builders import OpenStore
from tasklib.testing.suite.cancelling import Cancelling
from tasklib.testing.suite.checkups import CheckUps
from tasklib.testing.suite.claiming import Claiming
from tasklib.testing.suite.closing import Closing
from tasklib.testing.suite.controls import ControlsKept
from tasklib.testing.suite.deleting import Deleting
from tasklib.testing.suite.due import DueTimes
from tasklib.testing.suite.figures import Figures
from tasklib.testing.suite.filters import Filters
from tasklib.testing.suite.guards import Guards
from tasklib.testing.suite.history import History
from tasklib.testing.suite.keys import Keys
from tasklib.testing.suite.leases import Leases
from tasklib.testing.suite.limits import ConcurrencyLimits, RateLimits
from tasklib.testing.suite.lists import Lists
from tasklib.testing.suite.looking import Looking
from tasklib.testing.suite.lost import LostLeases
from tasklib.testing.suite.pausing import Pausing
from tasklib.testing.suite.prefetch import Prefetch
from tasklib.testing.suite.races import Races
from tasklib.testing.suite.retrying import Retrying
from tasklib.testing.suite.schema import Schema
from tasklib.testing.suite.series import Backlog, Series
from tasklib.testing.suite.settling import Settling
from tasklib.testing.suite.strangers import Strangers
from tasklib.testing.suite.submitting import Submitting
from tasklib.testing.suite.taking import Taking
from tasklib.testing.suite.values import Values
from tasklib.testing.suite.waking import Waking
from tasklib.testing.suite.workers import Workers


class StoreSuite(
    Submitting,
    Batches,
    Keys,
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
    Deleting,
    Races,
    Looking,
    Filters,
    Lists,
    Figures,
    Series,
    Backlog,
    Workers,
    ControlsKept,
    Pausing,
    RateLimits,
    ConcurrencyLimits,
    Taking,
    Tokens,
    Audit,
    Waking,
    Strangers,
    Schema,
    CheckUps,
    Closing,
):
    pytestmark: ClassVar = [pytest.mark.asyncio]


__all__ = ["OpenStore", "StoreSuite"]
