"""One task, some actors and their calls in some order: what must be true of it afterwards, whatever the order was."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from tasklib.core import decide
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TaskConflict, TaskNotFailed, TaskNotFound, TaskNotTerminal
from tasklib.core.task import Claim, Task, TaskState
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import Store
from tasklib.stores.values import NameStats
from tests.conformance.builders import claim, completed, failed, lease_of, released, stopped, submit
from tests.races.turns import Choose, Stepping, Turns

LEASE = 1000.0
"""Long enough that no test is so slow that it really runs out."""
ATTEMPTS = 4
_numbers = itertools.count()


class OneStore(Engine):
    """The engine's own verbs (read, decide, write, and again after a lost race) on a store that somebody opened."""

    def __init__(self, store: Any) -> None:
        super().__init__(Config(database_url="memory://"))
        self._one = store

    async def store(self) -> Any:
        return self._one


class Scene:
    """A task of a type of its own; the first of the stores watches, each actor has one of the others."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.watcher, *self._free = stores
        self._stores = stores
        self.name = f"race-{next(_numbers)}"
        self.turns = Turns()
        self.actors: dict[str, Callable[[], Awaitable[None]]] = {}
        self.task_id = UUID(int=0)
        self.claimed_before = 0
        self.refused = 0

    async def submit(self) -> None:
        self.task_id = await submit(self.watcher, self.name, max_retries=ATTEMPTS - 1)

    async def claimed(self, worker: str) -> Claim:
        [found] = await claim(self.watcher, 1, names=[self.name], worker=worker, lease=LEASE)
        self.claimed_before += 1
        return found

    async def fails(self, held: Claim, *, final: bool) -> None:
        """Before anybody else comes."""
        await self._at_once("before").settle([failed(held, final=final, delay=LEASE)])

    def _at_once(self, actor: str) -> Any:
        return Stepping(self.watcher, Unhurried(self.turns), actor)

    def advance(self) -> None:
        for store in self._stores:
            store.clock_offset += LEASE + 1
        self.turns.calls.append(("time", "pass", (), None))

    def _stepping(self, actor: str) -> Any:
        return Stepping(self._free[len(self.actors) % len(self._free)], self.turns, actor)

    # -- actors -------------------------------------------------------------------------------------------------------

    def worker(
        self, name: str, ending: str = "completed", *, held: Claim | None = None, beats: bool = False, slot_of: str = ""
    ) -> None:
        """`slot_of`: it claims under this other one's name, as two slots of one worker do."""
        store = self._stepping(name)
        worker_id = slot_of or name

        async def work() -> None:
            mine = held or next(iter(await claim(store, 1, names=[self.name], worker=worker_id, lease=LEASE)), None)
            if mine is None:
                return
            if beats:
                await store.extend(worker_id, [lease_of(mine)], LEASE)
            change = {
                "completed": lambda: completed(mine, name),
                "failed": lambda: failed(mine, name),
                "final": lambda: failed(mine, name, final=True),
                "released": lambda: released(mine),
                "stopped": lambda: stopped(mine, name),
            }[ending]()
            await store.settle([change])

        self.actors[name] = work

    def janitor(self, name: str = "janitor") -> None:
        store = self._stepping(name)

        async def expire() -> None:
            found = [task for task in await store.lost_leases(10**6, 1000) if task.id == self.task_id]
            if found:
                await store.settle([decide.expire(task, "lost") for task in found])

        self.actors[name] = expire

    def operator(self, verb: str, name: str = "") -> None:
        """`cancel`, `retry` or `delete`, as every API does it."""
        actor = name or verb
        engine = OneStore(self._stepping(actor))

        async def operate() -> None:
            try:
                await getattr(engine, verb)(self.task_id)
            except (TaskConflict, TaskNotFailed, TaskNotFound, TaskNotTerminal):
                self.refused += 1

        self.actors[actor] = operate

    def clock(self, name: str = "time") -> None:
        async def passes() -> None:
            await self.turns.wait(name, "pass")
            self.advance()

        self.actors[name] = passes

    # -- play ---------------------------------------------------------------------------------------------------------

    async def play(self, choose: Choose, mortal: Sequence[str] = ()) -> None:
        await self.turns.run(self.actors, choose, mortal)
        try:
            await self._drain()
            await self._check()
        except AssertionError as error:
            error.add_note("the order was: " + "; ".join(self.turns.trace))
            raise

    async def _drain(self) -> None:
        """Nothing is lost: whatever happened, an honest worker brings it to an end."""
        for _ in range(ATTEMPTS + 2):
            [task] = await self.watcher.get([self.task_id])
            if task is None or task.completed_at is not None:
                return
            self.advance()
            store = self._at_once("last")
            lost = [each for each in await self.watcher.lost_leases(10**6, 1000) if each.id == self.task_id]
            if lost:
                await store.settle([decide.expire(each, "lost") for each in lost])
            for mine in await claim(store, 1, names=[self.name], worker="last", lease=LEASE):
                await store.settle([completed(mine, "last")])
        raise AssertionError("it came to no end")

    async def _check(self) -> None:
        [task] = await self.watcher.get([self.task_id])
        claims = [each for _, verb, _, answer in self.turns.calls if verb == "claim" for each in answer.claims]
        accepted = self._accepted()
        versions = [change.version for _, change in accepted]
        assert len(set(versions)) == len(versions), f"two writes won one version: {accepted}"
        over = False
        for actor, change in accepted:
            assert not over or actor.startswith("retry"), f"{actor} took it out of a final state"
            over = change.terminal
        self._check_leases()
        deleted = [answer for _, verb, _, answer in self.turns.calls if verb == "delete"].count([WriteResult.APPLIED])
        assert (task is None) == (deleted == 1)
        retries = sum(actor.startswith("retry") for actor, _ in accepted)
        given_back = sum(change.state is TaskState.PENDING for _, change in accepted) - retries
        starts = self.claimed_before + len(claims)
        assert starts <= ATTEMPTS * (1 + retries) + given_back
        if task is not None:
            self._check_task(task, starts, accepted)
        stats = (await self.watcher.stats()).get(self.name, NameStats())
        shown = {state: getattr(stats, state) for state in ("pending", "running", "waiting", *_FINAL)}
        assert shown == {**dict.fromkeys(shown, 0), **({} if task is None else {task.state: 1})}

    def _accepted(self) -> list[tuple[str, Change]]:
        """The writes that won, as they must have been made: after a request to stop nothing but an end."""
        accepted: list[tuple[str, Change]] = []
        asked = False
        for actor, verb, args, answer in self.turns.calls:
            if verb == "request_cancel" and answer:
                asked = True
            elif verb == "settle" and answer[0] is WriteResult.APPLIED:
                [change] = args[0]
                form = change.if_asked if asked and change.if_asked is not None else change
                assert form.terminal or not asked, "asked to stop, and put back"
                accepted.append((actor, form))
                asked = False
        return accepted

    def _check_leases(self) -> None:
        """A lease that was confirmed is its holder's until it has run out: no janitor takes it by an older look."""
        confirmed: set[int] = set()
        for _, verb, args, answer in self.turns.calls:
            if verb == "pass":
                confirmed.clear()
            elif verb == "extend":
                confirmed |= {lease.version for lease, each in zip(args[1], answer, strict=True) if each.held}
            elif verb == "settle" and answer[0] is WriteResult.APPLIED and args[0][0].locked_until is not None:
                assert args[0][0].version not in confirmed, "expired after it was confirmed"

    def _check_task(self, task: Task, starts: int, accepted: list[Any]) -> None:
        assert task.version == starts + len(accepted), "each start and each accepted write is one version"
        actor, last = accepted[-1]
        assert (task.state, task.completed_at is not None) == (last.state, True)
        assert task.result == ({"value": actor} if task.state == TaskState.COMPLETED else None)
        entries = [change for _, change in accepted if change.entry is not None]
        assert len(task.history) == len(entries), "one entry for each attempt that did not complete"


_FINAL = ("completed", "failed", "cancelled")


class Unhurried(Turns):
    """No turns to wait for: only the record is kept."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(calls=turns.calls)

    async def wait(self, actor: str, verb: str) -> None:
        return
