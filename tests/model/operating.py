"""Steps of operators: looks, and what somebody decides after one; pauses and limits."""

from collections.abc import Callable
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tasklib.core import decide
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import MaxAttemptsReached
from tasklib.core.task import Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.model import laws
from tests.model.benches import Bench
from tests.model.ground import Ground, has, of_age
from tests.model.queue import ALL, phase_of
from tests.model.steps import FITS, NAMES, Seen, ages, expired, places, rarely, short, verbs, vias


class Operating(Ground):
    @precondition(lambda self: self.model.rows)
    @rule(age=ages, via=vias)
    def look(self, age: int, via: int) -> None:
        self.look_at(of_age([*self.model.rows], age), via)

    @rule(age=ages, verb=verbs, via=vias)
    def operate_on_old(self, age: int, verb: str, via: int) -> None:
        """Somebody acts on what was on the screen for a while."""
        self._operate(verb, of_age(self.looks, age), via)

    @rule(place=places, choice=places, via=vias)
    def operate(self, place: int, choice: int, via: int) -> None:
        """On a fresh look, whatever can be done."""
        able = {verb: fit for verb, phases in FITS.items() if (fit := self.model.in_phase(*phases))}
        if able:
            verb = sorted(able)[choice % len(able)]
            self._operate(verb, self.look_at(able[verb][place % len(able[verb])], via), via)

    def _operate(self, verb: str, seen: Seen, via: int) -> None:
        if phase_of(seen.row) not in FITS[verb]:
            return
        match verb:
            case "expire":
                self._decided(seen, expired, self.model.expire(seen.row, seen.lock), via)
            case "cancel":
                self._decided(seen, decide.cancel, self.model.cancel(seen.row), via)
            case "retry":
                expected = self.model.retry(seen.row)
                if expected is WriteResult.APPLIED:
                    self.retried.add(seen.row["id"])
                self._decided(seen, decide.retry_by_hand, expected, via)
            case "resume":
                self._resume(seen, via)
            case _:
                self._delete([seen], via)

    @precondition(has("running"))
    @rule(held=st.lists(ages, min_size=1, max_size=2), via=vias)
    def ask_to_stop(self, held: list[int], via: int) -> None:
        batch = [of_age(self.tasks, age) for age in held]
        expected = {task_id for task_id in batch if self.model.ask_to_stop(task_id)}

        async def ask(bench: Bench, store: Store) -> set[UUID]:
            return set(await store.request_cancel(batch))

        self.agree(via, ask, expected)

    def _resume(self, seen: Seen, via: int) -> None:
        expected = self.model.resume(seen.row)
        if expected is WriteResult.APPLIED and phase_of(seen.row) == "failed":
            self.retried.add(seen.row["id"])
        self.happened[f"resume: {expected}"] += 1

        async def resume(bench: Bench, store: Store) -> WriteResult | None:
            try:
                change = decide.resume(seen.tasks[bench.engine], await store.now())
            except MaxAttemptsReached:
                return None
            return None if change is None else (await store.settle([change]))[0]

        self.agree(via, resume, expected)

    def _decided(self, seen: Seen, decided: Callable[[Task], Change | None], expected: WriteResult, via: int) -> None:
        self.happened[f"{decided.__name__}: {expected}"] += 1

        async def settle(bench: Bench, store: Store) -> list[WriteResult]:
            change = decided(seen.tasks[bench.engine])
            assert change is not None
            return await store.settle([change])

        self.agree(via, settle, [expected])

    @rule(batch=st.lists(ages, min_size=2, max_size=3), via=vias)
    def delete_several(self, batch: list[int], via: int) -> None:
        self._delete([of_age(self.looks, age) for age in batch], via)

    def _delete(self, batch: list[Seen], via: int) -> None:
        guards = [(each.row["id"], each.row["version"]) for each in batch]
        expected = [self.model.delete(*guard) for guard in guards]

        async def delete(bench: Bench, store: Store) -> list[WriteResult]:
            return await store.delete(guards)

        self.agree(via, delete, expected)

    @rule(
        states=st.sets(st.sampled_from(laws.TERMINAL), min_size=1),
        age=short,
        limit=st.sampled_from([1, 100]),
        via=vias,
    )
    def prune(self, states: set[str], age: int, limit: int, via: int) -> None:
        expected = self.model.prune(states, age)

        async def prune(bench: Bench, store: Store) -> tuple[int, int]:
            there = await store.prune(sorted(states), age, limit, dry_run=True)
            gone = 0
            while count := await store.prune(sorted(states), age, limit):
                assert count <= limit
                gone += count
            return there, gone

        self.agree(via, prune, (expected, expected))

    @rule(name=st.sampled_from([*NAMES, ALL]), paused=rarely, most=st.sampled_from([None, None, 1, 2]), via=vias)
    def control(self, name: str, paused: bool, most: int | None, via: int) -> None:
        self.model.control(name, paused, most)

        async def control(bench: Bench, store: Store) -> tuple[bool, int | None]:
            found = await store.control(ControlChange(name=name, paused=paused, concurrency=most))
            return found.paused, found.concurrency

        self.agree(via, control, (paused, most))
