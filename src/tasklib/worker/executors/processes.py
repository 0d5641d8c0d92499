"""The executor for `executor="process"`: each slot owns one child, which is killed when its task must stop.

Never a ProcessPoolExecutor: there, one child's death breaks all the others' work.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasklib.core.errors import TaskDefinitionError
from tasklib.core.outcome import Failed, Outcome
from tasklib.core.registry import TaskType
from tasklib.engine.default import init_module
from tasklib.engine.middleware import Middleware, name_of
from tasklib.worker.executors import frames, guardian, logs
from tasklib.worker.executors.slots import Slots
from tasklib.worker.executors.threads import Report, ThreadExecutor
from tasklib.worker.in_flight import Execution, InFlight, Stop

log = logging.getLogger("tasklib.worker")


class ProcessExecutor(ThreadExecutor):
    """The thread executor with a child behind each thread."""

    def __init__(
        self,
        slots: Slots,
        in_flight: InFlight,
        report: Report,
        task_types: Sequence[TaskType],
        max_result_bytes: int,
        around: Sequence[Middleware],
    ) -> None:
        super().__init__(slots, in_flight, report, self._delegate, "process")
        self._hello = _hello(task_types, max_result_bytes, around)
        self._local = threading.local()
        self._children: dict[Execution, _Child] = {}
        self._all: set[_Child] = set()

    def check(self) -> None:
        """Refuses, before anything is claimed, tasks that a child could not import, and middleware that it would not
        run."""
        child = _Child(self._hello)
        try:
            missing = sorted(set(self._hello["names"]) - set(child.known))
            unknown = [name for name in self._hello["middleware"] if name not in child.middleware]
        finally:
            child.kill()
        if unknown:
            raise TaskDefinitionError(
                f"executor='process': a child process has no middleware {', '.join(unknown)}; call init(Config("
                "middleware=...)) at the top level of an importable module, or set TASKLIB_MIDDLEWARE"
            )
        if missing:
            listed = ", ".join(missing)
            raise TaskDefinitionError(
                f"executor='process': a child process does not find {listed}; define such tasks at the top level of an "
                "importable module, and start the worker under `if __name__ == '__main__'`"
            )

    def interrupt(self, execution: Execution, reason: Stop) -> None:
        child = self._children.get(execution)
        if child is not None:
            child.kill()

    def close(self) -> None:
        super().close()
        for child in list(self._all):
            child.kill()

    def _delegate(self, execution: Execution) -> Outcome:
        child = getattr(self._local, "child", None)
        if child is None or not child.alive:
            try:
                child = self._local.child = _Child(self._hello)
            except (TaskDefinitionError, OSError) as error:
                return Failed(f"{type(error).__name__}: {error}")
            self._all.add(child)
        self._children[execution] = child
        try:
            if execution.stop is not None:  # told to stop while its child was starting
                child.kill()
            outcome = child.run(execution)
        finally:
            del self._children[execution]
            if not child.alive:
                self._all.discard(child)
        return outcome


class _Child:
    """A process that runs one task after another. Its guardian, which is ours to start, to tell and to wait for, ends
    it and everything it started: when told so, when it dies, and when this worker is gone."""

    _open = False
    """Whether the pipes are."""

    def __init__(self, hello: dict[str, Any]) -> None:
        order, self._order = os.pipe()
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        self._ended, ending = os.pipe()
        self._lock = threading.Lock()
        self._open = True
        os.set_blocking(self._out, False)
        theirs = (ending, to_child, from_child)
        try:
            # -P and -S: it finds the standard library, and nothing else.
            self._guardian = subprocess.Popen(
                [sys.executable, "-P", "-S", guardian.__file__, str(os.getpid()), *map(str, theirs)],
                pass_fds=theirs,
                stdin=order,
                start_new_session=True,  # a Ctrl-C is for the worker, which decides what becomes of its children
            )
        except OSError:
            self._close()
            raise
        finally:
            for fd in (order, *theirs):
                os.close(fd)
        self.alive = True
        reply = self._ask(hello)
        if reply is None or "error" in reply:
            self.kill()
            reason = reply["error"] if reply else f"it ended with {self._ending()}"
            raise TaskDefinitionError(f"executor='process': the child process could not start: {reason}")
        self.known: list[str] = reply["known"]
        self.middleware: list[str] = reply["middleware"]

    def run(self, execution: Execution) -> Outcome:
        claim = execution.claim
        reply = self._ask(
            {
                "id": str(claim.id),
                "name": claim.name,
                "kwargs": claim.kwargs,
                "attempt": claim.attempt,
                "is_last": claim.is_last,
                "tags": claim.tags,
                "timeout": claim.timeout_seconds,
                "trace": claim.trace,
                "queue": execution.in_flight.queue,
                "flow": claim.flow,
                "sources": execution.sources,
            }
        )
        if reply is not None:
            return frames.unpack(reply)
        self.kill()
        error = f"ChildProcessDied: the process that ran this task ended with {self._ending()}"
        return Failed(error, lost=True, type="ChildProcessDied")

    def kill(self) -> None:
        self.alive = False
        with self._lock:
            if self._open:
                with suppress(OSError):  # it has ended already
                    os.write(self._order, b"x")

    def _ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The answer. What the child logs meanwhile, or has logged since, comes before it."""
        if not frames.send(self._out, message, self._ended):
            return None
        while (reply := frames.receive(self._in, self._ended)) is not None and "log" in reply:
            logs.handle(reply["log"])
        return reply

    def _ending(self) -> str:
        """Waits for the end, and says what it was."""
        told = os.read(self._ended, 64)
        code = self._guardian.wait()
        self._close()
        if told:  # otherwise the guardian itself was killed, and the child with it
            code = int(told)
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                for fd in (self._order, self._out, self._in, self._ended):
                    os.close(fd)

    def __del__(self) -> None:
        # Reaped here when it was killed without anybody waiting for its last words.
        if self._open:
            self.kill()
            self._guardian.wait()
            self._close()


def _hello(task_types: Sequence[TaskType], max_result_bytes: int, around: Sequence[Middleware]) -> dict[str, Any]:
    defining = {task_type.function.__module__ for task_type in task_types}
    settings = init_module() if around else None
    modules = list(dict.fromkeys([*([] if settings is None else [settings]), *sorted(defining)]))
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return {
        "path": [entry or str(Path.cwd()) for entry in sys.path],
        "modules": [module for module in modules if module != "__main__"],
        "main_module": spec.name if "__main__" in modules and spec is not None else None,
        "main_file": getattr(main, "__file__", None) if "__main__" in modules and spec is None else None,
        "names": [task_type.name for task_type in task_types],
        "middleware": [name_of(each) for each in around],
        "max_result_bytes": max_result_bytes,
        "log_levels": logs.levels(),
    }
