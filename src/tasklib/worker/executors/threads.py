"""The executor for `def` tasks: threads of our own that take claims from a common queue.

Daemons, because the interpreter waits at exit for a ThreadPoolExecutor's threads, also for one that never ends.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

from tasklib.core.outcome import Outcome, TaskStopped, TaskTimedOut
from tasklib.engine import task_log
from tasklib.engine.current import running
from tasklib.worker import runner
from tasklib.worker.executors.slots import Slots
from tasklib.worker.in_flight import Execution, InFlight, Stop

log = logging.getLogger("tasklib.worker")

Report = Callable[[Execution, Outcome | None], None]
Run = Callable[[Execution], Outcome]

LEFT_BEHIND_LIMIT = 100
"""With so many threads left behind that have not ended since, the next one keeps its slot."""


class ThreadExecutor:
    """Runs executions in threads by a given function. Threads are made when first needed."""

    def __init__(self, slots: Slots, in_flight: InFlight, report: Report, run: Run, label: str) -> None:
        self.waiting: deque[Execution] = deque()
        self._slots = slots
        self._in_flight = in_flight
        self._report = report
        self._run = run
        self._label = label
        self._permits: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._idle = 0
        self._made = 0
        self._left_behind = 0
        """Threads that were given up and have not ended since."""
        self._lock = threading.Lock()
        self._threads: dict[Execution, _Slot] = {}
        self._closed = False

    def start(self) -> None:
        with self._lock:
            spare = self._idle > 0
            if spare:
                self._idle -= 1
            else:
                self._made += 1
        if not spare:
            _Slot(self, self._label).begin()
        self._permits.put(True)

    def interrupt(self, execution: Execution, reason: Stop) -> None:
        slot = self._threads.get(execution)
        if slot is not None:
            slot.interrupt(execution, TaskTimedOut if reason is Stop.TIMEOUT else TaskStopped)

    def abandon(self, execution: Execution) -> None:
        slot = self._threads.pop(execution, None)
        with self._lock:
            if slot is None or not slot.abandon(execution):
                return
            self._left_behind += 1
            left_behind = self._left_behind
            replaced = left_behind < LEFT_BEHIND_LIMIT
            if not replaced:
                self._slots.withhold()
        log.error(
            "task %s (%s) does not end on %s: its thread is left behind (%d by now) and can record nothing more",
            execution.claim.id,
            execution.claim.name,
            execution.stop,
            left_behind,
        )
        if not replaced:
            log.error("%d threads are left behind: this slot is free again once one of them ends", left_behind)
        elif self._slots.finished(self):
            self.start()

    def close(self) -> None:
        self._closed = True
        with self._lock:
            made = self._made
        for _ in range(made):
            self._permits.put(False)

    def _serve(self, slot: _Slot) -> None:
        """A thread's life: wait for a permit, run executions while it lasts."""
        while self._permits.get():
            while True:
                try:
                    execution = self.waiting.popleft()
                except IndexError:  # withdrawn meanwhile
                    if self._slots.finished(self):
                        continue
                    break
                self._run_one(slot, execution)
                if slot.abandoned:
                    with self._lock:
                        self._left_behind -= 1
                    self._slots.restore()
                    return
                if not self._slots.finished(self):
                    break
            if self._closed:
                return
            with self._lock:
                self._idle += 1

    def _run_one(self, slot: _Slot, execution: Execution) -> None:
        if execution.stop is not None:
            if execution.settled_once.acquire(blocking=False):
                self._report(execution, runner.stopped(execution, runner.NEVER_STARTED))
            return
        execution.started = time.monotonic()
        task_log.started(execution.claim)
        self._threads[execution] = slot
        if execution.claim.timeout_seconds is not None:
            self._in_flight.timed.add(execution)
        outcome = slot.run(execution, self._run)
        execution.ended = time.monotonic()
        self._threads.pop(execution, None)
        self._in_flight.timed.discard(execution)
        if execution.settled_once.acquire(blocking=False):
            self._report(execution, outcome if execution.stop is None else runner.stopped(execution, outcome))


class _Slot:
    """One thread. An exception is raised in it only while the execution it is meant for is running."""

    def __init__(self, executor: ThreadExecutor, label: str) -> None:
        self.abandoned = False
        self._executor = executor
        self._lock = threading.Lock()
        self._execution: Execution | None = None
        self._raised = False
        self._thread = threading.Thread(target=executor._serve, args=(self,), name=f"tasklib-{label}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def run(self, execution: Execution, run: Run) -> Outcome:
        self._execution = execution
        context: Context = copy_context()
        try:
            outcome = context.run(_with_current, execution, run)
        except (TaskTimedOut, TaskStopped) as error:  # it came between the handler's end and here
            outcome = runner.raised(error, 0)
        self._leave()
        return outcome

    def interrupt(self, execution: Execution, kind: type[BaseException]) -> None:
        with self._lock:
            if self._execution is execution and self._thread.ident is not None:
                self._raised = True
                _raise_in(self._thread.ident, kind)

    def abandon(self, execution: Execution) -> bool:
        with self._lock:
            if self._execution is not execution:
                return False
            self.abandoned = True
            return True

    def _leave(self) -> None:
        """From here on nothing is raised in this thread; what was raised and has not arrived is taken back."""
        while True:
            try:
                with self._lock:
                    self._execution = None
                    if self._raised:
                        self._raised = False
                        _raise_in(threading.get_ident(), None)
                return
            except (TaskTimedOut, TaskStopped):
                continue


def _with_current(execution: Execution, run: Run) -> Outcome:
    running.set(execution.tell)
    return run(execution)


def _raise_in(thread_id: int, kind: type[BaseException] | None) -> None:
    target = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), target)
