"""Looks at what waits: what came between two of them is counted once, and exactly."""

from datetime import UTC, datetime

from tasklib.stores.protocol import Store
from tasklib.stores.samples import ARRIVED, Earlier, Waiting, cells_of
from tasklib.stores.sql import sampling
from tasklib.stores.sql.store import SqlStore
from tests.conformance.builders import submit_several
from tests.conformance.series import at_the_begin_of_a_minute


async def test_what_two_saw_at_once_is_kept_once(store: Store):
    assert isinstance(store, SqlStore)
    await at_the_begin_of_a_minute(store)
    await store.sample_backlog()
    await submit_several(store, 3)
    store.clock_offset += 60
    looks = [await store._driver.read(sampling.look) for _ in range(2)]
    assert looks[0][0][0] == looks[1][0][0], "both are of one minute"
    for cells in looks:
        await store._driver.write(lambda cells=cells: sampling.keep(cells))  # type: ignore[misc]
    assert [point.count for point in await store.series(600) if point.state == ARRIVED] == [3, 3]
    assert await store._driver.read(sampling.look) == []


def test_it_does_not_matter_how_late_in_its_minute_a_look_is():
    """Ten waited at the first look, when four of its minute had ended. Then six came, and twelve ended, two of them in
    the minute of the second look."""
    minute = datetime(2030, 1, 1, tzinfo=UTC)
    earlier = Earlier(minute, {"work": 10 + 4}, {"work": 4 + 10})
    cells = cells_of(minute, {"work": Waiting(unfinished=4, due=1)}, {"work": 2}, earlier)
    assert {name: count for _, name, state, _, count, _ in cells if state == ARRIVED} == {"work": 6, "": 6}
