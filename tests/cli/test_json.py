"""`--json` everywhere: one JSON value on stdout, and nothing else there."""

import json
from pathlib import Path

import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli, run_process


@pytest.mark.parametrize(
    "words",
    [
        "submit x a=1",
        "list",
        "show FAILED",
        "retry FAILED",
        "cancel WAITING",
        "delete FAILED --yes",
        "cleanup --older-than 1d --dry-run",
        "cleanup --older-than 0s --yes",
        "stats",
        "types",
        "wait DONE",
        "retry --all --yes",
        "cancel --name greet --yes",
        "delete --state failed --yes",
        "workers",
        "pause",
        "pause greet",
        "resume",
        "limit greet --rate 1",
        "limit --all --clear",
        "migrate",
        "migrate --plan",
        "migrate --sql",
        "doctor",
    ],
)
def test_it_parses(cli: Cli, queue: Queue, words: str):
    failed, done = queue.finished("break_down", text="no"), queue.finished("log_in", user="ada")
    waiting = queue.submit("greet", name="ada")
    ids = {"FAILED": failed, "WAITING": waiting, "DONE": done}
    ran = cli(*(str(ids.get(word, word)) for word in words.split()), "--json")
    assert ran.code == 0, ran
    assert isinstance(json.loads(ran.out), dict)
    assert len(ran.out.splitlines()) == 1
    # After a second it says what it waits for; a submit says what it could not check.
    said = [line for line in ran.err.splitlines() if not line.startswith("Trying to reach ")]
    assert not said or words.startswith("submit")


def test_the_worker_too(app_folder: Path):
    run_process(["submit", "add", "a=1"], app_folder)
    ran = run_process(["worker", "shop", "--burst", "--json"], app_folder)
    assert ran.code == 0, ran
    assert ran.data["ended"] == "in order"
