"""The state machine: steps that Hypothesis puts together, done on the model and on every engine, and compared."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tasklib.core import decide
from tasklib.core.decide import Change, Verdict
from tasklib.core.errors import MaxAttemptsReached
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task
from tasklib.stores import base
from tasklib.stores.base import ClaimRequest, ControlChange, Filter, NameStats, Store
from tasklib.testing.suite.builders import beat_of, next_id
from tests.model import laws
from tests.model.benches import PATIENCE, Bench, Benches
from tests.model.queue import ALL, LOST, Ending, Held, Queue, phase_of
from tests.model.rows import Row, row_of
from tests.model.steps import (
    FITS,
    KEYS,
    NAMES,
    HeldEverywhere,
    Order,
    Seen,
    ages,
    endings,
    expired,
    leases,
    new_task,
    on_the_grid,
    orders,
    outcome,
    places,
    rarely,
    short,
    verbs,
    vias,
    workers,
)

T = TypeVar("T")


def _of_age(things: Sequence[T], age: int) -> T:
    return things[-1 - age % len(things)]


def _has(phase: str) -> Callable[["QueueMachine"], bool]:
    return lambda machine: bool(machine.model.in_phase(phase))


class QueueMachine(RuleBasedStateMachine):
    benches: ClassVar[Benches]
    happened: ClassVar[Counter[str]]
    """What came about, so that a run in which too little did can be told."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Queue()
        self.tasks: list[UUID] = []
        self.claims: list[HeldEverywhere] = []
        self.looks: list[Seen] = []
        self.held: dict[UUID, HeldEverywhere] = {}
        """The latest claim of each task."""
        self.rows: dict[str, dict[UUID, Row]] = {}
        self.retried: set[UUID] = set()
        self.turn = 0
        self.begun_at = time.monotonic()
        self.benches.open()

    def teardown(self) -> None:
        self.benches.close()

    def agree(self, via: int, verb: Callable[[Bench, Store], Any], expected: T) -> T:
        """Every engine answers what the model does."""
        answers = self.benches.each(via, verb)
        assert answers == dict.fromkeys(answers, expected), verb.__name__
        self.happened[f"{verb.__name__}: {_kind(expected)}"] += 1
        return expected

    # -- submit -------------------------------------------------------------------------------------------------------

    @initialize(batch=st.lists(orders, min_size=3, max_size=5), worker=workers, lease=leases)
    def begin(self, batch: list[Order], worker: str, lease: int) -> None:
        self.submit(batch, 0)
        self.all_agree()
        for task_id in self.tasks:
            self._look(task_id, 1)
        self.claim(worker, 2, lease, 0)

    @rule(batch=st.lists(orders, min_size=1, max_size=3), via=vias)
    def submit(self, batch: list[Order], via: int) -> None:
        ids = [next_id() for _ in batch]
        expected = []
        for task_id, order in zip(ids, batch, strict=True):
            due = self.model.now + (order.at if order.at is not None else order.delay or 0)
            kept = self.model.insert(task_id, order.name, order.key, order.priority, due, order.max_retries)
            expected.append((kept, kept == task_id))

        async def insert(bench: Bench, store: Store) -> list[tuple[UUID, bool]]:
            now = self.model.now
            new = [new_task(task_id, order, bench, now) for task_id, order in zip(ids, batch, strict=True)]
            return [(each.id, each.created) for each in await store.insert(new)]

        self.agree(via, insert, expected)
        self.tasks += [task_id for task_id, created in expected if created]

    # -- claim --------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.anything_due())
    @rule(worker=workers, slots=st.sampled_from([1, 2, 9]), lease=leases, via=vias)
    def claim(self, worker: str, slots: int, lease: int, via: int) -> None:
        self._claim(worker, NAMES, slots, 0, lease, {}, via)

    @precondition(lambda self: self.model.anything_due())
    @rule(worker=workers, lease=leases, pause=st.sampled_from([0, 0, 1000]), ending=endings, via=vias)
    def shift(self, worker: str, lease: int, pause: int, ending: Ending, via: int) -> None:
        """A claim and, perhaps too late, its outcome."""
        before = len(self.claims)
        self.claim(worker, 1, lease, via)
        self.all_agree()
        if pause:
            self.jump(pause)
        self._settle([(claim, ending) for claim in self.claims[before:]], False, via)

    @rule(
        worker=workers,
        wanted=st.sampled_from([("a", "b"), ("b", "a"), ("a",), ("b", "b")]),
        slots=st.sampled_from([1, 2, 9]),
        prefetch=st.sampled_from([0, 2]),
        lease=leases,
        per_name=st.sampled_from([{}, {}, {"a": 1}, {"a": 0, "b": 2}]),
        via=vias,
    )
    def claim_choosily(
        self,
        worker: str,
        wanted: tuple[str, ...],
        slots: int,
        prefetch: int,
        lease: int,
        per_name: dict[str, int],
        via: int,
    ) -> None:
        self._claim(worker, wanted, slots, prefetch, lease, per_name, via)

    def _claim(
        self,
        worker: str,
        wanted: tuple[str, ...],
        slots: int,
        prefetch: int,
        lease: int,
        per_name: dict[str, int],
        via: int,
    ) -> None:
        request = ClaimRequest(
            worker_id=worker,
            names=wanted,
            slots=slots,
            prefetch=prefetch,
            lease_seconds=lease,
            per_name=per_name,
        )
        allowed = {row["id"] for row in self.model.rows.values() if self.model.claimable(row)}
        expected = self.model.claim(worker, wanted, slots, prefetch, lease, per_name)

        async def claim(bench: Bench, store: Store) -> list[Claim]:
            return (await store.claim(request)).claims

        found = self.benches.each(via, claim)
        for claims in found.values():
            assert len(claims) <= slots + prefetch, "more than were asked for"
            assert {each.id for each in claims} <= allowed, "early, paused, over or in another's hands"
        self._keep(expected, found)

    @rule(age=ages, worker=workers, lease=leases, via=vias)
    def take(self, age: int, worker: str, lease: int, via: int) -> None:
        seen = _of_age(self.looks, age)
        expected = self.model.take(seen.row["id"], seen.row["version"], worker, lease)

        async def take(bench: Bench, store: Store) -> list[Claim]:
            taken = await store.take(seen.row["id"], seen.row["version"], worker, lease)
            return [] if taken is None else [taken]

        self._keep([] if expected is None else [expected], self.benches.each(via, take))

    def _keep(self, expected: list[Held], found: dict[str, list[Claim]]) -> None:
        shown = [tuple(each) for each in expected]
        for engine, claims in found.items():
            got = [(each.id, each.version, each.worker_id, each.retry_count) for each in claims]
            assert got == shown, engine
        self.happened[f"claim: {'some' if expected else 'nothing'}"] += 1
        for place, each in enumerate(expected):
            row = self.model.rows[each.id]
            parts = {engine: claims[place] for engine, claims in found.items()}
            self.held[each.id] = HeldEverywhere(each, row["max_retries"], row["started_at"], parts)
            self.claims.append(self.held[each.id])

    # -- settle -------------------------------------------------------------------------------------------------------

    @precondition(_has("running"))
    @rule(batch=st.lists(st.tuples(places, endings), min_size=1, max_size=2), stop=rarely, via=vias)
    def settle(self, batch: list[tuple[int, Ending]], stop: bool, via: int) -> None:
        running = self.model.in_phase("running")
        self._settle([(self.held[running[place % len(running)]], ending) for place, ending in batch], stop, via)

    @precondition(_has("running"))
    @rule(place=places, ending=endings, via=vias)
    def settle_one(self, place: int, ending: Ending, via: int) -> None:
        self.settle([(place, ending)], False, via)

    @precondition(lambda self: self.claims)
    @rule(batch=st.lists(st.tuples(ages, endings), min_size=1, max_size=3), thief=st.none() | workers, via=vias)
    def settle_old(self, batch: list[tuple[int, Ending]], thief: str | None, via: int) -> None:
        """Claims of any age; or the right version under a wrong name, as after a failover that gave it out twice."""
        self._settle([(_of_age(self.claims, age).under(thief), ending) for age, ending in batch], False, via)

    def _settle(self, batch: list[tuple[HeldEverywhere, Ending]], stop: bool, via: int) -> None:
        expected = [
            self.model.settle(claim.model, ending, claim.started, claim.max_retries, stop) for claim, ending in batch
        ]

        async def settle(bench: Bench, store: Store) -> list[Verdict]:
            changes = [
                decide.settle(claim.claims[bench.engine], outcome(ending), RetryPolicy.AT_ONCE, cancel_requested=stop)
                for claim, ending in batch
            ]
            return await store.settle(changes)

        self.agree(via, settle, expected)

    # -- leases -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.claims)
    @rule(held=st.lists(ages, max_size=3), worker=workers, goes=rarely, lease=leases, via=vias)
    def beat(self, held: list[int], worker: str, goes: bool, lease: int, via: int) -> None:
        """A heartbeat, or a farewell: with leases that are the worker's, were the worker's or never have been."""
        if goes:
            self.model.farewell(worker)
        else:
            self.model.beat(worker)
        known = {claim.model.id: claim.model for claim in (_of_age(self.claims, age) for age in held)}.values()
        expected = [(each.id, *self.model.extend(worker, each.id, each.version, lease)) for each in known]

        async def beat(bench: Bench, store: Store) -> tuple[set[tuple[UUID, int]], list[tuple[UUID, bool, bool]]]:
            await (store.farewell(worker) if goes else store.beat(beat_of(worker)))
            leases = [base.Held(each.id, each.version) for each in known]
            extended = await store.extend(worker, leases, lease)
            return {(each.id, each.version) for each in await store.held(worker)}, [
                (each.id, each.held, each.cancel_requested) for each in extended
            ]

        self.agree(via, beat, (self.model.held_by(worker), expected))
        for _, holds, asked in expected:
            self.happened[f"extend: {'lost' if not holds else 'to stop' if asked else 'held'}"] += 1

    @rule(dead_after=short, via=vias)
    def scan(self, dead_after: int, via: int) -> None:
        """The first half of a janitor's round. Who knows when the second comes."""
        expected = self.model.lost(dead_after)

        async def lost(bench: Bench, store: Store) -> dict[UUID, Task]:
            return {task.id: task for task in await store.lost_leases(dead_after, 100)}

        found = self.benches.each(via, lost)
        assert {engine: set(tasks) for engine, tasks in found.items()} == dict.fromkeys(found, expected)
        for task_id in sorted(expected):
            self._saw({engine: found[engine][task_id] for engine in found})

    @rule(dead_after=short, tidies=st.booleans(), via=vias)
    def janitor(self, dead_after: int, tidies: bool, via: int) -> None:
        """A janitor's whole round. Tidying changes nothing that can be seen here, but for workers that hold nothing:
        they may be forgotten, and tell of themselves when they come back."""
        lost = self.model.lost(dead_after)
        for task_id in lost:
            assert self.model.expire(dict(self.model.rows[task_id]), None) is Verdict.APPLIED
        idle = [worker for worker in self.model.workers if not self.model.held_by(worker)] if tidies else []
        for worker in idle:
            self.model.beat(worker)

        async def janitor(bench: Bench, store: Store) -> set[UUID]:
            if tidies:
                await store.tidy()
            found = await store.lost_leases(dead_after, 100)
            verdicts = await store.settle([decide.expire(task, LOST) for task in found])
            assert set(verdicts) <= {Verdict.APPLIED}
            for worker in idle:
                await store.beat(beat_of(worker))
            return {task.id for task in found}

        self.agree(via, janitor, lost)

    # -- operate ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.rows)
    @rule(age=ages, via=vias)
    def look(self, age: int, via: int) -> None:
        self._look(_of_age([*self.model.rows], age), via)

    def _look(self, task: UUID, via: int) -> Seen:
        async def get(bench: Bench, store: Store) -> Task:
            [found] = await store.get([task])
            assert found is not None, bench.engine
            return found

        return self._saw(self.benches.each(via, get))

    def _saw(self, found: dict[str, Task]) -> Seen:
        task_id = next(iter(found.values())).id
        self.looks.append(Seen(dict(self.model.rows[task_id]), self.model.locks.get(task_id), found))
        return self.looks[-1]

    @rule(age=ages, verb=verbs, via=vias)
    def operate_on_old(self, age: int, verb: str, via: int) -> None:
        """Somebody acts on what was on the screen for a while."""
        self._operate(verb, _of_age(self.looks, age), via)

    @rule(place=places, choice=places, via=vias)
    def operate(self, place: int, choice: int, via: int) -> None:
        """On a fresh look, whatever can be done."""
        able = {verb: fit for verb, phases in FITS.items() if (fit := self.model.in_phase(*phases))}
        if able:
            verb = sorted(able)[choice % len(able)]
            self._operate(verb, self._look(able[verb][place % len(able[verb])], via), via)

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
                if expected is Verdict.APPLIED:
                    self.retried.add(seen.row["id"])
                self._decided(seen, decide.retry_by_hand, expected, via)
            case "resume":
                self._resume(seen, via)
            case _:
                self._delete([seen], via)

    @precondition(_has("running"))
    @rule(held=st.lists(ages, min_size=1, max_size=2), via=vias)
    def ask_to_stop(self, held: list[int], via: int) -> None:
        batch = [_of_age(self.tasks, age) for age in held]
        expected = {task_id for task_id in batch if self.model.ask_to_stop(task_id)}

        async def ask(bench: Bench, store: Store) -> set[UUID]:
            return set(await store.request_cancel(batch))

        self.agree(via, ask, expected)

    def _resume(self, seen: Seen, via: int) -> None:
        expected = self.model.resume(seen.row)
        if expected is Verdict.APPLIED and phase_of(seen.row) == "failed":
            self.retried.add(seen.row["id"])
        self.happened[f"resume: {expected}"] += 1

        async def resume(bench: Bench, store: Store) -> Verdict | None:
            try:
                change = decide.resume(seen.tasks[bench.engine], await store.now())
            except MaxAttemptsReached:
                return None
            return None if change is None else (await store.settle([change]))[0]

        self.agree(via, resume, expected)

    def _decided(self, seen: Seen, decided: Callable[[Task], Change | None], expected: Verdict, via: int) -> None:
        self.happened[f"{decided.__name__}: {expected}"] += 1

        async def settle(bench: Bench, store: Store) -> list[Verdict]:
            change = decided(seen.tasks[bench.engine])
            assert change is not None
            return await store.settle([change])

        self.agree(via, settle, [expected])

    @rule(batch=st.lists(ages, min_size=2, max_size=3), via=vias)
    def delete_several(self, batch: list[int], via: int) -> None:
        self._delete([_of_age(self.looks, age) for age in batch], via)

    def _delete(self, batch: list[Seen], via: int) -> None:
        guards = [(each.row["id"], each.row["version"]) for each in batch]
        expected = [self.model.delete(*guard) for guard in guards]

        async def delete(bench: Bench, store: Store) -> list[Verdict]:
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

    @rule(seconds=st.sampled_from([1000, 1000, 2000, 3000, 100_000, -1000]))
    def jump(self, seconds: int) -> None:
        """Time passes; once in a while somebody sets the clock back."""
        self.model.now = max(0, self.model.now + seconds)
        self.benches.set_clock(self.model.now)

    # -- compare ------------------------------------------------------------------------------------------------------

    @invariant()
    def all_agree(self) -> None:
        self.turn += 1
        assert time.monotonic() - self.begun_at < PATIENCE, "too slow to tell the model's times apart"

        async def look(
            bench: Bench, store: Store
        ) -> tuple[dict[UUID, Row], dict[str, NameStats], dict[str, UUID | None]]:
            page = await store.page(Filter(), limit=1000, oldest_first=True)
            owners = {key: await store.get_by_key(key) for key in KEYS}
            ids = {key: None if task is None else task.id for key, task in owners.items()}
            return {task.id: row_of(task, bench) for task in page.tasks}, await store.stats(), ids

        keys: dict[str, UUID | None] = dict.fromkeys(KEYS) | {
            row["idempotency_key"]: row["id"] for row in self.model.rows.values() if row["idempotency_key"]
        }
        for engine, (rows, stats, owners) in self.benches.each(self.turn % 2, look).items():
            for row in rows.values():
                laws.check_row(row)
            laws.check_keys(rows)
            laws.check_stats(rows, stats)
            laws.check_step(self.rows.get(engine, {}), rows, self.retried)
            self.rows[engine] = rows
            assert rows == self.model.rows, engine
            assert owners == keys, engine
            assert {name: on_the_grid(stats.get(name, NameStats())) for name in NAMES} == self.model.stats(NAMES), (
                engine
            )
        self.retried.clear()


def _kind(answer: object) -> str:
    """What to count an answer as."""
    if isinstance(answer, list) and answer and isinstance(answer[0], Verdict):
        return str(answer[0])
    return "some" if answer else "nothing"
