"""How large the house is, and how dear to change: `make house`.

Lines and files by layer; the lines of the SQL stores with their SQL; how many files know the newest column, and in how
many a submit option is taken. A test holds these figures, so that they can only fall.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tasklib"
LAYERS = ("core", "stores", "engine", "worker", "api", "contrib", "server", "cli", "testing")
COLUMN = "retry_policy"
"""The newest that is carried from a submit to a claim and that people read."""
OPTION = "idempotency_key"
"""Every API takes it under this name, and no task type has it: what names it takes it from a caller, or is below."""
TAKING = ("core", "engine", "worker", "api", "server", "cli")
NOT_TAKING = {
    "core/task.py": "the record, and what a store is given",
    "core/schedules.py": "makes the keys of a schedule's tasks",
    "core/words.py": "looks for words in it",
    "engine/collecting.py": "gives the key of a flow to its first task",
    "engine/filters.py": "finds a task by it",
    "server/filters.py": "finds a task by it",
    "server/export.py": "shows it, in a file",
    "engine/submission.py": "refuses one key for a batch; options go through without their names",
    "api/manager.py": "shows it, in a ManagedTask",
    "api/rest_client.py": "reads it, from a task that the server shows",
    "server/claim_schemas.py": "shows it, in a claim",
    "server/claims.py": "shows it, in a claim",
    "server/views.py": "shows it, in a task",
    "cli/detail.py": "shows it",
    "cli/record.py": "shows it, in a file",
}
"""Files that show or use a stored task's key. One with a function that has it as a parameter counts all the same."""


class Size(NamedTuple):
    files: int
    lines: int


def size(paths: Iterable[Path]) -> Size:
    found = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    return Size(len(found), sum(found))


def code(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".sql"))


def sql_stores() -> Size:
    """PostgreSQL, SQLite and what they share, SQL included."""
    stores = SOURCE / "stores"
    return size(chain(stores.glob("*.py"), code(stores / "sql")))


def files_with(word: str) -> list[Path]:
    """Source files that name it."""
    whole = re.compile(rf"\b{word}\b")
    return [path.relative_to(ROOT) for path in code(SOURCE) if whole.search(path.read_text(encoding="utf-8"))]


OF_FLOWS = (
    *("api/flow.py", "api/remote.py", "api/remote_flow.py", "engine/flows.py"),
    *("server/flows.py", "server/flow_schemas.py"),
)
"""They take the key of a whole flow, which is no option of a task."""


def files_that_take(option: str) -> list[Path]:
    """Source files to edit for another option like this one: those that take it from callers."""
    named = [path.relative_to(SOURCE) for path in map(ROOT.joinpath, files_with(option))]
    return [
        path
        for path in named
        if path.parts[0] in TAKING
        and path.as_posix() not in OF_FLOWS
        and (path.as_posix() not in NOT_TAKING or _is_parameter(option, SOURCE / path))
    ]


def _is_parameter(name: str, path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(tree))


def main() -> None:
    print(f"{'layer':<12}{'files':>7}{'lines':>8}")
    for layer in LAYERS:
        files, lines = size(code(SOURCE / layer))
        print(f"{layer:<12}{files:>7}{lines:>8}")
    files, lines = sql_stores()
    print(f"\nPostgreSQL, SQLite and shared stores, SQL included: {lines} lines in {files} files")
    column, option = files_with(COLUMN), files_that_take(OPTION)
    print(f"\nthe column {COLUMN} is named in {len(column)} files of the source:", *column, sep="\n  ")
    print(f"\nthe option {OPTION} is taken in {len(option)} files of the source:", *option, sep="\n  ")


if __name__ == "__main__":
    main()
