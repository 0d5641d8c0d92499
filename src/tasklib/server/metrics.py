"""/metrics: the queue's health in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from tasklib.core.exposition import CONTENT_TYPE, head, histogram, line
from tasklib.core.schedules import Schedule
from tasklib.engine.diagnose import is_live
from tasklib.server.docs import problems
from tasklib.server.meters import Meters
from tasklib.server.service import Served
from tasklib.stores.values import Controls, NameStats, WorkerInfo

router = APIRouter(tags=["figures"])

MOST_SCHEDULES = 1000


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems()},
)
async def metrics(service: Served) -> PlainTextResponse:
    """Metrics for Prometheus."""
    await service.meters.refresh()
    stats = await service.engine.stats()
    schedules = await service.engine.schedules.all()
    shown = schedules[:MOST_SCHEDULES]
    now = await (await service.engine.store()).now()
    lines = [
        *_depth(stats),
        *_totals(service.meters),
        *_submits(service.meters),
        *_latency(service.meters),
        *_workers(await service.engine.workers(), service.dead_after),
        *_controls(await service.engine.controls(), stats),
        *_states(schedules, now),
        *_schedules(shown, await service.engine.schedules.failing(shown)),
    ]
    return PlainTextResponse("\n".join(lines) + "\n", media_type=CONTENT_TYPE)


def _depth(stats: Mapping[str, NameStats]) -> Iterator[str]:
    yield from head("tasklib_queue_depth", "gauge", "Tasks that are not finished, by type and status.")
    for name, each in stats.items():
        for status, count in (("pending", each.pending), ("waiting", each.waiting), ("processing", each.running)):
            yield line("tasklib_queue_depth", count, type=name, status=status)
    yield from head("tasklib_tasks", "gauge", "Finished tasks that are kept, by type and status.")
    for name, each in stats.items():
        for status, count in (("completed", each.completed), ("failed", each.failed), ("cancelled", each.cancelled)):
            yield line("tasklib_tasks", count, type=name, status=status)
    yield from head("tasklib_processing", "gauge", "Tasks running now, by type.")
    for name, each in stats.items():
        yield line("tasklib_processing", each.running, type=name)
    yield from head("tasklib_oldest_due_age_seconds", "gauge", "How long the longest waiting task has been due.")
    for name, each in stats.items():
        yield line("tasklib_oldest_due_age_seconds", max(0.0, each.oldest_due_seconds or 0.0), type=name)


def _totals(meters: Meters) -> Iterator[str]:
    yield from head("tasklib_attempts_total", "counter", "Attempts and cancellations by type and how they ended.")
    for (name, outcome), count in sorted(meters.finished.items()):
        yield line("tasklib_attempts_total", count, type=name, outcome=outcome)


def _submits(meters: Meters) -> Iterator[str]:
    yield from head("tasklib_arrived_total", "counter", "Tasks that came, or were retried by hand; told once a minute.")
    for name, count in sorted(meters.arrived.items()):
        yield line("tasklib_arrived_total", count, type=name)
    yield from head("tasklib_http_submits_total", "counter", "Tasks that were created through this server, by type.")
    for name, count in sorted(meters.submits.items()):
        yield line("tasklib_http_submits_total", count, type=name)


def _latency(meters: Meters) -> Iterator[str]:
    metric = "tasklib_handler_duration_seconds"
    yield from head(metric, "histogram", "How long handlers took.")
    for name, counts in sorted(meters.buckets.items()):
        yield from histogram(metric, counts, meters.run_ms.get(name, 0) / 1000, type=name)
    metric = "tasklib_wait_seconds"
    yield from head(metric, "histogram", "How long tasks had been due when their first attempt began; told at its end.")
    for name, counts in sorted(meters.waited.items()):
        yield from histogram(metric, counts, meters.waited_ms.get(name, 0) / 1000, type=name)


def _workers(workers: list[WorkerInfo], dead_after: float) -> Iterator[str]:
    present = [worker for worker in workers if worker.stopped_at is None]
    yield from head("tasklib_workers_live", "gauge", "Workers heard of within the limit for being taken for dead.")
    yield line("tasklib_workers_live", sum(is_live(worker, dead_after) for worker in present))
    yield from head("tasklib_worker_last_seen_seconds", "gauge", "Age of a worker's last heartbeat.")
    for worker in present:
        yield line("tasklib_worker_last_seen_seconds", max(0.0, worker.seconds_since_seen), worker=worker.id)
    yield from head("tasklib_worker_running", "gauge", "Tasks that a worker runs.")
    for worker in present:
        yield line("tasklib_worker_running", worker.running, worker=worker.id)


def _controls(controls: Mapping[str, Controls], stats: Mapping[str, NameStats]) -> Iterator[str]:
    known = {"": Controls(), **controls}
    yield from head("tasklib_paused", "gauge", "1 where starts are paused; the empty type is all types.")
    for name, each in known.items():
        yield line("tasklib_paused", int(each.paused), type=name)
    yield from head("tasklib_rate_limit", "gauge", "Starts a second that a limit allows.")
    for name, each in known.items():
        if each.rate:
            yield line("tasklib_rate_limit", each.rate, type=name)
    limited = {name: each.concurrency for name, each in known.items() if each.concurrency is not None}
    yield from head("tasklib_concurrency_limit", "gauge", "Tasks that a limit allows to run at once.")
    for name, limit in limited.items():
        yield line("tasklib_concurrency_limit", limit, type=name)
    yield from head("tasklib_concurrency_used", "gauge", "Of what a limit allows to run at once, what runs.")
    for name in limited:
        running = stats.get(name, NameStats()).running if name else sum(each.running for each in stats.values())
        yield line("tasklib_concurrency_used", running, type=name)


def _states(schedules: Sequence[Schedule], now: datetime) -> Iterator[str]:
    """Of all, so that one sees it where more are there than are shown one by one."""
    found = Counter(
        "paused" if each.paused else "orphaned" if each.is_orphaned(now) else "active" for each in schedules
    )
    yield from head("tasklib_schedules", "gauge", "Schedules, by state.")
    for state in ("active", "paused", "orphaned"):
        yield line("tasklib_schedules", found[state], state=state)


def _schedules(shown: Sequence[Schedule], failing: Collection[str]) -> Iterator[str]:
    """A queue may have one for each customer: those that come first by name."""
    yield from head("tasklib_schedule_failing", "gauge", "1 where the latest run that ended has failed.")
    for each in shown:
        yield line("tasklib_schedule_failing", int(each.name in failing), schedule=each.name)
    yield from head("tasklib_schedule_last_fire_timestamp_seconds", "gauge", "When a schedule was last fired.")
    for each in shown:
        if each.runs:
            fired_at = each.runs[-1].fired_at.timestamp()
            yield line("tasklib_schedule_last_fire_timestamp_seconds", fired_at, schedule=each.name)
    yield from head("tasklib_schedule_lateness_seconds", "gauge", "How long after its time it was last fired.")
    for each in shown:
        if each.lateness_seconds is not None:
            yield line("tasklib_schedule_lateness_seconds", max(0.0, each.lateness_seconds), schedule=each.name)
    yield from head("tasklib_schedule_fired_total", "counter", "Times that were fired.")
    for each in shown:
        yield line("tasklib_schedule_fired_total", each.fired, schedule=each.name)
    yield from head("tasklib_schedule_missed_total", "counter", "Times that passed and were not made up for.")
    for each in shown:
        yield line("tasklib_schedule_missed_total", each.missed, schedule=each.name)
