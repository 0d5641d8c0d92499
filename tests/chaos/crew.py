"""The processes of a chaos run: workers, submitters, an operator, agents. Whoever dies is replaced."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.chaos.history import HISTORY, History
from tests.stores.proxy import Proxy

ROOT = Path(__file__).parents[2]
EXPECTED = {0, -signal.SIGKILL, -signal.SIGTERM}
"""How a member may end: as told, or killed by a fault. Anything else is a crash, and fails the run."""


class Member:
    """One process, and its own line to the database."""

    def __init__(self, role: str, name: str, proxy: Proxy | None, log: Path) -> None:
        self.role, self.name, self.proxy, self.log = role, name, proxy, log
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen = False

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def freeze(self) -> None:
        self.frozen = True
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.frozen = False
        self.send(signal.SIGCONT)


class Crew:
    def __init__(self, folder: Path, history: History, settings: dict[str, Any], seed: int) -> None:
        self._folder, self._history, self._settings, self._seed = folder, history, settings, seed
        self._number = 0
        self.members: list[Member] = []
        self.crashes: list[str] = []
        self.replaced = 0
        self.upstream: str | None = None
        """The server's address if lines go through proxies."""

    def by_role(self, role: str) -> list[Member]:
        return [member for member in self.members if member.role == role and member.alive and not member.frozen]

    @property
    def workers(self) -> list[Member]:
        """Those that a fault may strike."""
        return self.by_role("worker")

    def holder(self, worker_id: str | None) -> Member | None:
        """The worker that stores know by this id."""
        return next((m for m in self.workers if worker_id is not None and worker_id.startswith(f"{m.name}-")), None)

    async def start(self, role: str, *, concurrency: int = 4, closed_streams: bool = False) -> Member:
        self._number += 1
        name = f"{role}{self._number}"
        proxy = None
        settings = dict(self._settings)
        if self.upstream is not None:
            proxy = await Proxy(self.upstream).__aenter__()
            settings["database_url"] = proxy.url
        member = Member(role, name, proxy, self._folder / f"{name}.log")
        member.log.touch()
        arguments = [role, name, json.dumps(settings), str(self._seed + self._number), str(concurrency)]
        environment = {
            **os.environ,
            HISTORY: str(self._history.path),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "TASKLIB_MIDDLEWARE": "tests.chaos.app:Witness",  # child processes of workers have it from here, too
        }
        command = [sys.executable, "-m", "tests.chaos.program", *arguments]
        member.process = _spawn(command, environment, None if closed_streams else member.log)
        self.members.append(member)
        return member

    async def replace_dead(self) -> None:
        """One round of the supervisor."""
        for member in [member for member in self.members if not member.alive]:
            assert member.process is not None
            code = member.process.returncode
            self._history.note("died", member=member.name, code=code)
            if code not in EXPECTED:
                self.crashes.append(f"{member.name} ended with {code}:\n{member.said[-2000:]}")
            await self.retire(member)
            self.replaced += 1
            await self.start(member.role)

    async def retire(self, member: Member, timeout: float = 30) -> int:
        """Ends it as an operator would, and for good."""
        self.members.remove(member)
        if member.alive:
            member.thaw()
            member.send(signal.SIGTERM)
        assert member.process is not None
        try:
            return await asyncio.to_thread(member.process.wait, timeout)
        except subprocess.TimeoutExpired:
            self.crashes.append(f"{member.name} did not end within {timeout} s of SIGTERM:\n{member.said[-2000:]}")
            member.process.kill()
            return await asyncio.to_thread(member.process.wait)
        finally:
            if member.proxy is not None:
                await member.proxy.__aexit__(None, None, None)

    async def retire_all(self, *roles: str) -> None:
        going = [member for member in self.members if not roles or member.role in roles]
        await asyncio.gather(*(self.retire(member) for member in going))

    def kill_all(self) -> None:
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()


def _spawn(command: list[str], environment: dict[str, str], log: Path | None) -> subprocess.Popen[bytes]:
    """Without a log its streams are closed: whoever writes gets EPIPE."""
    if log is None:
        reader, streams = os.pipe()
        os.close(reader)
    else:
        streams = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=streams, stderr=streams
        )
    finally:
        os.close(streams)
