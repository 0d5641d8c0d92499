"""A process that is killed at each step of a claim and a settle: `python -m tests.faults.kill_steps URL`.

It forks a victim again and again. The first dies before its first step, the next after it, and so on, until one comes
through. A step is a statement on SQLite, and a message to the server elsewhere. After each death the rows are looked
at; in the end it prints in how many ways they were found.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio import selector_events
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Any

import apsw

from tasklib import Config
from tasklib.core.task import Task
from tasklib.engine.backends import Backend, make_store
from tasklib.stores.values import ControlChange, NameStats
from tests.conformance.builders import claim, completed, failed, submit_several
from tests.conformance.flows import waiting
from tests.waiting import eventually

URL = sys.argv[1]
WRITE = selector_events._SelectorSocketTransport.write  # type: ignore[attr-defined]


class Death:
    """At the `last` step, before it is taken or after."""

    def __init__(self, last: int, after: bool) -> None:
        self.last, self.after, self.taken, self.armed = last, after, 0, False

    def step(self, take: Any = None) -> None:
        due = self.armed and self.taken == self.last
        if due and not self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        if take is not None:
            take()
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken += self.armed

    def await_statements(self) -> None:
        def trace(cursor: object, sql: str, bindings: object) -> bool:
            self.step()
            return True

        def hook(connection: apsw.Connection) -> None:
            connection.exec_trace = trace

        apsw.connection_hooks.append(hook)

    def await_messages(self) -> None:
        def write(transport: Any, data: bytes) -> None:
            self.step(lambda: WRITE(transport, data))

        def writelines(transport: Any, parts: Iterable[bytes]) -> None:  # from Python 3.12 on it goes past `write`
            write(transport, b"".join(parts))

        transports: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
        transports.write, transports.writelines = write, writelines


def make() -> Backend:
    return make_store(Config(database_url=URL, call_timeout_seconds=10))


async def live(name: str, death: Death) -> None:
    """What the victim does: one claim of two tasks under a limit, one settle of both, each its own way. Others wait for
    both."""
    store = make()
    await store.open()
    await claim(store, 1, names=["nobody"])  # whatever a first claim has to learn
    death.armed = True
    first, second = await claim(store, 2, names=[name], worker="victim")
    await store.settle([completed(first, "done"), failed(second, "broken", final=True)])
    death.armed = False
    await store.close()


async def prepare(name: str) -> list[Any]:
    store = make()
    await store.open()
    await store.control(ControlChange(name=name, concurrency=5))
    ids = await submit_several(store, 2, name)
    children = [waiting(*ids[:1], name=f"{name}-child"), waiting(*ids[1:], name=f"{name}-child")]
    children.append(waiting(*ids, name=f"{name}-child", on="end"))
    await store.insert(children)
    await store.close()
    return [*ids, *(child.id for child in children)]


async def look(name: str, ids: list[Any]) -> str:
    store = make()
    await store.open()
    rows = [row for row in await store.get(ids[:2]) if row is not None]
    children = [(row.state, row.waits) for row in await store.get(ids[2:]) if row is not None]
    figures = (await store.stats()).get(name, NameStats())
    await store.close()
    assert len(rows) == 2, "a task is gone"
    phases = [phase(row) for row in rows]
    found = Counter(phases)
    counted = {"pending": figures.pending, "running": figures.running}
    counted |= {"completed": figures.completed, "failed": figures.failed}
    assert {key: value for key, value in counted.items() if value} == found, (counted, found)
    if not URL.startswith("nats:"):  # there each record is written by itself
        assert phases in (["pending"] * 2, ["running"] * 2, ["completed", "failed"]), phases
    assert children == released_by(phases), (phases, children)
    return " ".join(phases)


def released_by(phases: list[str]) -> list[tuple[str, int]]:
    """The first child needs the first task's success, the second that of the second, the third runs when both are over:
    whoever waits is moved with the end itself, or not at all."""
    first, second = (phase in ("completed", "failed") for phase in phases)
    return [
        ("pending", 0 if first else 1),
        ("cancelled" if second else "pending", 1),
        ("pending", 2 - first - second),
    ]


def settled_down(name: str, ids: list[Any]) -> str | None:
    """A server may still be at work on the last message: what does not fit together must do so in a moment."""
    try:
        return asyncio.run(look(name, ids))
    except AssertionError as error:
        print(error, file=sys.stderr)
        return None


def phase(row: Task) -> str:
    """The state of a row in which everything fits together."""
    whole = {
        "pending": (0, 0, None, None, None, 0),
        "running": (1, 0, "victim", None, None, 0),
        "completed": (2, 0, None, {"value": "done"}, None, 0),
        "failed": (2, 0, None, None, "broken", 1),
    }
    state = row.state.value if hasattr(row.state, "value") else str(row.state)
    found = (row.version, row.retry_count, row.worker_id, row.result, row.error, len(row.history))
    assert found == whole[state], (state, found)
    assert (row.locked_until is None) == (state != "running")
    assert (row.started_at is None) == (state == "pending")
    assert (row.completed_at is None) == (state in ("pending", "running"))
    return state


def main() -> None:
    found: Counter[str] = Counter()
    deaths = 0
    for number in count():
        by_statement = URL.startswith("sqlite:")
        for after in (False,) if by_statement else (False, True):
            name = f"step{number}{after}"
            ids = asyncio.run(prepare(name))
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                death = Death(number, after)
                (death.await_statements if by_statement else death.await_messages)()
                asyncio.run(live(name, death))
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            found[eventually(partial(settled_down, name, ids)) or ""] += 1
            if status == 0:
                print(json.dumps({"deaths": deaths, "found": found}))
                return
            assert os.WTERMSIG(status) == signal.SIGKILL, status
            deaths += 1


if __name__ == "__main__":
    main()
