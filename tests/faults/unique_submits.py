"""`python -m tests.faults.unique_submits URL PROCESSES`: that many processes, forked from one that has imported
tasklib, submit the same keys at the same moments, one after another in each mode of `unique`. Prints a line of JSON for
each submit: the mode, the id, whether it was created or replaced, and the number that it brought."""

import json
import multiprocessing
import os
import signal
import sys
import traceback
from multiprocessing.synchronize import Barrier

import tasklib
from tasklib import Unique, debounce, throttle
from tasklib.engine.backends import make_store

MODES = {
    "started, join": Unique("k1", until="started"),
    "started, replace": Unique("k2", until="started", conflict="replace"),
    "finished, join": Unique("k3", until="finished"),
    "finished, replace": Unique("k4", until="finished", conflict="replace"),
    "debounce": debounce("k5", 60, at_most=600),
    "throttle": throttle("k6", 60),
}
PATIENCE_SECONDS = 50.0


@tasklib.task
def index(number: int) -> None: ...


def submits(url: str, number: int, gate: Barrier) -> list[str]:
    tasklib.init(tasklib.Config(database_url=url, pool_size=1, submit_timeout_seconds=PATIENCE_SECONDS))
    tasklib.list_tasks(limit=1)  # connected
    lines = []
    for mode, rule in MODES.items():
        gate.wait(PATIENCE_SECONDS)
        handle = index.options(unique=rule).submit(number)
        lines.append(json.dumps([mode, str(handle.id), handle.created, handle.replaced, number]) + "\n")
    return lines


def main(url: str, processes: int) -> int:
    make_store(tasklib.Config(database_url=url))  # imports what the others would each import
    gate = multiprocessing.get_context("fork").Barrier(processes)
    pids = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            signal.alarm(int(PATIENCE_SECONDS))  # one that hangs is killed, and this process told
            code = 1
            try:
                os.write(1, "".join(submits(url, number, gate)).encode())  # one write: lines stay whole
                code = 0
            except BaseException:
                traceback.print_exc()
                gate.abort()
            finally:
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    return int(any(ends))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
