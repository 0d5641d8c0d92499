"""Steps of those who submit and of workers: tasks, claims, outcomes, leases."""

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task
from tasklib.stores import values
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest
from tests.conformance.builders import heartbeat_of, next_id
from tests.model.benches import Bench
from tests.model.ground import Ground, has, of_age
from tests.model.queue import LOST, Ending, Held
from tests.model.steps import (
    NAMES,
    HeldEverywhere,
    Order,
    ages,
    endings,
    leases,
    new_task,
    orders,
    outcome,
    places,
    rarely,
    short,
    vias,
    workers,
)


class Working(Ground):
    # -- submit -------------------------------------------------------------------------------------------------------

    @initialize(batch=st.lists(orders, min_size=3, max_size=5), worker=workers, lease=leases)
    def begin(self, batch: list[Order], worker: str, lease: int) -> None:
        self.submit(batch, 0)
        self.all_agree()
        for task_id in self.tasks:
            self.look_at(task_id, 1)
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
        self.claim_choosily(worker, NAMES, slots, 0, lease, {}, via)

    @precondition(lambda self: self.model.anything_due())
    @rule(worker=workers, lease=leases, pause=st.sampled_from([0, 0, 1000]), ending=endings, via=vias)
    def shift(self, worker: str, lease: int, pause: int, ending: Ending, via: int) -> None:
        """A claim and, perhaps too late, its outcome."""
        before = len(self.claims)
        self.claim(worker, 1, lease, via)
        self.all_agree()
        if pause:
            self.jump(pause)
        self._settle([(claim, ending) for claim in self.claims[before:]], via)

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
        seen = of_age(self.looks, age)
        expected = self.model.take(seen.row["id"], seen.row["version"], worker, lease)

        async def take(bench: Bench, store: Store) -> list[Claim]:
            taken = await store.claim_by_id(seen.row["id"], seen.row["version"], worker, lease)
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

    @precondition(has("running"))
    @rule(batch=st.lists(st.tuples(places, endings), min_size=1, max_size=2), via=vias)
    def settle(self, batch: list[tuple[int, Ending]], via: int) -> None:
        running = self.model.in_phase("running")
        self._settle([(self.held[running[place % len(running)]], ending) for place, ending in batch], via)

    @precondition(has("running"))
    @rule(place=places, ending=endings, via=vias)
    def settle_one(self, place: int, ending: Ending, via: int) -> None:
        self.settle([(place, ending)], via)

    @precondition(lambda self: self.claims)
    @rule(batch=st.lists(st.tuples(ages, endings), min_size=1, max_size=3), thief=st.none() | workers, via=vias)
    def settle_old(self, batch: list[tuple[int, Ending]], thief: str | None, via: int) -> None:
        """Claims of any age; or the right version under a wrong name, as after a failover that gave it out twice."""
        self._settle([(of_age(self.claims, age).under(thief), ending) for age, ending in batch], via)

    def _settle(self, batch: list[tuple[HeldEverywhere, Ending]], via: int) -> None:
        expected = []
        for claim, ending in batch:
            row = self.model.rows.get(claim.model.id)
            asked = row is not None and row["cancel_requested_at"] is not None
            write_result = self.model.settle(claim.model, ending, claim.started, claim.max_retries)
            expected.append(write_result)
            if asked and write_result is WriteResult.APPLIED:
                self.happened[f"asked to stop: {ending.kind}"] += 1

        async def settle(bench: Bench, store: Store) -> list[WriteResult]:
            changes = [
                decide.settle(claim.claims[bench.engine], outcome(ending), RetryPolicy.AT_ONCE)
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
            self.model.deregister_worker(worker)
        else:
            self.model.beat(worker)
        known = {claim.model.id: claim.model for claim in (of_age(self.claims, age) for age in held)}.values()
        expected = [(each.id, *self.model.extend(worker, each.id, each.version, lease)) for each in known]

        async def beat(bench: Bench, store: Store) -> tuple[set[tuple[UUID, int]], list[tuple[UUID, bool, bool]]]:
            await (store.deregister_worker(worker) if goes else store.heartbeat(heartbeat_of(worker)))
            leases = [values.Held(each.id, each.version) for each in known]
            extended = await store.extend(worker, leases, lease)
            return {(each.id, each.version) for each in await store.claims_of_worker(worker)}, [
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
            self.saw({engine: found[engine][task_id] for engine in found})

    @rule(dead_after=short, tidies=st.booleans(), via=vias)
    def janitor(self, dead_after: int, tidies: bool, via: int) -> None:
        """A janitor's whole round. Tidying changes nothing that can be seen here, but for workers that hold nothing:
        they may be forgotten, and tell of themselves when they come back."""
        lost = self.model.lost(dead_after)
        for task_id in lost:
            assert self.model.expire(dict(self.model.rows[task_id]), None) is WriteResult.APPLIED
        idle = [worker for worker in self.model.workers if not self.model.held_by(worker)] if tidies else []
        for worker in idle:
            self.model.beat(worker)

        async def janitor(bench: Bench, store: Store) -> set[UUID]:
            if tidies:
                await store.compact_stats()
            found = await store.lost_leases(dead_after, 100)
            write_results = await store.settle([decide.expire(task, LOST) for task in found])
            assert set(write_results) <= {WriteResult.APPLIED}
            for worker in idle:
                await store.heartbeat(heartbeat_of(worker))
            return {task.id for task in found}

        self.agree(via, janitor, lost)
