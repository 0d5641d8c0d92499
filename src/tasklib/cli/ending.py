"""The end of a process that runs user code: in time, whatever that code does.

A task may block the event loop, swallow its cancellation, or leave threads and exit handlers that never end. So signals
are heard, and the end is seen to, by threads of our own. No thread helps against a C call that never gives the
interpreter back: there a supervisor kills the process.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tasklib.cli.exits import Exit
from tasklib.worker.signals import STOP_SIGNALS

log = logging.getLogger("tasklib.worker")

AFTER_GRACE_SECONDS = 5.0
"""How long a worker may take to give back its tasks and to sign off, once its grace period is over."""
EXIT_SECONDS = 3.0
"""How long coroutines, threads and exit handlers of the user's may hold up a process that is done."""


def end_within(seconds: float, code: Exit | int, reason: str) -> Callable[[], None]:
    """Ends this process by force after so many seconds, unless what is returned is called before."""
    cancelled = threading.Event()

    def wait() -> None:
        if not cancelled.wait(seconds):
            log.warning("%s; this process ends without waiting any longer", reason)
            os._exit(code)

    threading.Thread(target=wait, name="tasklib-ending", daemon=True).start()
    return cancelled.set


@contextmanager
def signals_heard(tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Calls `tell` for each signal to stop, in a thread of its own: the main thread may be blocked. It may hear one
    signal twice."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    heard = handled = 0

    def listen() -> None:
        nonlocal heard
        while number := os.read(reading, 1):
            if number[0] in STOP_SIGNALS:
                heard += 1
                tell(signal.Signals(number[0]))
        os.close(reading)

    def handle(number: int, frame: FrameType | None) -> None:
        """Runs in the main thread, if that gets on. Needed where a task's own `loop.add_signal_handler` has taken the
        place of our pipe."""
        nonlocal handled
        handled += 1
        if heard < handled:
            tell(signal.Signals(number))

    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    pipe_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=listen, name="tasklib-signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(pipe_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
