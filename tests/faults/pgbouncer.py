"""A real PgBouncer in transaction mode, in front of a PostgreSQL. It is Debian's, which `make faults` installs."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.nats_servers import free_port
from tests.servers import spawn, starter
from tests.waiting import eventually

CONFIG = """
[databases]
* = host={host} port={port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 500
server_round_robin = 1
admin_users = postgres
"""


class PgBouncer:
    def __init__(self, server: str, port: int) -> None:
        self._server, self._port = server, port

    @property
    def url(self) -> str:
        """The server's address, with the pooler in between."""
        parts = urlsplit(self._server)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self._port}"))

    def transactions(self) -> int:
        """How many went through so far."""
        address = f"postgresql://postgres@127.0.0.1:{self._port}/pgbouncer"
        with psycopg.connect(address, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
            cursor = connection.execute("SHOW STATS_TOTALS")
            names = [column.name for column in cursor.description or ()]
            return sum(int(row[names.index("xact_count")]) for row in cursor.fetchall())


@contextmanager
def pgbouncer(server: str, pool: int = 4) -> Iterator[PgBouncer]:
    """`server` is the address of a PostgreSQL that asks for no password."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        raise RuntimeError("this takes PgBouncer: apt-get install pgbouncer, which `make faults` does as root")
    parts = urlsplit(server)
    home = Path(tempfile.mkdtemp(prefix="tasklib-pgbouncer-"))
    home.chmod(0o755)
    listen = free_port()
    config = home / "pgbouncer.ini"
    config.write_text(CONFIG.format(host=parts.hostname, port=parts.port, listen=listen, pool=pool))
    with (home / "log").open("wb") as log:
        process = starter.submit(spawn, [found, str(config)], home, log).result()
    try:

        def answers() -> bool:
            assert process.poll() is None, (home / "log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", listen)) == 0

        eventually(answers, timeout=20)
        yield PgBouncer(server, listen)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(home, ignore_errors=True)
