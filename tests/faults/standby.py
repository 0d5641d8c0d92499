"""A PostgreSQL that follows another one, to fail over to."""

import psycopg

from tests.servers import PostgresServer
from tests.waiting import eventually


class Standby(PostgresServer):
    """A hot standby of `primary`, which must be running: a copy by pg_basebackup that streams from then on.

    Asynchronous, unless the primary is told to wait for it: `wait_for_standby(primary)`.
    """

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(settings=primary.settings, version=primary.version)
        self._primary = primary

    def _make_data(self) -> None:
        options = ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync"]
        self._run("pg_basebackup", *options, f"--dbname={self._primary.dsn}", f"--pgdata={self.data}")
        # The server refuses a directory that others may read.
        self.data.chmod(0o700)

    def is_standby(self) -> bool:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)

    def streams(self) -> bool:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute("SELECT status FROM pg_stat_wal_receiver").fetchone() == ("streaming",)

    def stop_following(self) -> None:
        """From here on what the primary commits does not arrive: the tail that a failover loses."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
        eventually(lambda: not self.streams(), timeout=30)

    def promote(self) -> None:
        """Returns when it takes writes."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)


def wait_for_standby(primary: PostgresServer) -> None:
    """From here on a commit on the primary is answered once the standby has it on disk."""
    with psycopg.connect(primary.dsn, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        synchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: connection.execute(synchronous).fetchone() == (1,), timeout=30)


def url_of(*servers: PostgresServer) -> str:
    """All of them, as an application names them: the one that takes writes is to be used."""
    return f"postgresql://postgres@{','.join(f'127.0.0.1:{server.port}' for server in servers)}/postgres"
