"""Alerts from the queue to the webhook and the command: told once by a fleet, again where it did not arrive, and never
at the cost of what checks them."""

import asyncio
import json
import logging
import re
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasklib import Config, task
from tasklib.core.alerts import Condition
from tasklib.core.errors import InvalidConfig
from tasklib.core.registry import Registry
from tasklib.engine.alert_file import read_alert_file
from tasklib.engine.alert_sending import send
from tasklib.engine.alerts import CHECK_SECONDS, AlertWatch, sample_message
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.server import create_app
from tasklib.stores.values import WorkerHeartbeat
from tasklib.testing.drain import drain_async
from tasklib.worker.worker import TaskWorker
from tests.waiting import eventually_async

SECRET = "hook-5f1c9e"


class Receiver:
    """A webhook that answers with a chosen status."""

    def __init__(self) -> None:
        self.status = 200
        self.taken: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.taken.append(json.loads(body))
                receiver.headers.append(dict(self.headers))
                self.send_response(receiver.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/{SECRET}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def statuses(self) -> list[str]:
        return [f"{message['alert']} {message['status']}" for message in self.taken]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def alerts_file(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_HOOK", receiver.url)
    path = tmp_path / "alerts.toml"
    path.write_text(
        f"""
        webhook = "${{SHOP_HOOK}}"
        headers = {{ Authorization = "Bearer {SECRET}" }}

        [[rule]]
        name = "late"
        when = "backlog_age"
        above = "5m"

        [[rule]]
        name = "failing"
        when = "failure_rate"
        above = 0.5
        at_least = 3
        for = 0

        [[rule]]
        name = "nobody"
        when = "no_worker"
        type = "greet"

        [[rule]]
        name = "lost"
        when = "lost_workers"
        for = 0
        """
    )
    return path


@pytest.fixture
async def engine(backend_url: str, alerts_file: Path) -> AsyncIterator[Engine]:
    found = Engine(Config(database_url=backend_url, alerts_file=alerts_file))
    yield found
    await found.shutdown()


async def beat(engine: Engine, *names: str) -> None:
    worker = WorkerHeartbeat(id="w1", hostname="h", pid=1, names=names, concurrency=1, running=0)
    await (await engine.store()).heartbeat(worker)


@pytest.fixture
def failing() -> Registry:
    registry = Registry()

    @task(registry=registry, max_retries=0)
    def greet(name: str) -> None:
        raise ValueError(name)

    return registry


async def test_a_fleet_tells_once_that_it_begins_and_once_that_it_is_over(
    engine: Engine, failing: Registry, alerts_file: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    fleet = [AlertWatch(engine, read_alert_file(alerts_file)) for _ in range(3)]

    async def check(times: int, *, alive: bool = True) -> None:
        for _ in range(times):
            if alive:
                await beat(engine, "greet")
            await asyncio.gather(*(watch.check() for watch in fleet))
            engine.advance(timedelta(seconds=CHECK_SECONDS))

    for _ in range(3):
        await engine.submit(Call("greet", {"name": "ada"}, task_type=failing.get("greet")))
    await check(20)
    assert receiver.statuses() == []
    await check(10)  # five minutes are over, and `for`
    assert receiver.statuses() == ["late firing"]
    [message] = receiver.taken
    assert message["text"].startswith("late: the oldest due task of greet has waited for 6 min")
    assert (message["rule"], message["resolved_at"]) == ({"name": "late", "when": "backlog_age", "above": 300.0}, None)
    assert receiver.headers[0]["Authorization"] == f"Bearer {SECRET}"

    await check(8, alive=False)
    assert receiver.statuses() == ["late firing", "lost firing", "nobody firing"]

    await drain_async(engine, registry=failing)
    await check(6)
    assert sorted(receiver.statuses()[3:]) == ["failing firing", "late resolved", "lost resolved", "nobody resolved"]
    over = next(message for message in receiver.taken if message["id"].startswith("late/") and message["resolved_at"])
    assert over["started_at"] == message["started_at"] < over["resolved_at"]
    await check(30)
    assert receiver.statuses()[7:] == ["failing resolved"]
    ids = [message["id"] for message in receiver.taken]
    assert len(set(ids)) == len(ids)
    assert SECRET not in caplog.text
    assert "alert late fires: the oldest due task of greet" in caplog.text


async def test_what_did_not_arrive_is_told_again_by_whoever_is_there(
    memory_url: str, alerts_file: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
):
    engine = Engine(Config(database_url=memory_url))
    text = alerts_file.read_text()
    alerts_file.write_text(text[: text.index("[[rule]]")] + '[[rule]]\nname = "x"\nwhen = "no_worker"\nfor = 0\n')
    file = read_alert_file(alerts_file)

    async def pass_by(seconds: float) -> None:
        """Each check is somebody else's."""
        for _ in range(int(seconds / CHECK_SECONDS)):
            engine.advance(CHECK_SECONDS)
            await AlertWatch(engine, file).check()

    receiver.status = 302
    await pass_by(15)
    assert receiver.statuses() == ["x firing"]
    await pass_by(600)
    assert 4 <= len(receiver.taken) <= 7, "less and less often"
    assert set(receiver.statuses()) == {"x firing"}
    receiver.status, tries = 204, len(receiver.taken)
    await pass_by(1200)
    assert receiver.statuses()[tries:] == ["x firing"]
    [kept] = [alert for alert in await (await engine.store()).alerts() if alert.name == "x"]
    assert (kept.told, kept.tries) == (True, 0)
    assert "it answered with status 302" in caplog.text
    assert SECRET not in caplog.text
    await engine.shutdown()


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """Takes a message down, and does what its argument says."""
    path = tmp_path / "page.py"
    path.write_text(
        f"#!{sys.executable} -S\nimport json, os, pathlib, sys, threading\n"
        "place = pathlib.Path(sys.argv[2])\n"
        "place.write_text(json.dumps([os.getpid(), json.load(sys.stdin)]))\n"
        "if sys.argv[1] == 'hang':\n    threading.Event().wait()\n"
        "if sys.argv[1] == 'fail':\n    sys.stderr.write('x' * 100_000 + '\\n')\n    sys.exit('token=s3cr3t refused')\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


async def test_a_command_is_given_the_message_and_no_more_than_its_time(tmp_path: Path, command: Path):
    taken = tmp_path / "taken $(touch x) ;"  # an argument, whatever it looks like

    async def run(what: str, seconds: float) -> str | None:
        path = tmp_path / f"{what}.toml"
        words = json.dumps([str(command), what, str(taken)])
        path.write_text(f'command = {words}\ntimeout = {seconds}\n[[rule]]\nname = "x"\nwhen = "no_worker"\n')
        file = read_alert_file(path)
        assert file.shown_target == f"command {command}"
        return await send(file, sample_message(file, "memory://"))

    assert await run("take", 30) is None
    assert json.loads(taken.read_text())[1]["status"] == "test"
    assert await run("fail", 30) == "token=*** refused"
    taken.unlink()
    hanging = asyncio.create_task(run("hang", 1.5))
    await eventually_async(lambda: taken.exists() and taken.read_text())
    pid = json.loads(taken.read_text())[0]
    assert await hanging == "it took longer than 1.5 s"
    assert not psutil.pid_exists(pid)
    assert not (tmp_path / "x").exists()
    command.chmod(0o600)
    assert await run("take", 30) == "it cannot be started: Permission denied"


async def test_a_message_that_hangs_holds_nobody_up(memory_url: str, tmp_path: Path, command: Path):
    """A worker whose alert command hangs runs tasks, beats, and ends when told to, the command with it."""
    taken, alerts = tmp_path / "taken", tmp_path / "alerts.toml"
    words = json.dumps([str(command), "hang", str(taken)])
    alerts.write_text(
        f'command = {words}\ntimeout = "5m"\n[[rule]]\nname = "x"\nwhen = "no_worker"\ntype = "y"\nfor = 0\n'
    )
    engine = Engine(Config(database_url=memory_url, alerts_file=alerts, heartbeat_seconds=0.1))
    registry, ran = Registry(), asyncio.Event()

    @task(registry=registry)
    async def greet() -> None:
        ran.set()

    worker = TaskWorker(engine=engine, registry=registry, handle_signals=False, poll_interval_seconds=0.05)
    running = asyncio.create_task(worker.run())
    await eventually_async(lambda: taken.exists() and taken.read_text())
    pid = json.loads(taken.read_text())[0]
    await engine.submit(Call("greet", {}, task_type=registry.get("greet")))
    async with asyncio.timeout(20):
        await ran.wait()
    [seen] = [each.seen_at for each in await engine.workers()]

    async def has_beaten() -> bool:
        return (await engine.workers())[0].seen_at > seen

    await eventually_async(has_beaten)
    assert psutil.pid_exists(pid)
    worker.stop()
    await asyncio.wait_for(running, 20)
    assert not psutil.pid_exists(pid)
    await engine.shutdown()


async def test_a_server_checks_too_for_a_fleet_that_is_gone(memory_url: str, alerts_file: Path, receiver: Receiver):
    alerts_file.write_text(alerts_file.read_text().replace('type = "greet"', "for = 0"))
    engine = Engine(Config(database_url=memory_url, alerts_file=alerts_file))
    app = create_app(engine)
    async with app.router.lifespan_context(app):
        await eventually_async(lambda: receiver.statuses() == ["nobody firing"])
    await engine.shutdown()


def test_the_file_in_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    [text] = re.findall(r"```toml\n(.*?)```", (Path(__file__).parents[1] / "docs" / "alerts.md").read_text(), re.DOTALL)
    monkeypatch.setenv("SHOP_ALERTS_URL", "https://hooks.example.org/x")
    monkeypatch.setenv("SHOP_ALERTS_TOKEN", SECRET)
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    file = read_alert_file(path)
    assert {rule.when for rule in file.rules} == set(Condition)
    assert (file.headers["Authorization"], SECRET in repr(file)) == (f"Bearer {SECRET}", False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "rule: Field required"),
        ("rule = 1", "rule: Input should be"),
        ("[[rule]", "is not TOML"),
        ('webhook = "http://h"\ncommand = ["x"]', "name either a webhook or a command"),
        ('webhook = "file:///etc/passwd"', "webhook: a URL that begins with http:// or https:// is expected"),
        (f'webhook = "{SECRET}://${{NOT_SET}}"', "webhook: the variable NOT_SET is not set"),
        (f'webhook = "http://h"\nheaders = {{ X = "{SECRET}\\n" }}', "headers: 'X': not a header"),
        ("command = []", "command: Tuple should have at least 1 item"),
        ('command = "rm -rf /"', "command: Input should be"),
        ('webhook = "http://h"\ntimeout = "1d"', "timeout: Input should be less than or equal to 300"),
        ('webhook = "http://h"\n[[rule]]\nname = "a"\nwhen = "no_worker"\n', "'a' is the name of two rules"),
        ('webhook = "http://h"\n[[rule]]\nname = "b"\nwhen = "backlog_age"\n', "rule 'b': above: a rule for"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_whoever_would_check(
    memory_url: str, tmp_path: Path, text: str, reason: str
):
    path = tmp_path / "alerts.toml"
    rule = '\n[[rule]]\nname = "a"\nwhen = "no_worker"\n'
    path.write_text(text if "rule" in text and "name" not in text else text and text + rule)
    engine = Engine(Config(database_url=memory_url, alerts_file=path))
    with pytest.raises(InvalidConfig, match=re.escape(reason)) as refused:
        TaskWorker(engine=engine)
    assert str(path) in str(refused.value)
    assert SECRET not in str(refused.value)
    with pytest.raises(InvalidConfig):
        create_app(engine)
