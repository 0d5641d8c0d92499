"""The command `worker`, as a process: bursts, names, signals, logs, and streams that fail it."""

import json
import re
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tasklib.cli.logs import LogFormat, LogLevel
from tasklib.cli.session import Session
from tasklib.cli.worker import Order
from tasklib.core.options import SubmitOptions
from tests.cli.queue import Queue
from tests.cli.running import background, insist, run_process
from tests.waiting import eventually

ODD = "a\n2030-01-01 forged \x1b[31m postgresql://ada:geheim@h/db"


@pytest.fixture
def env(sqlite_url: str) -> dict[str, str]:
    return {"TASKLIB_DATABASE_URL": sqlite_url}


def log(folder: Path) -> str:
    return (folder / "stderr.txt").read_text()


def test_a_burst_runs_what_is_due_and_ends(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("add", a=1)
    queue.add("boom", text="oh")
    queue.add("later", options=SubmitOptions(delay_seconds=3600))
    ran = run_process(["worker", "shop", "--burst", "--concurrency", "4"], app_folder, env=env)
    assert (ran.code, ran.out) == (0, "")
    assert "boom" in ran.err
    assert queue.states() == {"add": "completed", "boom": "failed", "later": "pending"}


def test_only_the_names_asked_for(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("add", a=1)
    queue.add("boom", text="oh")
    assert run_process(["worker", "shop", "--burst", "--names", "add,note_pid"], app_folder, env=env).code == 0
    assert queue.states() == {"add": "completed", "boom": "pending"}
    wrong = run_process(["worker", "shop", "--burst", "--names", "substract"], app_folder, env=env)
    assert wrong.code == 2
    assert "no task type is called substract; known: add, boom, note_pid" in wrong.err


def test_what_the_terminal_shows(app_folder: Path, queue: Queue, env: dict[str, str]):
    """A line for the start, one for each task with its duration, failures with their traceback."""
    done, failed = queue.add("add", a=1), queue.add("boom", text="oh")
    lines = run_process(["worker", "shop", "--burst"], app_folder, env=env).err.splitlines()
    (start,) = (line for line in lines if " starts: " in line)
    assert "INFO" in start
    served = f"serves {env['TASKLIB_DATABASE_URL']}, 1 at once, queues default, types add, boom, note_pid"
    assert f" starts: {served}" in start
    (completed,) = (line for line in lines if str(done) in line)
    assert re.search(r"INFO    tasklib\.tasks: task \S+ \(add\), attempt 1 completed in \d+ ms$", completed)
    (broken,) = (line for line in lines if str(failed) in line)
    assert "ERROR" in broken
    assert broken.endswith("(boom), attempt 1 failed for good: ValueError: oh")
    trace = lines[lines.index(broken) + 1 :]
    assert trace[0] == "    Traceback (most recent call last):"
    assert any("in boom" in line for line in trace)


def test_quiet_leaves_out_what_went_well(app_folder: Path, queue: Queue, env: dict[str, str]):
    done, failed = queue.add("add", a=1), queue.add("boom", text="oh")
    ran = run_process(["worker", "shop", "--burst", "--quiet"], app_folder, env=env)
    assert str(done) not in ran.err
    assert f"task {failed} (boom), attempt 1 failed for good" in ran.err
    assert " serves " in ran.err


def test_the_queues_asked_for_also_when_others_are_imported(tmp_path: Path, queue: Queue, env: dict[str, str]):
    (tmp_path / "post.py").write_text(
        "import pictures\nfrom tasklib import task\n"
        "@task(queue='mail')\ndef welcome() -> None: ...\n"
        "@task(queue='mail', name='mail.digest')\ndef digest() -> None: ...\n"
    )
    (tmp_path / "pictures.py").write_text("from tasklib import task\n@task(queue='gpu')\ndef scale() -> None: ...\n")
    names = ("welcome", "mail.digest", "scale")

    def served(*options: str) -> set[str]:
        for name in names:
            queue.add(name)
        assert run_process(["worker", "post", "--burst", *options], tmp_path, env=env).code == 0
        done = {name for name, state in queue.states().items() if state == "completed"}
        queue.empty()
        return done

    assert served("--queues", "mail") == {"welcome", "mail.digest"}
    assert served("-q", "mail,gpu", "--exclude", "mail.*") == {"welcome", "scale"}
    assert served("--exclude-queues", "gpu", "--names", "mail.*") == {"mail.digest"}
    wrong = run_process(["worker", "post", "--burst", "--queues", "mails"], tmp_path, env=env)
    assert wrong.code == 2
    assert "queues: no task type is in the queue mails; known: gpu, mail" in wrong.err


@pytest.mark.parametrize(
    ("option", "value"), [("--concurrency", "0"), ("--poll-interval", "0s"), ("--grace", "x"), ("--processes", "0")]
)
def test_options_out_of_range(app_folder: Path, env: dict[str, str], option: str, value: str):
    ran = run_process(["worker", "shop", "--burst", option, value], app_folder, env=env)
    assert ran.code == 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_lets_the_running_task_finish(
    app_folder: Path, queue: Queue, env: dict[str, str], number: signal.Signals
):
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop"], app_folder, env=env) as worker:
        eventually(lambda: list(app_folder.glob("*.pid")))
        worker.send_signal(number)
        eventually(lambda: "stops: 1 task running" in log(app_folder))
        (app_folder / "go").touch()
        assert worker.wait(20) == 0
    assert queue.states() == {"note_pid": "completed"}
    assert "Traceback" not in log(app_folder)


def test_a_second_signal_leaves_at_once(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop"], app_folder, env=env) as worker:
        eventually(lambda: list(app_folder.glob("*.pid")))
        worker.send_signal(signal.SIGINT)
        eventually(lambda: "stops: 1 task running" in log(app_folder))
        assert insist(worker) == 130
    assert "Traceback" not in log(app_folder)


def test_two_signals_in_the_same_instant_are_one(app_folder: Path, queue: Queue, env: dict[str, str]):
    """Ctrl-C reaches every process of a terminal, and a supervisor passes it on."""
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop"], app_folder, env=env) as worker:
        eventually(lambda: list(app_folder.glob("*.pid")))
        worker.send_signal(signal.SIGINT)
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: "stops: 1 task running" in log(app_folder))
        (app_folder / "go").touch()
        assert worker.wait(20) == 0
    assert queue.states() == {"note_pid": "completed"}
    assert "leaving at once" not in log(app_folder)


def test_when_grace_is_over_tasks_are_given_back(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("note_pid", folder=str(app_folder), wait=True)
    with background(["worker", "shop", "--grace", "100ms"], app_folder, env=env) as worker:
        eventually(lambda: list(app_folder.glob("*.pid")))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert queue.states() == {"note_pid": "pending"}


@pytest.mark.parametrize("streams", ["gone", "full"])
def test_it_goes_on_without_its_streams(app_folder: Path, queue: Queue, env: dict[str, str], streams: str):
    """Fault 24: a pipe whose reader has gone, and a disk without room. The worker goes on."""
    if streams == "full" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    queue.add("add", a=1)
    with ExitStack() as stack:
        stream = stack.enter_context(Path("/dev/full").open("w")) if streams == "full" else subprocess.PIPE
        worker = stack.enter_context(background(["worker", "shop"], app_folder, env=env, stdout=stream, stderr=stream))
        for pipe in (worker.stdout, worker.stderr):
            if pipe is not None:
                pipe.close()
        eventually(lambda: queue.states() == {"add": "completed"})
        queue.add("boom", text="oh")  # which is logged, or would be
        eventually(lambda: queue.states().get("boom") == "failed")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0


def test_logs_for_programs(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("boom", text=ODD)
    ran = run_process(["worker", "shop", "--burst", "--log-format", "json"], app_folder, env=env)
    entries = [json.loads(line) for line in ran.err.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(entries[0])
    assert any("boom" in entry["message"] for entry in entries)
    assert "geheim" not in ran.err


def test_logs_for_people(app_folder: Path, queue: Queue, env: dict[str, str]):
    queue.add("boom", text=ODD)
    ran = run_process(["worker", "shop", "--burst"], app_folder, env=env)
    records = [line for line in ran.err.splitlines() if not line.startswith("    ")]  # tracebacks are indented
    assert all(line.startswith("20") and "Z " in line[:22] for line in records), ran.err
    assert "\x1b" not in ran.err
    assert "geheim" not in ran.err
    queue.add("add", a=1)
    assert run_process(["worker", "shop", "--burst", "--log-level", "error"], app_folder, env=env).err == ""


def test_tasks_that_submit_tasks_use_the_same_queue(tmp_path: Path, queue: Queue, sqlite_url: str):
    (tmp_path / "chain.py").write_text(
        "from tasklib import submit_task, task\n"
        "@task\nasync def second() -> None: ...\n"
        "@task\nasync def first() -> None:\n    await submit_task(second)\n"
    )
    queue.add("first")
    assert run_process(["worker", "chain", "--burst", "--database-url", sqlite_url], tmp_path).code == 0
    assert queue.states() == {"first": "completed", "second": "completed"}


def test_a_worker_answers_prometheus_on_its_port_and_further_processes_on_the_next(
    tmp_path: Path, queue: Queue, env: dict[str, str]
):
    (tmp_path / "shop.py").write_text(
        "from urllib.request import urlopen\nfrom tasklib import task\n\n@task\ndef scrape(port: int) -> str:\n"
        "    return urlopen(f'http://127.0.0.1:{port}/metrics', timeout=20).read().decode()\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        taken = run_process(["worker", "shop", "--burst", "--metrics-port", str(port)], tmp_path, env=env)
    assert (taken.code, "metrics_port: cannot listen on 127.0.0.1" in taken.err) == (2, True)
    task_id = queue.add("scrape", port=port)
    ran = run_process(["worker", "shop", "--burst", "--metrics-port", str(port)], tmp_path, env=env)
    assert f"metrics are at http://127.0.0.1:{port}/metrics" in ran.err
    task = queue.get(task_id)
    assert task is not None
    assert "\ntasklib_worker_slots_used 1\n" in (task.result or {})["value"], "it was answered while a task ran"
    order = order_of(metrics_port=9400)
    ports = [words[words.index("--metrics-port") + 1] for words in (order.words(SESSION, n) for n in (1, 2, 3))]
    assert ports == ["9400", "9401", "9402"]
    assert "0" in order_of(metrics_port=0).words(SESSION, 2), "any that is free"
    assert "--metrics-port" not in order_of(metrics_port=None).words(SESSION)


SESSION = Session(database_url=None, as_json=False, debug=False)


def order_of(*, metrics_port: int | None) -> Order:
    return Order(
        modules=["shop"],
        concurrency=1,
        names=[],
        exclude=[],
        queues=[],
        exclude_queues=[],
        burst=False,
        grace=None,
        poll_interval=1.0,
        app_version=None,
        metrics_port=metrics_port,
        metrics_host="127.0.0.1",
        quiet=False,
        log_level=LogLevel.INFO,
        log_format=LogFormat.TEXT,
    )
