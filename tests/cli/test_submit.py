"""submit: arguments, options, keys, checks."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli, run_process


def test_it_prints_the_id_and_nothing_else(cli: Cli, queue: Queue):
    ran = cli("submit", "send_email", "to=ada@example.com")
    assert ran.code == 0
    task = queue.get(UUID(ran.out.strip()))
    assert task is not None
    assert (task.name, task.state, task.kwargs) == ("send_email", "pending", {"to": "ada@example.com"})


def test_text_is_text_and_json_is_json(cli: Cli, queue: Queue):
    task = queue.get(cli("submit", "x", "zip=01234", "n:=3", "on:=true", "list:=[1,2]", "eq=a=b", "empty=").out.strip())
    assert task is not None
    assert task.kwargs == {"zip": "01234", "n": 3, "on": True, "list": [1, 2], "eq": "a=b", "empty": ""}


@pytest.mark.parametrize("payload", ['{"a": 1}', "[1, 2]", '"text"', "7", "null"])
def test_a_payload_as_json(cli: Cli, queue: Queue, payload: str):
    task = queue.get(cli("submit", "x", "--payload", payload).out.strip())
    assert task is not None
    assert task.kwargs == json.loads(payload)


def test_a_payload_from_stdin(cli: Cli, queue: Queue):
    task = queue.get(cli("submit", "x", "--payload", "-", stdin='{"big": "value"}').out.strip())
    assert task is not None
    assert task.kwargs == {"big": "value"}


def test_all_options_reach_the_row(cli: Cli, queue: Queue):
    words = "--delay 2m --priority 7 --max-retries -1 --timeout 1m --tag team=shop --tag tier:=2 --key k-1"
    task = queue.get(cli("submit", "x", *words.split()).out.strip())
    assert task is not None
    assert 119 <= (task.scheduled_at - task.created_at).total_seconds() <= 121
    assert (task.priority, task.max_retries, task.timeout_seconds) == (7, -1, 60)
    assert (task.tags, task.idempotency_key) == ({"team": "shop", "tier": 2}, "k-1")


def test_a_time_to_run_at(cli: Cli, queue: Queue):
    task = queue.get(cli("submit", "x", "--run-at", "2099-12-31T08:00:00+01:00").out.strip())
    assert task is not None
    assert task.scheduled_at.isoformat() == "2099-12-31T07:00:00+00:00"


def test_a_known_key_answers_with_its_task(cli: Cli):
    first = cli("submit", "x", "--key", "order-17", "--json").data
    again = cli("submit", "x", "--key", "order-17", "--json").data
    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"]
    assert "was known" in cli("submit", "x", "--key", "order-17").err


def test_with_its_module_the_arguments_are_checked(app_folder: Path):
    refused = run_process(["submit", "add", "a=one", "--module", "shop"], app_folder)
    assert (refused.code, refused.out) == (2, "")
    assert "addParams" in refused.err
    assert "a: Input should be a valid integer" in refused.err
    assert not (app_folder / "tasklib.db").exists()


def test_with_its_module_the_task_has_its_own_defaults(app_folder: Path):
    run_process(["submit", "boom", "text=oh", "--module", "shop"], app_folder)
    [task] = run_process(["list", "--json"], app_folder).data["tasks"]
    assert task["max_retries"] == 0


def test_a_name_the_module_does_not_have(app_folder: Path):
    ran = run_process(["submit", "sub", "--module", "shop"], app_folder)
    assert ran.code == 2
    assert "known are: add, boom, note_pid" in ran.err


def test_the_queue_the_application_chose(app_folder: Path):
    (app_folder / "site_app.py").write_text(
        "from tasklib import Config, init, task\n"
        "init(Config(database_url='sqlite:///chosen.db', lock_timeout_seconds=5))\n"
        "@task\ndef hello() -> None: ...\n"
    )
    run_process(["submit", "hello", "--module", "site_app"], app_folder)
    assert (app_folder / "chosen.db").exists()
    assert not (app_folder / "tasklib.db").exists()
    run_process(["submit", "hello", "--module", "site_app", "--database-url", "sqlite:///mine.db"], app_folder)
    assert (app_folder / "mine.db").exists()
