"""The command `worker`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import typer

from tasklib.cli import completion, logs
from tasklib.cli.command import command
from tasklib.cli.ending import AFTER_GRACE_SECONDS, EXIT_SECONDS, end_within, signals_heard
from tasklib.cli.exits import Exit, code_of
from tasklib.cli.loading import load
from tasklib.cli.logs import LogFormat, LogLevel
from tasklib.cli.reloading import Reloader
from tasklib.cli.session import Session
from tasklib.cli.supervisor import Supervisor
from tasklib.cli.times import duration
from tasklib.cli.workerprocess import hold_lifeline, say_ready
from tasklib.core.errors import InvalidInput
from tasklib.core.registry import default_registry
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.worker.gc_tuning import tune_gc
from tasklib.worker.metrics import MetricsPort, WorkerMetrics
from tasklib.worker.signals import StopSignals
from tasklib.worker.worker import TaskWorker

log = logging.getLogger("tasklib.worker")


def register(app: typer.Typer) -> None:
    command(app, "worker", example="tasklib worker app.tasks --concurrency 8 --processes 2")(worker)


def worker(
    session: Session,
    modules: Annotated[
        list[str],
        typer.Argument(metavar="MODULE", help="Where the tasks are: app.tasks or app/tasks.py.", show_default=False),
    ],
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", "-c", min=1, max=10_000, metavar="N", help="Tasks at once, in each process."),
    ] = 1,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            "-p",
            min=1,
            max=1000,
            metavar="N",
            help="Worker processes; with more than one, a dead one is started again.",
        ),
    ] = 1,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--names",
            "-n",
            metavar="NAMES",
            help="Serve only these task types: a,b or given several times; 'upload.*' is all that fit.",
            show_default=False,
            autocompletion=completion.task_names,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", "-x", metavar="NAMES", help="But not these.", show_default=False),
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queues",
            "-q",
            metavar="QUEUES",
            help="Serve only task types of these queues, as @task(queue=...) says.",
            show_default=False,
        ),
    ] = None,
    exclude_queues: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUES", help="But not of these.", show_default=False),
    ] = None,
    burst: Annotated[bool, typer.Option("--burst", help="Stop once nothing is due.")] = False,
    grace: Annotated[
        float | None,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="How long running tasks may go on after a signal to stop; 30s unless configured.",
            show_default=False,
        ),
    ] = None,
    poll_interval: Annotated[
        float,
        typer.Option(parser=duration, metavar="DURATION", help="How often to look for tasks when no wake-up comes."),
    ] = 1.0,
    app_version: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Version of your application; a new one is marked in the charts. TASKLIB_APP_VERSION unless given.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: start anew whenever a Python file changes.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Answer Prometheus on this port; each further process on the next one. 0 is any that is free.",
            show_default=False,
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(metavar="HOST", help="The address for it; anybody who reaches it may read.")
    ] = "127.0.0.1",
    quiet: Annotated[bool, typer.Option("--quiet", help="Log no line for each task that went well.")] = False,
    log_level: logs.Level = LogLevel.INFO,
    log_format: logs.Format = LogFormat.TEXT,
    lifeline: Annotated[int | None, typer.Option(hidden=True)] = None,
    ready: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run tasks until told to stop.

    The first SIGTERM or Ctrl-C stops taking tasks and lets the running ones finish; a second one, at least a second
    later, leaves at once.
    """
    order = Order(
        modules=modules,
        concurrency=concurrency,
        names=_listed(names),
        exclude=_listed(exclude),
        queues=_listed(queues),
        exclude_queues=_listed(exclude_queues),
        burst=burst,
        grace=grace,
        poll_interval=poll_interval,
        app_version=app_version,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        quiet=quiet,
        log_level=log_level,
        log_format=log_format,
    )
    logs.configure(log_level, log_format, quiet=quiet)
    if lifeline is not None:
        hold_lifeline(lifeline)
    if reload:
        if processes > 1 or burst:
            raise InvalidInput(
                "--reload runs one worker until it is told to stop: no --processes, no --burst", field="reload"
            )
        code = asyncio.run(Reloader(order.words(session), order.modules).run())
    elif processes > 1:
        _check(session, order)
        code = asyncio.run(_supervise(session, order, processes))
    else:
        code = _serve(session, order, ready)
    if session.out.as_json:
        session.out.data({"processes": processes, "burst": burst, "ended": "at once" if code else "in order"})
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one worker process is to do."""

    modules: Sequence[str]
    concurrency: int
    names: Sequence[str]
    exclude: Sequence[str]
    queues: Sequence[str]
    exclude_queues: Sequence[str]
    burst: bool
    grace: float | None
    poll_interval: float
    app_version: str | None
    metrics_port: int | None
    metrics_host: str
    quiet: bool
    log_level: LogLevel
    log_format: LogFormat

    @property
    def settings(self) -> dict[str, object]:
        given = {"shutdown_grace_seconds": self.grace, "app_version": self.app_version}
        return {name: value for name, value in given.items() if value is not None}

    def words(self, session: Session, number: int = 1) -> list[str]:
        """The same as a command line, for the process of this number."""
        words = [*self.modules, "--concurrency", str(self.concurrency), "--poll-interval", f"{self.poll_interval:f}"]
        words += ["--log-level", self.log_level.value, "--log-format", self.log_format.value]
        chosen = {
            "--names": self.names,
            "--exclude": self.exclude,
            "--queues": self.queues,
            "--exclude-queues": self.exclude_queues,
        }
        words += [word for option, values in chosen.items() for value in values for word in (option, value)]
        if self.metrics_port is not None:
            port = self.metrics_port and self.metrics_port + number - 1
            words += ["--metrics-port", str(port), "--metrics-host", self.metrics_host]
        words += ["--quiet"] if self.quiet else []
        words += ["--burst"] if self.burst else []
        words += ["--grace", f"{self.grace:f}"] if self.grace is not None else []
        words += ["--app-version", self.app_version] if self.app_version is not None else []
        words += ["--database-url", session.database_url] if session.database_url is not None else []
        return words + (["--debug"] if session.debug else [])


def _listed(texts: Sequence[str] | None) -> list[str]:
    """`a,b`, or given several times."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]


def _serve(session: Session, order: Order, ready: int | None) -> Exit:
    if session.database_url is not None:
        os.environ["TASKLIB_DATABASE_URL"] = session.database_url  # child processes of tasks find the same queue
    load(order.modules)
    if not len(default_registry):
        where = ", ".join(order.modules)
        raise InvalidInput(f"no tasks are defined in {where}: decorate functions with @task", field="modules")
    session.config = session.adopt_app_config(**order.settings)
    metrics = None
    if order.metrics_port is not None:
        metrics = WorkerMetrics()
        around = [*session.config.middleware, metrics]
        session.config = session.adopt_app_config(**order.settings, middleware=around)
    task_worker = TaskWorker(
        concurrency=order.concurrency,
        poll_interval_seconds=order.poll_interval,
        names=order.names or None,
        exclude=order.exclude,
        queues=order.queues or None,
        exclude_queues=order.exclude_queues,
        burst=order.burst,
        handle_signals=False,
        engine=default_engine(),
    )
    if ready is not None:
        say_ready(ready, task_worker.config.shutdown_grace_seconds)
    tune_gc()
    if metrics is None or order.metrics_port is None:
        return _run(task_worker)
    port = MetricsPort(order.metrics_host, order.metrics_port, lambda: metrics.lines(task_worker))
    log.info("metrics are at http://%s:%d/metrics", order.metrics_host, port.port)
    try:
        return _run(task_worker)
    finally:
        port.close()


def _run(task_worker: TaskWorker) -> Exit:
    """Runs it with the signals in our hands, so that we know how it ended, and that it ends."""
    signals = StopSignals()
    grace = task_worker.config.shutdown_grace_seconds

    def told(number: signal.Signals) -> None:
        if not signals.count():
            return
        log.info("%s: %s", number.name, "leaving at once" if signals.leaving else "stopping")
        after = 0.0 if signals.leaving else grace
        reason = "the worker does not stop: a task blocks its event loop, or its database does not answer"
        endings.callback(end_within(after + AFTER_GRACE_SECONDS, Exit.INTERRUPTED, reason))
        task_worker.stop()

    async def serve() -> Exit:
        code = Exit.FAILED
        try:
            await task_worker.run()
            code = Exit.INTERRUPTED if signals.leaving else Exit.OK
        except Exception as error:
            code = code_of(error)
            raise
        finally:
            endings.callback(end_within(EXIT_SECONDS, code, "a coroutine or a thread of a task does not end"))
        return code

    with ExitStack() as endings, signals_heard(told):
        return asyncio.run(serve())


async def _supervise(session: Session, order: Order, processes: int) -> Exit:
    words = [order.words(session, number) for number in range(1, processes + 1)]
    return await Supervisor(words, burst=order.burst).run()


def _check(session: Session, order: Order) -> None:
    """What is wrong with the options is said here, once, and not by every process."""
    config = session.configure(**order.settings)
    TaskWorker(config, order.concurrency, order.poll_interval)
    if not Engine(config).new_store().traits.shared_between_processes:
        raise InvalidInput(f"{config.shown_url} cannot be shared by several processes", field="processes")
