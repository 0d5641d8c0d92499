"""The short form of `make chaos`: a few faults of each kind, under load, and the whole checker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.crew import ROOT
from tests.conftest import SEED

SECONDS = 9


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_nothing_is_lost_while_faults_strike(backend: str, tmp_path: Path):
    seed = str(int(os.environ[SEED]) % 2**31)
    options = ["--backend", backend, "--brief", "--duration", str(SECONDS), "--seed", seed, "--report", str(tmp_path)]
    command = [sys.executable, "-m", "tests.chaos.run", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
