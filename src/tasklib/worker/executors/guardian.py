"""The guardian of a child process: a program of its own that ends the child together with whatever the child started.

The worker cannot do that once it was killed with -9, nor can the child: a C call may hold its interpreter, and what it
forked outlives it. Only the standard library is imported, so it is there at once and small. Its stdin is the worker's
order to end the child: a byte, or the end of the pipe. How the child ended is written to the pipe it is given for that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def main() -> None:
    worker, ending, read_fd, write_fd = (int(argument) for argument in sys.argv[1:5])
    child = subprocess.Popen(
        [sys.executable, "-m", "tasklib.worker.executors.child", str(read_fd), str(write_fd), str(os.getpid())],
        pass_fds=(read_fd, write_fd),
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    for fd in (read_fd, write_fd):
        os.close(fd)

    def end() -> None:
        with suppress(OSError):  # nobody is left
            os.killpg(child.pid, signal.SIGKILL)

    def await_order() -> None:
        os.read(0, 1)
        end()

    signal.signal(signal.SIGTERM, lambda number, frame: end())
    threading.Thread(target=await_order, daemon=True).start()
    die_with(worker, signal.SIGTERM)
    code = child.wait()
    end()
    with suppress(OSError):  # the worker is gone
        os.write(ending, str(code).encode())


def die_with(parent: int, number: signal.Signals) -> None:
    """A signal to this process when its parent is gone. The end of a pipe tells that too, but not while a C call holds
    the interpreter, nor while another process has inherited the pipe."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
