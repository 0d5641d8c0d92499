"""The program of a child process: `python -m tasklib.worker.executors.child`. Imports the worker's modules,
then runs tasks."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import os
import queue
import runpy
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

from tasklib.core.errors import Unsupported
from tasklib.core.outcome import Outcome
from tasklib.core.registry import TaskType, default_registry
from tasklib.engine.config import Config
from tasklib.engine.current import RunningTask, running
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.engine.middleware import AROUND, Middleware, defining, name_of
from tasklib.engine.parents import Parents
from tasklib.worker import runner
from tasklib.worker.executors import frames, guardian, logs

T = TypeVar("T")


def main() -> None:
    read_fd, write_fd, parent = (int(argument) for argument in sys.argv[1:4])
    guardian.die_with(parent, signal.SIGKILL)
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(read_fd, inbox), daemon=True).start()
    hello = inbox.get()
    send = logs.Locked(lambda message: frames.send(write_fd, message))
    to_worker = logs.ToWorker(send)
    to_worker.install(hello["log_levels"])
    around: Sequence[Middleware] = ()
    try:
        _load(hello)
        to_worker.settle()
        if hello["middleware"]:
            around = defining(default_engine().config.middleware, *AROUND)
    except BaseException as error:
        send({"error": runner.describe(error)})
        return
    known = [name for name in hello["names"] if default_registry.get(name)]
    send({"known": known, "middleware": [name_of(each) for each in around]})
    while True:
        message = inbox.get()
        task_type = default_registry.get(message["name"])
        assert task_type is not None, message["name"]
        send(frames.pack(_run(task_type, message, hello["max_result_bytes"], around)))


def _run(task_type: TaskType, message: dict[str, Any], limit: int, around: Sequence[Middleware]) -> Outcome:
    begun = time.monotonic()
    timeout = message["timeout"]
    after, flow_id = None, None
    if message["flow"] is not None:
        about = json.loads(message["flow"])
        after, flow_id = about.get("after"), UUID(about["id"]) if about.get("id") else None
    task = RunningTask(
        id=UUID(message["id"]),
        name=message["name"],
        attempt=message["attempt"],
        tags=json.loads(message["tags"]),
        deadline=None if timeout is None else begun + timeout,
        is_last=message["is_last"],
        flow_id=flow_id,
        _parents=lambda: Parents(UUID(message["id"]), after, _engine(message["queue"]).store, _run_blocking),
        _arguments=lambda: task_type.decode_call(message["kwargs"]),
        _queue=message["queue"],
    )
    running.set(lambda: task)
    given = (task_type, message["kwargs"], limit, around, message["trace"], message["sources"])
    return asyncio.run(runner.call_async(*given)) if task_type.is_async else runner.call(*given)


@functools.cache
def _engine(queue: str) -> Engine:
    """Of the worker's queue."""
    if queue.startswith("memory:"):
        raise Unsupported("a queue in memory cannot be seen from a child process: use a file or a server")
    own = default_engine()
    return own if own.config.database_url == queue else Engine(Config(database_url=queue))


def _run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """In a loop that is kept, and with it the connection to the queue."""
    return _runner().run(work)


@functools.cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def _load(hello: dict[str, Any]) -> None:
    sys.path[:] = hello["path"]
    for module in hello["modules"]:
        importlib.import_module(module)
    # As multiprocessing does it: under another name, so that `if __name__ == "__main__"` does not start a worker.
    if hello["main_module"]:
        runpy.run_module(hello["main_module"], run_name="__mp_main__", alter_sys=True)
    elif hello["main_file"]:
        runpy.run_path(hello["main_file"], run_name="__mp_main__")


def _listen(fd: int, inbox: queue.SimpleQueue[dict[str, Any]]) -> None:
    while (message := frames.receive(fd)) is not None:
        inbox.put(message)
    os._exit(1)  # the parent is gone, or wants us gone


if __name__ == "__main__":
    main()
