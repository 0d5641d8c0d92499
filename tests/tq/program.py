"""An application with handlers, as a process of its own: `python -m tests.tq.program URL`."""

import os
import signal
import sys
import threading

from tasklib import Config, TaskQueue
from tasklib.engine.engine import Engine

HELD_SECONDS = 0.1


def who(payload: object) -> int:
    return os.getpid()


def held(payload: object) -> int:
    threading.Event().wait(HELD_SECONDS)
    return os.getpid()


if __name__ == "__main__":
    config = Config(database_url=sys.argv[1], heartbeat_seconds=0.2, dead_after_seconds=1.0, lock_timeout_seconds=30)
    queue = TaskQueue(engine=Engine(config), poll_interval=0.2)
    for name, handler in (("limited", who), ("held", held)):
        queue.set_worker_count(name, 4)
        queue.register_handler(name, handler)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stop.wait()
    queue.stop()
