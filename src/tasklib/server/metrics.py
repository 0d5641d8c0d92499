"""/metrics: the queue's health in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.redact import mask_text
from tasklib.core.schedules import Schedule
from tasklib.engine.diagnose import is_live
from tasklib.server.docs import problems
from tasklib.server.meters import Meters
from tasklib.server.service import Served
from tasklib.stores.values import Controls, NameStats, WorkerInfo

router = APIRouter(tags=["figures"])

MOST_SCHEDULES = 1000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems()},
)
async def metrics(service: Served) -> PlainTextResponse:
    """Metrics for Prometheus."""
    await service.meters.refresh()
    lines = [
        *_depth(await service.engine.stats()),
        *_totals(service.meters),
        *_latency(service.meters),
        *_workers(await service.engine.workers(), service.dead_after),
        *_controls(await service.engine.controls()),
        *_schedules(await service.engine.schedules.all()),
    ]
    return PlainTextResponse("\n".join(lines) + "\n", media_type=CONTENT_TYPE)


def _depth(stats: Mapping[str, NameStats]) -> Iterator[str]:
    yield from _head("tasklib_queue_depth", "gauge", "Tasks that are not finished, by type and status.")
    for name, each in stats.items():
        for status, count in (("pending", each.pending), ("waiting", each.waiting), ("processing", each.running)):
            yield _line("tasklib_queue_depth", count, type=name, status=status)
    yield from _head("tasklib_tasks", "gauge", "Finished tasks that are kept, by type and status.")
    for name, each in stats.items():
        for status, count in (("completed", each.completed), ("failed", each.failed), ("cancelled", each.cancelled)):
            yield _line("tasklib_tasks", count, type=name, status=status)
    yield from _head("tasklib_processing", "gauge", "Tasks running now, by type.")
    for name, each in stats.items():
        yield _line("tasklib_processing", each.running, type=name)
    yield from _head("tasklib_oldest_due_age_seconds", "gauge", "How long the longest waiting task has been due.")
    for name, each in stats.items():
        yield _line("tasklib_oldest_due_age_seconds", max(0.0, each.oldest_due_seconds or 0.0), type=name)


def _totals(meters: Meters) -> Iterator[str]:
    yield from _head("tasklib_attempts_total", "counter", "Attempts and cancellations by type and how they ended.")
    for (name, outcome), count in sorted(meters.finished.items()):
        yield _line("tasklib_attempts_total", count, type=name, outcome=outcome)


def _latency(meters: Meters) -> Iterator[str]:
    metric = "tasklib_handler_duration_seconds"
    yield from _head(metric, "histogram", "How long handlers took.")
    for name, counts in sorted(meters.buckets.items()):
        total = 0
        for bound, count in zip(LATENCY_BOUNDS_MS, counts, strict=False):
            total += count
            yield _line(f"{metric}_bucket", total, type=name, le=f"{bound / 1000:g}")
        total += counts[-1]
        yield _line(f"{metric}_bucket", total, type=name, le="+Inf")
        yield _line(f"{metric}_sum", meters.run_ms.get(name, 0) / 1000, type=name)
        yield _line(f"{metric}_count", total, type=name)


def _workers(workers: list[WorkerInfo], dead_after: float) -> Iterator[str]:
    present = [worker for worker in workers if worker.stopped_at is None]
    yield from _head("tasklib_workers_live", "gauge", "Workers heard of within the limit for being taken for dead.")
    yield _line("tasklib_workers_live", sum(is_live(worker, dead_after) for worker in present))
    yield from _head("tasklib_worker_last_seen_seconds", "gauge", "Age of a worker's last heartbeat.")
    for worker in present:
        yield _line("tasklib_worker_last_seen_seconds", max(0.0, worker.seconds_since_seen), worker=worker.id)
    yield from _head("tasklib_worker_running", "gauge", "Tasks that a worker runs.")
    for worker in present:
        yield _line("tasklib_worker_running", worker.running, worker=worker.id)


def _controls(controls: Mapping[str, Controls]) -> Iterator[str]:
    known = {"": Controls(), **controls}
    yield from _head("tasklib_paused", "gauge", "1 where starts are paused; the empty type is all types.")
    for name, each in known.items():
        yield _line("tasklib_paused", int(each.paused), type=name)
    yield from _head("tasklib_rate_limit", "gauge", "Starts a second that a limit allows.")
    for name, each in known.items():
        if each.rate:
            yield _line("tasklib_rate_limit", each.rate, type=name)


def _schedules(schedules: Sequence[Schedule]) -> Iterator[str]:
    """A queue may have one for each customer: those that come first by name."""
    shown = schedules[:MOST_SCHEDULES]
    yield from _head("tasklib_schedule_last_fire_timestamp_seconds", "gauge", "When a schedule was last fired.")
    for each in shown:
        if each.runs:
            fired_at = each.runs[-1].fired_at.timestamp()
            yield _line("tasklib_schedule_last_fire_timestamp_seconds", fired_at, schedule=each.name)
    yield from _head("tasklib_schedule_lateness_seconds", "gauge", "How long after its time it was last fired.")
    for each in shown:
        if each.lateness_seconds is not None:
            yield _line("tasklib_schedule_lateness_seconds", max(0.0, each.lateness_seconds), schedule=each.name)
    yield from _head("tasklib_schedule_fired_total", "counter", "Times that were fired.")
    for each in shown:
        yield _line("tasklib_schedule_fired_total", each.fired, schedule=each.name)
    yield from _head("tasklib_schedule_missed_total", "counter", "Times that passed and were not made up for.")
    for each in shown:
        yield _line("tasklib_schedule_missed_total", each.missed, schedule=each.name)


def _head(metric: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"


def _line(metric: str, value: float, **labels: str) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{metric}{{{inside}}} {value:.15g}" if inside else f"{metric} {value:.15g}"


def _escaped(text: str) -> str:
    """As the format wants it; what cannot be seen is written out, because people read this in terminals, too."""
    text = mask_text(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii").replace("\\", "\\\\")
