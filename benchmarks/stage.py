"""The servers of a run, started when first asked for, and an empty store for whoever has the turn."""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks import servers


class NoServer(Exception):
    """The engine cannot be had on this machine."""


class Stage:
    def __init__(self, folder: Path | None = None, postgres_version: int = 16) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tasklib-bench-", dir=folder))
        self.folder.chmod(0o755)  # the servers may run as somebody else
        self._version = postgres_version
        self._stack = ExitStack()
        self._addresses: dict[str, str] = {}
        self._numbers = itertools.count(1)

    @property
    def postgres(self) -> str:
        return self.server("postgres")

    def server(self, engine: str) -> str:
        if engine not in self._addresses:
            start = {
                "postgres": lambda: servers.postgres(self.folder, self._version),
                "redis": lambda: servers.redis(self.folder / "redis"),
                "nats": lambda: servers.nats(self.folder / "nats"),
                "nats3": lambda: servers.nats(self.folder / "nats3", nodes=3),
            }[engine]
            try:
                self._addresses[engine] = self._stack.enter_context(start())
            except (FileNotFoundError, RuntimeError) as error:
                raise NoServer(str(error)) from None
        return self._addresses[engine]

    @contextmanager
    def store(self, engine: str, template: str | None = None) -> Iterator[str]:
        """The address of an empty store; on PostgreSQL perhaps a copy of a filled one."""
        number = next(self._numbers)
        if engine == "sqlite":
            file = self.folder / f"turn-{number}.db"
            try:
                yield f"sqlite:///{file}"
            finally:
                remove_sqlite(file)
        elif engine == "postgres":
            with servers.database(self.postgres, f"turn_{number}", template=template) as url:
                yield url
        elif engine == "redis":
            address = self.server("redis")
            servers.flush_redis(address)
            yield address
        else:
            # A bucket of its own for each turn, in the same servers.
            replicas = "&replicas=3" if engine == "nats3" else ""
            yield f"{self.server(engine)}?bucket=turn{number}{replicas}"

    def settle_down(self, engine: str) -> None:
        if engine == "postgres":
            servers.settle_down(self.postgres)

    def close(self) -> None:
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def remove_sqlite(file: Path) -> None:
    """With all that lies beside it: the log, and the pipes that wake."""
    for each in file.parent.glob(f"{file.name}*"):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
