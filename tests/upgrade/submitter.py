"""`python -m tests.upgrade.submitter URL FILE`: submits until its input ends, with old code or with new.

Writes a line of JSON for each task that it was promised: its id, how often it is to start, the state that it is to end
in, how long the promise took, and for a unique one that was joined the time before that, else null. And for each error,
its text."""

import json
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import IO, Any

import tasklib
from tests.upgrade.app import fails_once, slow, work

PAUSE_SECONDS = 0.02


class Submitter:
    def __init__(self, file: IO[str], name: str) -> None:
        self._file = file
        self._name = name

    def run(self, over: threading.Event) -> None:
        for number in count():
            for each in (
                self.one,
                self.one,
                self.many,
                self.keyed,
                self.failing,
                self.cancelled,
                self.looks,
                self.unique,
            ):
                if over.is_set():
                    return
                begun = time.monotonic()
                try:
                    promised = each(number)
                except Exception as error:
                    self._write(f"{each.__name__}: {type(error).__name__}: {error}")
                    continue
                took = time.monotonic() - begun
                for promise in promised:
                    self._write([*promise[:3], took, promise[3] if len(promise) > 3 else None])
                over.wait(PAUSE_SECONDS)

    def one(self, number: int) -> list[Any]:
        task = slow if number % 10 == 0 else work
        return [(str(task.submit(number).id), 1, "completed")]

    def many(self, number: int) -> list[Any]:
        rows = [{"number": number}] * 10
        ids = work.options(delay_seconds=0.5).submit_many(rows) if number % 2 else work.submit_many(rows)
        return [(str(each), 1, "completed") for each in ids]

    def keyed(self, number: int) -> list[Any]:
        keyed = work.options(idempotency_key=f"{self._name} {number}")
        first, again = keyed.submit(number), keyed.submit(number)
        if first.id != again.id:
            raise AssertionError(f"one idempotency key, two tasks: {first.id}, {again.id}")
        return [(str(first.id), 1, "completed")]

    def failing(self, number: int) -> list[Any]:
        return [(str(fails_once.submit(number).id), 2, "completed")]

    def cancelled(self, number: int) -> list[Any]:
        handle = work.options(delay_seconds=3600).submit(number)
        tasklib.cancel_task(handle.id)
        return [(str(handle.id), 0, "cancelled")]

    def looks(self, number: int) -> list[Any]:
        for state in (None, "failed", "cancelled", "completed", "running"):
            tasklib.list_tasks(state=state, limit=20)
        return []

    def unique(self, number: int) -> list[Any]:
        if not hasattr(tasklib, "Unique"):
            return []
        promised = []
        for rule in rules(number):
            before = time.time()
            handle = work.options(unique=rule).submit(number)
            promised.append((str(handle.id), 1, "completed", None if handle.created else before))
        return promised

    def _write(self, line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def rules(number: int) -> list[Any]:
    key = str(number % 5)
    return [
        tasklib.Unique(f"started {key}", until="started"),
        tasklib.Unique(f"newest {key}", until="started", conflict="replace"),
        tasklib.Unique(f"finished {key}", until="finished"),
    ]


def main(url: str, path: str) -> None:
    tasklib.init(tasklib.Config(database_url=url))
    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    with Path(path).open("w") as file:
        Submitter(file, path).run(over)


if __name__ == "__main__":
    main(*sys.argv[1:])
