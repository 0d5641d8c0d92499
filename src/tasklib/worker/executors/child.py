"""The program of a child process: `python -m tasklib.worker.executors.child`. Imports the worker's modules,
then runs tasks."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import queue
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tasklib.core.outcome import Outcome
from tasklib.core.registry import TaskType, default_registry
from tasklib.engine.current import RunningTask, running
from tasklib.engine.default import default_engine
from tasklib.engine.middleware import AROUND, Middleware, defining, name_of
from tasklib.worker import runner
from tasklib.worker.executors import frames, guardian, logs


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
    task = RunningTask(
        id=UUID(message["id"]),
        name=message["name"],
        attempt=message["attempt"],
        tags=json.loads(message["tags"]),
        deadline=None if timeout is None else begun + timeout,
        is_last=message["is_last"],
        _arguments=lambda: task_type.decode_call(message["kwargs"]),
        _queue=message["queue"],
    )
    running.set(lambda: task)
    given = (task_type, message["kwargs"], limit, around, message["trace"])
    return asyncio.run(runner.call_async(*given)) if task_type.is_async else runner.call(*given)


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
