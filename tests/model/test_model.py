"""Every engine against one model: random steps, the same on each, compared after every one of them."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import SEED
from tests.model.benches import Benches
from tests.model.operating import Operating
from tests.model.working import Working

EXAMPLES = int(os.environ.get("TASKLIB_MODEL_EXAMPLES", "15"))
STEPS = int(os.environ.get("TASKLIB_MODEL_STEPS", "50"))


@pytest.fixture
def benches(postgres_url: str, nats_server: str, tmp_path: Path) -> Iterator[Benches]:
    with asyncio.Runner() as runner:
        yield Benches(runner, postgres_url, nats_server, tmp_path)


def test_all_engines_do_what_the_model_does(benches: Benches):
    """The header of the report shows the seed; with it the same steps come again."""
    settings = hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink] if "TASKLIB_MODEL_SHRINK" in os.environ else [Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )

    @hypothesis.seed(int(os.environ[SEED]))
    class Machine(Working, Operating):
        pass

    Machine.benches, Machine.happened = benches, Counter()
    run_state_machine_as_test(Machine, settings=settings, _min_steps=STEPS)
    common = {"claim: some", "claim: nothing", "settle: applied", "settle: stale", "extend: lost", "delete: stale"}
    assert common <= Machine.happened.keys(), f"a run that says little: {Machine.happened}"
