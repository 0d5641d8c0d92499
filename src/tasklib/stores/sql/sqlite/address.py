"""Where a queue lives: `sqlite:///file.db` or `memory://name`, with the options a URL may carry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tasklib.core.errors import InvalidConfig

_WHOLE_PROCESS = "tasklib"
"""The name behind a bare `memory://`."""


@dataclass(frozen=True, slots=True)
class Address:
    """Exactly one of `path` and `memory` is set."""

    path: Path | None
    """Absolute, so that a later change of the working directory does not matter."""
    memory: str | None
    synchronous: str = "full"

    @property
    def key(self) -> str:
        """The same for every spelling of the same database."""
        return f"memory://{self.memory}" if self.path is None else str(self.path.resolve())

    @property
    def filename(self) -> str:
        """What SQLite opens."""
        if self.path is None:
            return f"file:/{quote(self.memory or '', safe='')}?vfs=memdb"
        return str(self.path)

    def __str__(self) -> str:
        return f"memory://{self.memory}" if self.path is None else str(self.path)


def parse(url: str) -> Address:
    parts = urlsplit(url)
    if parts.scheme == "memory":
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise _refused(f"a memory URL is memory:// or memory://name, got {url!r}")
        return Address(None, memory_name(unquote(parts.netloc)))
    if parts.scheme != "sqlite":
        raise _refused(f"a SQLite URL starts with sqlite:/// or memory://, got {url!r}")
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.fragment or not path or path.startswith(":memory:"):
        example = "sqlite:///relative.db or sqlite:////absolute/path.db; for a queue in memory use memory://"
        raise _refused(f"a SQLite URL is {example}; got {url!r}")
    if "\0" in path or path.endswith("/"):
        raise _refused(f"{path!r} is not the name of a file")
    return Address(Path(path).absolute(), None, **_options(parts.query))


def memory_name(name: str) -> str:
    return name or _WHOLE_PROCESS


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key != "synchronous":
            raise InvalidConfig(f"unknown option {key!r} in a SQLite URL; there is: synchronous", field=key)
        if value.lower() not in ("full", "normal"):
            raise InvalidConfig(f"synchronous must be full or normal, got {value!r}", field=key)
        options[key] = value.lower()
    return options


def _refused(message: str) -> InvalidConfig:
    return InvalidConfig(message, field="database_url")
