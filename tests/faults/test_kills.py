"""Killed at each step of claim and settle: counted and claimed, or not at all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "nats"])
def test_at_each_step_of_claim_and_settle(request: pytest.FixtureRequest, backend: str):
    """Fault 2: before and after each statement or message a process is killed. Every row is then as if nothing had
    happened, claimed as a whole, or settled and counted as a whole."""
    url: str = request.getfixturevalue(f"{backend}_url")
    command = [sys.executable, "-W", "error", "-m", "tests.faults.kill_steps", url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["deaths"] >= 6
    assert set(told["found"]) >= {"pending pending", "running running", "completed failed"}
