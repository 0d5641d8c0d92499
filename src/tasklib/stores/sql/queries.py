"""SQL lives in `.sql` files beside its store. This reads them once, when the store's package is imported."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

_NAME = re.compile(r"^-- name: ([a-z_]+)[ \t]*$", re.MULTILINE)
_STEP = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_RECORD = "INSERT INTO {{schema}}.task_migrations (version, name) VALUES ({0.version}, '{0.name}');\n"


def load(package: str) -> dict[str, str]:
    """Every query of the `.sql` files in `package`, by name. A query begins with the line `-- name: claim` and ends
    where the next begins; lines that hold only a comment are for readers and are left out."""
    queries: dict[str, str] = {}
    for file in sorted(files(package).iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in queries:
                raise ValueError(f"two queries are named {name} in {package}")
            queries[name] = _without_comments(text)
    return queries


class Step(NamedTuple):
    """One migration."""

    version: int
    name: str
    sql: str

    def script(self, schema: str) -> str:
        """As people run it themselves: it records itself, so that the store knows what was done."""
        return f"{self.sql}\n{_RECORD.format(self)}".replace("{schema}", schema)


def load_steps(engine: str) -> list[Step]:
    """The files `migrations/0001_tasks.sql`, ... of a store, in order: their numbers run from 1 without a gap."""
    steps = sorted(
        Step(int(match[1]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in files("tasklib.stores.sql").joinpath(engine, "migrations").iterdir()
        if (match := _STEP.fullmatch(file.name))
    )
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the migrations of {engine} are not numbered from 1 without a gap")
    return steps


def made_by_steps(engine: str, kind: str) -> list[str]:
    """Names of the tables (`TABLE`) or functions (`FUNCTION`) that the migrations make."""
    return re.findall(rf"CREATE {kind} \{{schema\}}\.(\w+)", "".join(step.sql for step in load_steps(engine)))


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--")).strip()
