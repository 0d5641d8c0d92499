"""Who may start beside whom, after workers were lost: decided with nothing but in_flight."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tasklib import task
from tasklib.core.ids import uuid7
from tasklib.core.outcome import Released
from tasklib.core.registry import Registry
from tasklib.core.task import Claim
from tasklib.worker.in_flight import Execution, InFlight
from tasklib.worker.isolation import DRAIN_SECONDS, HOLD_SECONDS, TRIAL_SECONDS, Isolation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REGISTRY = Registry()


@task(registry=REGISTRY)
def work() -> None: ...


@task(registry=REGISTRY, executor="process")
def in_child() -> None: ...


@dataclass
class Bench:
    in_flight: InFlight = field(default_factory=lambda: InFlight("memory://", 60))

    def __post_init__(self) -> None:
        self.apart = Isolation(self.in_flight)
        self.number = 0

    def execution(
        self, *, isolated: bool = False, last: bool = False, ran: float | None = None, name: str = "work"
    ) -> Execution:
        self.number += 1
        retries = 3 if last else 2
        made = Claim(
            uuid7(1, 2, self.number),
            name,
            7,
            "anna",
            "{}",
            retries,
            3,
            None,
            None,
            NOON,
            "{}",
            None,
            isolated,
            isolated,
        )
        kind = REGISTRY.get(name)
        assert kind is not None
        execution = self.in_flight.add(made, kind, time.monotonic())
        if ran is not None:
            execution.started = time.monotonic() - ran
        return execution


def test_those_that_were_never_lost_start_together():
    bench = Bench()
    assert bench.apart.admit([bench.execution() for _ in range(3)]) == (3, Released())
    assert (bench.apart.closed_for(), bench.apart.room(4, 100)) == (0, (4, 100))


def test_a_suspect_in_an_idle_worker_starts_alone_and_nothing_is_claimed_until_it_has_proved_itself():
    bench = Bench()
    crashed_before = bench.execution(isolated=True)
    assert bench.apart.admit([crashed_before]) == (1, Released())
    assert bench.apart.closed_for() == TRIAL_SECONDS, "it has not even started"
    crashed_before.started = time.monotonic()
    assert 0 < bench.apart.closed_for() <= TRIAL_SECONDS
    crashed_before.started -= TRIAL_SECONDS
    assert bench.apart.closed_for() == 0
    assert bench.apart.room(4, 100) == (1, 0), "the next may be one too"


def test_when_the_suspect_has_ended_the_worker_goes_on():
    bench = Bench()
    crashed_before = bench.execution(isolated=True)
    bench.apart.admit([crashed_before])
    bench.in_flight.remove(crashed_before)
    assert bench.apart.closed_for() == 0
    assert bench.apart.admit([bench.execution()]) == (1, Released())
    assert bench.apart.room(4, 100) == (4, 100)


def test_of_several_those_before_the_suspect_start_and_the_rest_goes_back():
    bench = Bench()
    batch = [bench.execution(), bench.execution(isolated=True), bench.execution()]
    assert bench.apart.admit(batch) == (1, Released())
    for given_back in batch[1:]:
        bench.in_flight.remove(given_back)
    assert 0 < bench.apart.closed_for() <= DRAIN_SECONDS, "until the first has ended"
    bench.in_flight.remove(batch[0])
    assert bench.apart.closed_for() == 0
    assert bench.apart.room(4, 100) == (1, 0)
    assert bench.apart.admit([bench.execution(isolated=True)]) == (1, Released())


def test_what_has_run_for_long_and_has_attempts_left_is_no_hindrance():
    bench = Bench()
    bench.execution(ran=TRIAL_SECONDS)
    assert bench.apart.admit([bench.execution(isolated=True)]) == (1, Released())


def test_a_last_attempt_that_runs_for_long_puts_the_suspect_off_and_nobody_else():
    bench = Bench()
    bench.execution(ran=TRIAL_SECONDS, last=True)
    crashed_before = bench.execution(isolated=True)
    assert bench.apart.admit([crashed_before]) == (0, Released(HOLD_SECONDS))
    bench.in_flight.remove(crashed_before)
    assert (bench.apart.closed_for(), bench.apart.room(4, 100)) == (0, (4, 100))


def test_an_outcome_that_is_not_settled_yet_is_waited_for():
    bench = Bench()
    ended = bench.execution(ran=2 * TRIAL_SECONDS)
    ended.ended = time.monotonic()
    assert bench.apart.admit([bench.execution(isolated=True)]) == (0, Released())
    assert bench.apart.closed_for() > 0


def test_what_runs_in_a_process_of_its_own_is_no_danger():
    bench = Bench()
    batch = [bench.execution(isolated=True, name="in_child"), bench.execution()]
    assert bench.apart.admit(batch) == (2, Released())
