"""A worker's own figures for Prometheus: middleware that counts, and the port on which they are read.

They begin at zero with the process, and are named otherwise than those of the server, which are the whole queue's.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.errors import InvalidConfig
from tasklib.core.exposition import BUCKETS, CONTENT_TYPE, head, histogram, line
from tasklib.engine.middleware import Middleware, Submission, TaskEvent
from tasklib.worker.worker import TaskWorker

REQUEST_SECONDS = 10.0
"""How long a scrape may take to ask."""


class WorkerMetrics(Middleware):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Listeners, submitters and scrapes each have a thread."""
        self._ended: Counter[tuple[str, str]] = Counter()
        self._submits: Counter[str] = Counter()
        self._run = _Histogram()
        self._waited = _Histogram()

    def before_submit(self, task: Submission) -> None:
        with self._lock:
            self._submits[task.name] += 1

    def on_completed(self, event: TaskEvent) -> None:
        self._note("completed", event)

    def on_failed(self, event: TaskEvent) -> None:
        self._note("failed", event)

    def on_retry(self, event: TaskEvent) -> None:
        self._note("retried", event)

    def on_cancelled(self, event: TaskEvent) -> None:
        self._note("cancelled", event)

    def _note(self, outcome: str, event: TaskEvent) -> None:
        with self._lock:
            self._ended[event.name, outcome] += 1
            self._run.add(event.name, event.seconds)
            self._waited.add(event.name, event.waited)

    def lines(self, worker: TaskWorker) -> list[str]:
        with self._lock:
            return [*self._slots(worker), *self._lines()]

    def _slots(self, worker: TaskWorker) -> Iterator[str]:
        yield from head("tasklib_worker_slots", "gauge", "Tasks that this worker runs at once, at most.")
        yield line("tasklib_worker_slots", worker.concurrency)
        yield from head("tasklib_worker_slots_used", "gauge", "Tasks that it runs now.")
        yield line("tasklib_worker_slots_used", worker.running)

    def _lines(self) -> Iterator[str]:
        metric = "tasklib_worker_attempts_total"
        yield from head(metric, "counter", "Attempts of this worker, and cancellations, by type and how they ended.")
        for (name, outcome), count in sorted(self._ended.items()):
            yield line(metric, count, type=name, outcome=outcome)
        yield from self._run.lines("tasklib_worker_handler_duration_seconds", "How long handlers took.")
        yield from self._waited.lines(
            "tasklib_worker_wait_seconds", "How long tasks had been due when their first attempt began."
        )
        metric = "tasklib_worker_submits_total"
        yield from head(metric, "counter", "Tasks that this process was asked to submit, by type.")
        for name, count in sorted(self._submits.items()):
            yield line(metric, count, type=name)


class _Histogram:
    """By type."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * BUCKETS)
        self._seconds: dict[str, float] = defaultdict(float)

    def add(self, name: str, seconds: float | None) -> None:
        if seconds is not None:
            self._counts[name][bisect_left(LATENCY_BOUNDS_MS, seconds * 1000)] += 1
            self._seconds[name] += seconds

    def lines(self, metric: str, text: str) -> Iterator[str]:
        yield from head(metric, "histogram", text)
        for name, counts in sorted(self._counts.items()):
            yield from histogram(metric, counts, self._seconds[name], type=name)


class MetricsPort:
    """Answers `GET /metrics` in threads of its own, so that handlers that block the event loop do not block it."""

    def __init__(self, host: str, port: int, lines: Callable[[], list[str]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_SECONDS
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                found = self.path.partition("?")[0] == "/metrics"
                body = "\n".join([*lines(), ""]).encode() if found else b"The metrics are at /metrics.\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *words: object) -> None:
                pass

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise InvalidConfig(
                f"metrics_port: cannot listen on {host}:{port}: {error.strerror}", field="metrics_port"
            ) from None
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="tasklib-metrics", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A scrape that breaks off is nobody's business."""
