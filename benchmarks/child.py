"""A child process of a turn. As a client it takes commands, one in a line, and answers each with a line of JSON; as a
worker it works until it is told to stop:

    python -m benchmarks.child MODULE:CLASS URL OPTIONS [work]
"""

import asyncio
import ctypes
import importlib
import inspect
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.contender import Contender
from benchmarks.starts import VARIABLE, Starts

WARM_UP = 30
MARK_GIVE_UP = 30.0


def contender_class(path: str) -> type[Contender]:
    module, _, name = path.partition(":")
    found: type[Contender] = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    return found


class Client:
    def __init__(self, contender: Contender, runner: asyncio.Runner) -> None:
        self.contender = contender
        self.runner = runner
        self.sent = 0

    def wait(self, result: Any) -> Any:
        return self.runner.run(_awaited(result)) if inspect.isawaitable(result) else result

    def settings(self) -> str:
        return self.contender.settings

    def prepare(self) -> None:
        self.wait(self.contender.prepare())

    def open(self) -> None:
        self.wait(self.contender.open())

    def close(self) -> None:
        self.wait(self.contender.close())

    def done(self) -> int:
        return int(self.wait(self.contender.done()))

    def submit(self, count: int) -> float:
        """Tasks a second, one at a time; the first ones, which fill caches, are not timed."""
        warm = min(WARM_UP, count // 10)
        self._each(range(self.sent, self.sent + warm))
        seconds = self._each(range(self.sent + warm, self.sent + count))
        self.sent += count
        return (count - warm) / seconds

    def together(self, count: int) -> float:
        """Tasks a second, one at a time from each of `clients` coroutines or threads."""
        send, clients = self.contender.send, self.contender.options["clients"]
        began = time.perf_counter()
        if inspect.iscoroutinefunction(send):
            numbers = iter(range(self.sent, self.sent + count))

            async def client() -> None:
                for number in numbers:
                    await send(number)

            async def all_of_them() -> None:
                await asyncio.gather(*(client() for _ in range(clients)))

            self.runner.run(all_of_them())
        else:

            def thread(own: range) -> None:
                for number in own:
                    send(number)

            with ThreadPoolExecutor(clients) as threads:
                shares = (range(self.sent + each, self.sent + count, clients) for each in range(clients))
                list(threads.map(thread, shares))
        seconds = time.perf_counter() - began
        self.sent += count
        return count / seconds

    def bulk(self, count: int, size: int) -> float:
        """Tasks a second, in batches."""
        batches = [range(at, min(at + size, self.sent + count)) for at in range(self.sent, self.sent + count, size)]
        send_many = self.contender.send_many
        began = time.perf_counter()
        if inspect.iscoroutinefunction(send_many):

            async def all_of_them() -> None:
                for batch in batches:
                    await send_many(batch)

            self.runner.run(all_of_them())
        else:
            for batch in batches:
                send_many(batch)
        seconds = time.perf_counter() - began
        self.sent += count
        return count / seconds

    def latency(self, count: int) -> list[float]:
        """Milliseconds from the call to the task's first line, one at a time on an idle queue."""
        starts = Starts.attach(Path(os.environ[VARIABLE]))
        gap = random.Random(self.sent)
        took: list[float] = []
        for number in range(self.sent, self.sent + count):
            self._sleep(0.01 + 0.01 * gap.random())
            called = time.monotonic_ns()
            self.wait(self.contender.send(number))
            took.append((self._marked(starts, number) - called) / 1e6)
        self.sent += count
        return took

    def cancel(self, count: int) -> list[float]:
        """Milliseconds from the call to the exception inside the running task, one at a time. A task marks two cells:
        when it starts, and when it is stopped."""
        starts = Starts.attach(Path(os.environ[VARIABLE]))
        gap = random.Random(self.sent)
        took: list[float] = []
        for number in range(self.sent, self.sent + count):
            self.wait(self.contender.send(number))
            self._marked(starts, 2 * number)
            self._sleep(0.01 + 0.01 * gap.random())
            called = time.monotonic_ns()
            self.wait(self.contender.cancel(number))
            took.append((self._marked(starts, 2 * number + 1) - called) / 1e6)
        self.sent += count
        return took

    def _marked(self, starts: Starts, cell: int) -> int:
        give_up = time.monotonic() + MARK_GIVE_UP
        while not starts.at(cell):
            if time.monotonic() > give_up:
                raise TimeoutError(f"a task did not start, or was not stopped, within {MARK_GIVE_UP:g} s")
            self._sleep(0.001)
        return starts.at(cell)

    def _each(self, numbers: range) -> float:
        send = self.contender.send
        began = time.perf_counter()
        if inspect.iscoroutinefunction(send):

            async def one_by_one() -> None:
                for number in numbers:
                    await send(number)

            self.runner.run(one_by_one())
        else:
            for number in numbers:
                send(number)
        return time.perf_counter() - began

    def _sleep(self, seconds: float) -> None:
        # In the loop, so that a contender's own background tasks go on.
        self.runner.run(asyncio.sleep(seconds))


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def serve(client: Client) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is not an answer
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            verb: Callable[..., Any] = getattr(client, command)
            answer = {"ok": verb(*arguments)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


def main() -> None:
    if sys.platform == "linux":  # nobody is left behind when a run is killed
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
    path, url, options, *role = sys.argv[1:]
    contender = contender_class(path)(url, json.loads(options))
    if role == ["work"]:
        contender.work()
        return
    with asyncio.Runner() as runner:
        serve(Client(contender, runner))


if __name__ == "__main__":
    main()
