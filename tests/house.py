"""How large the house is, and how dear to change: `make house`.

Lines and files by layer; the lines of the SQL stores with their SQL; how many files know the newest column and the
newest submit option. A test holds these figures, so that they can only fall.
"""

from __future__ import annotations

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
"""The newest that every API takes."""


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


def main() -> None:
    print(f"{'layer':<12}{'files':>7}{'lines':>8}")
    for layer in LAYERS:
        files, lines = size(code(SOURCE / layer))
        print(f"{layer:<12}{files:>7}{lines:>8}")
    files, lines = sql_stores()
    print(f"\nPostgreSQL, SQLite and shared stores, SQL included: {lines} lines in {files} files")
    for what, word in (("column", COLUMN), ("option", OPTION)):
        found = files_with(word)
        print(f"\nthe {what} {word} is named in {len(found)} files of the source:")
        for path in found:
            print(f"  {path}")


if __name__ == "__main__":
    main()
