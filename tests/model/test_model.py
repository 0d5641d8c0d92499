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


def test_all_engines_do_what_the_model_does(benches: Benches):
    """The header of the report shows the seed; with it the same steps come again."""

    @hypothesis.seed(int(os.environ[SEED]))
    class Machine(Working, Operating):
        pass

    Machine.benches, Machine.happened = benches, Counter()
    run_state_machine_as_test(Machine, settings=settings_for(EXAMPLES, STEPS), _min_steps=STEPS)
    common = {"claim: some", "claim: nothing", "settle: applied", "settle: stale", "extend: lost", "delete: stale"}
    assert common <= Machine.happened.keys(), f"a run that says little: {Machine.happened}"
