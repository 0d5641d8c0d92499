"""The figures that charts are drawn from."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import httpx
import pytest

from tasklib.core.decide import LATENCY_BOUNDS_MS, bucket_of
from tasklib.core.lifecycle import Phase
from tasklib.engine.engine import Engine
from tasklib.server.series import MOST_POINTS, percentile
from tests.conformance.builders import apply, claim_one, completed, failed, in_phase, submit
from tests.server.conftest import refused


async def test_ends_and_latency(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for _ in range(3):
        await submit(store, "work")
        await apply(store, completed(await claim_one(store, "work"), run_ms=40))
    await submit(store, "work")
    await apply(store, failed(await claim_one(store, "work"), run_ms=20_000, delay=60))
    await in_phase(store, Phase.COMPLETED, "other")
    body = (await api.get("/api/series?minutes=5&type=work")).json()
    assert (body["minutes"], body["stepMinutes"], len(body["points"])) == (5, 1, 6)
    totals = Counter[str]()
    for point in body["points"]:
        totals.update({name: point[name] for name in ("completed", "failed", "retried", "runMs")})
    assert totals == {"completed": 3, "failed": 0, "retried": 1, "runMs": 20_120}
    ran = [point for point in body["points"] if point["p50Ms"] is not None]
    assert all(25 < point["p50Ms"] <= 50 for point in ran[:1])
    assert max(point["p99Ms"] for point in ran) > 10_000
    everything = (await api.get("/api/series?minutes=5")).json()["points"]
    assert sum(point["completed"] for point in everything) == 4
    other = (await api.get("/api/series?minutes=5&type=nobody")).json()["points"]
    assert sum(point["completed"] for point in other) == 0


@pytest.mark.parametrize(("minutes", "step"), [(1, 1), (120, 1), (121, 5), (1440, 15), (86_400, 720)])
async def test_steps_are_even_and_few(quick: httpx.AsyncClient, minutes: int, step: int):
    body = (await quick.get(f"/api/series?minutes={minutes}")).json()
    times = [datetime.fromisoformat(point["at"]) for point in body["points"]]
    assert body["stepMinutes"] == step
    assert len(times) <= MOST_POINTS + 1
    assert {later - earlier for earlier, later in pairwise(times)} == {timedelta(minutes=step)}
    assert all(time.timestamp() % (step * 60) == 0 for time in times)


async def test_the_age_of_the_backlog(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit(store, "work")
    store.clock_offset += 600
    await store.sample_backlog()

    async def ages(**query: str) -> list[float]:
        points = (await api.get("/api/series", params={"minutes": 5, **query})).json()["points"]
        return [point["backlogSeconds"] for point in points if point["backlogSeconds"] is not None]

    assert len(await ages()) == 1
    assert 599 < (await ages())[0] < 630
    assert await ages(type="work") == await ages()
    assert await ages(type="idle") == [0.0]


async def test_bounds(quick: httpx.AsyncClient):
    for minutes in ("0", "-1", "86401", "x"):
        refused(await quick.get(f"/api/series?minutes={minutes}"), 400, "invalid_input", "minutes")


def test_percentiles_lie_within_their_bucket():
    latency = Counter({bucket_of(7): 50, bucket_of(400): 50})
    assert percentile(latency, 0.25) == 7.5
    assert percentile(latency, 0.50) == 10.0
    assert percentile(latency, 0.75) == 375.0
    assert percentile(Counter(), 0.5) is None
    assert percentile(Counter({len(LATENCY_BOUNDS_MS): 1}), 0.5) == LATENCY_BOUNDS_MS[-1]
