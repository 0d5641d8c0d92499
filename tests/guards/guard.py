"""A guard, how to take it away, and the tests that must notice."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = "src/tasklib"


class Stale(Exception):
    """The code no longer says what the table says."""


@dataclass(frozen=True)
class Cut:
    """A piece of the source, and what stands in its place once the guard is gone."""

    file: str
    """Below src/tasklib."""
    text: str
    put: str = ""
    within: str = ""
    """How the line begins that opens the statement, trigger, class or function meant; the whole file if empty."""
    times: int = 1
    """How often the text stands there. All of them are cut."""

    def applied(self, source: str) -> str:
        start, end = self._region(source)
        found = source[start:end].count(self.text)
        if found != self.times:
            place = f"{self.file}, {self.within}" if self.within else self.file
            raise Stale(f"{place}: {self.text!r} stands there {found} times, not {self.times}")
        return source[:start] + source[start:end].replace(self.text, self.put) + source[end:]

    def _region(self, source: str) -> tuple[int, int]:
        if not self.within:
            return 0, len(source)
        lines = list(_lines(source))
        opening = [index for index, (_, line) in enumerate(lines) if _opens(line, self.within)]
        if len(opening) != 1:
            raise Stale(f"{self.file}: {len(opening)} lines begin with {self.within!r}, not 1")
        first = opening[0]
        for start, line in lines[first + 1 :]:
            if _ends(line, lines[first][1]):
                return lines[first][0], start
        return lines[first][0], len(source)


@dataclass(frozen=True)
class Guard:
    name: str
    cuts: tuple[Cut, ...]
    """Several where one covers for another: each alone would not be missed."""
    tests: tuple[str, ...]
    """Each must go red without the guard. A name without its case in brackets is red if one of its cases is."""

    def mutated(self, root: Path) -> dict[Path, str]:
        """The files as they are without the guard. Raises Stale."""
        files: dict[Path, str] = {}
        for cut in self.cuts:
            path = root / SOURCE / cut.file
            if path not in files:
                if not path.exists():
                    raise Stale(f"there is no {cut.file}")
                files[path] = path.read_text()
            files[path] = cut.applied(files[path])
        return files


def _lines(source: str) -> Iterator[tuple[int, str]]:
    place = 0
    for line in source.splitlines(keepends=True):
        yield place, line.rstrip("\n")
        place += len(line)


def _opens(line: str, within: str) -> bool:
    rest = line.strip().removeprefix(within)
    return (line.strip() != rest and not rest[:1].isalnum() and not rest.startswith("_")) or line.strip() == within


def _ends(line: str, opening: str) -> bool:
    """A statement of a .sql file lasts until the next one; all else as far as it is indented."""
    if opening.startswith("-- name:"):
        return line.startswith("-- name:")
    return bool(line.strip()) and _indent(line) <= _indent(opening) and not line.lstrip().startswith(")")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
