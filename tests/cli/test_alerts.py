"""alerts: rules, states, what they find, and a test message."""

import json
from pathlib import Path

import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli

SECRET = "hook-5f1c9e"


@pytest.fixture
def alerts_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "alerts.toml"
    monkeypatch.setenv("TASKLIB_ALERTS_FILE", str(path))
    return path


def test_rules_their_states_and_what_they_find(cli: Cli, queue: Queue, alerts_file: Path):
    alerts_file.write_text(
        f"""
        webhook = "https://ada:{SECRET}@hooks.example.org:8443/{SECRET}"
        [[rule]]
        name = "late"
        when = "backlog_age"
        type = "greet"
        above = "1h"
        [[rule]]
        name = "nobody"
        when = "no_worker"
        for = "90s"
        """
    )
    queue.submit("greet", name="ada")
    ran = cli("alerts")
    assert ran.code == 0
    rows = [line.split("  ") for line in ran.out.splitlines()]
    words = [[word.strip() for word in row if word.strip()] for row in rows]
    assert words[1][:3] == ["late", "backlog_age of greet above 1.0 h for 1 min", "ok"]
    assert words[1][3].startswith("the oldest due task of greet has waited for ")
    assert words[2] == ["nobody", "no_worker for 2 min", "ok", "no worker is live"]
    told = cli("alerts", "--json")
    late, nobody = told.data["rules"]
    assert told.data["target"] == "webhook https://hooks.example.org:8443"
    assert (late["above"], late["for"], late["state"], late["holds"], late["told"]) == (3600, 60, "ok", False, True)
    assert (nobody["for"], nobody["holds"]) == (90, True)
    assert SECRET not in ran.out + ran.err + told.out


def test_a_test_message_and_what_became_of_it(cli: Cli, alerts_file: Path, tmp_path: Path):
    rule = '\n[[rule]]\nname = "x"\nwhen = "no_worker"\n'
    alerts_file.write_text(f'command = ["tee", "{tmp_path}/told.json"]{rule}')
    assert cli("alerts", "--test").out == "The command tee has taken the test message.\n"
    assert json.loads((tmp_path / "told.json").read_text())["status"] == "test"
    alerts_file.write_text(f'webhook = "http://127.0.0.1:9/{SECRET}"{rule}')
    failed = cli("alerts", "--test")
    assert failed.code == 1
    assert "the webhook http://127.0.0.1:9 was not told: it cannot be reached: " in failed.err
    assert SECRET not in failed.err


def test_no_rules_are_a_clear_error_and_those_for_prometheus_are_printed(cli: Cli):
    ran = cli("alerts")
    assert (ran.code, "name a file in TASKLIB_ALERTS_FILE" in ran.err) == (2, True)
    assert "alert: TasklibNoWorker" in cli("alerts", "--prometheus").out
