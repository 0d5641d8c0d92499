"""Every engine against one model: random steps, the same on each, compared after every one of them."""

import os
from collections import Counter

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import SEED
from tests.model.benches import Benches, settings_for
from tests.model.operating import Operating
from tests.model.working import Working

EXAMPLES = int(os.environ.get("TASKLIB_MODEL_EXAMPLES", "10"))
STEPS = int(os.environ.get("TASKLIB_MODEL_STEPS", "50"))


COMMON = {"claim: some", "claim: nothing", "settle: applied", "settle: stale", "extend: lost", "delete: stale"}
MOST_RUNS = 10


def test_all_engines_do_what_the_model_does(benches: Benches):
    """The header of the report shows the seed; with it the same steps come again. Random steps go on until each kind of
    answer came up that a comparison would be worth little without."""
    happened: Counter[str] = Counter()
    for run in range(MOST_RUNS):
        run_random_steps(benches, happened, int(os.environ[SEED]) + run)
        if happened.keys() >= COMMON:
            return
    raise AssertionError(f"runs that say little: {happened}")


def run_random_steps(benches: Benches, happened: Counter[str], seed: int) -> None:
    @hypothesis.seed(seed)
    class Machine(Working, Operating):
        pass

    Machine.benches, Machine.happened = benches, happened
    run_state_machine_as_test(Machine, settings=settings_for(EXAMPLES, STEPS), _min_steps=STEPS)
