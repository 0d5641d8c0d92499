"""The pages of the documentation and what stands on them: text, links, and blocks of code."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]

_FENCE = re.compile(r"^```(\S*) *(.*)$")
_HIDDEN = "<!-- run"
_HEADING = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
_FILES_OF = re.compile(r"^<!-- files of (\S+\.md) -->$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block. What follows the language on the fence's line says what to do with it:

    python             runs, in one namespace with the other blocks of its page
    python no-run      only has to compile: a fragment, or code for another machine
    python file=x.py   is written to that file, beside the others of its page, and imported
    sql                runs on PostgreSQL
    bash               each `tasklib` command in it must be one that the command line takes

    Code in a comment `<!-- run ... -->` runs as a Python block does and is not shown: what a reader need not see.
    `<!-- files of other.md -->` writes that page's files first, but for its tests: the page goes on from there.
    """

    page: Path
    line: int
    language: str
    note: str
    text: str

    @property
    def runs(self) -> bool:
        return self.language == "python" and not self.note

    @property
    def file(self) -> str | None:
        return self.note.removeprefix("file=") if self.note.startswith("file=") else None

    @property
    def source(self) -> str:
        """The text at its own line of the page, so that tracebacks lead there."""
        return "\n" * self.line + self.text


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[int, str, str] | None = None
    held: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if opened is not None:
            if line == ("```" if opened[1] != "hidden" else "-->"):
                language, note = ("python", "") if opened[1] == "hidden" else opened[1:]
                found.append(Block(page, opened[0], language, note, "\n".join(held)))
                opened, held = None, []
            else:
                held.append(line)
        elif line.rstrip() == _HIDDEN:
            opened = (number, "hidden", "")
        elif fence := _FENCE.match(line):
            opened = (number, fence[1], fence[2].strip())
    assert opened is None, f"{page.name}:{opened and opened[0]}: a block that never ends"
    return found


def files_before(page: Path) -> list[Block]:
    """Files of other pages that this one goes on from."""
    named = (page.parent / name for name in _FILES_OF.findall(page.read_text()))
    files = [block for each in named for block in blocks(each) if block.file is not None]
    return [block for block in files if not Path(block.file or "").name.startswith("test_")]


def prose(page: Path) -> str:
    """The page without its blocks."""
    return re.sub(r"^```.*?^```$|^<!-- run$.*?^-->$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """What `#...` may say on this page, as GitHub makes it of the headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.strip().replace(" ", "-") for heading in plain}


def code_spans(page: Path) -> set[str]:
    return set(_CODE_SPAN.findall(prose(page)))


def commands(page: Path) -> list[tuple[int, list[str]]]:
    """Every command line in the page's shell blocks, as words, with the line it is on."""
    found: list[tuple[int, list[str]]] = []
    for block in blocks(page):
        if block.language == "bash":
            lines = block.text.replace("\\\n", " ").splitlines()
        elif block.language == "ini":  # a systemd unit
            lines = [line.partition("=")[2] for line in block.text.splitlines() if line.startswith("ExecStart=")]
        else:
            continue
        for line in lines:
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # variables set for this command
                words = words[1:]
            found += [(block.line, command) for command in _split(words)]
    return found


def _split(words: list[str]) -> list[list[str]]:
    """A pipe or a chain is several commands."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("|", "&&", "||", ";", "&"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]
