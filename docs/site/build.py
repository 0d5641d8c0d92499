"""Builds docs/ as a site: `make docs`. The pages are those of the repository; this adds what only a site has.

    build/docs/pages    the Markdown, as the generator takes it
    build/docs/site     the site: search, light and dark, the API's reference, llms.txt; a page loads nothing from
                        elsewhere

The generator is Zensical: Material for MkDocs, which it takes the place of, ends in May 2027. Its version is pinned, as
it is young and moves fast.

The order of the pages is that of docs/index.md, which lists them in groups.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import tasklib

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
ROOT = DOCS.parent
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages that lie above docs/."""

_GROUP = re.compile(r"^## (.+)$")
_PAGE = re.compile(r"^- \[(.+?)\]\((.+?\.md)\): (.+)$")
_FENCE_FILE = re.compile(r"^(```\w+) file=(\S+)$", re.MULTILINE)
_FENCE_NOTE = re.compile(r"^(```\w+) (?!title=).*$", re.MULTILINE)
_HIDDEN = re.compile(r"^<!-- (?:run$.*?^|files of .*?)-->\n\n?", re.MULTILINE | re.DOTALL)
_DRAWING = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MOVE = re.compile(r"^ +(\w+) --> (\w+): (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


class Page(NamedTuple):
    group: str
    title: str
    file: str
    about: str


def listed() -> list[Page]:
    """The pages in the order of docs/index.md."""
    group, found = "", []
    for line in (DOCS / "index.md").read_text().splitlines():
        if heading := _GROUP.match(line):
            group = heading[1]
        elif page := _PAGE.match(line):
            found.append(Page(group, page[1], page[2].removeprefix("../"), page[3]))
    return found


def write_pages(pages: Path) -> None:
    shutil.copytree(DOCS / "images", pages / "images")
    shutil.copy(HERE / "site.css", pages)
    for source in (*DOCS.glob("*.md"), *(ROOT / name for name in BESIDE)):
        (pages / source.name).write_text(as_page(source))
    (pages / "api.md").write_text(api_page())


def as_page(source: Path) -> str:
    """The Markdown without what is for the tests alone, and with links to what is there in a site."""
    text = _HIDDEN.sub("", source.read_text())
    text = _FENCE_FILE.sub(r'\1 title="\2"', text)
    text = _FENCE_NOTE.sub(r"\1", text)
    text = _DRAWING.sub(lambda drawing: _as_table(drawing[1]), text)
    return _LINK.sub(lambda link: _in_site(source, link[1], link[2]), text)


def _as_table(drawing: str) -> str:
    """The moves of a state diagram: to draw it in the browser would need a script from elsewhere."""
    rows = [f"| {start} | {end} | {when} |" for start, end, when in _MOVE.findall(drawing)]
    return "\n".join(["| from | to | by |", "|---|---|---|", *rows])


def _in_site(source: Path, text: str, target: str) -> str:
    path, _, anchor = target.partition("#")
    if not path or ":" in target:
        return f"[{text}]({target})"
    found = (source.parent / path).resolve()
    if found.suffix == ".md" and (found.parent == DOCS or found.name in BESIDE):
        return f"[{text}]({found.name}{'#' if anchor else ''}{anchor})"
    if found == ROOT / "README.md":
        return f"[{text}](index.md)"
    if found.is_relative_to(DOCS):
        return f"[{text}]({found.relative_to(DOCS).as_posix()})"
    return f"{text} (`{found.relative_to(ROOT).as_posix()}` in the repository)"  # sources are no part of the site


def api_page() -> str:
    """Every public name, from its docstring and its annotations."""
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in tasklib.__all__:
        value = getattr(tasklib, name)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        kinds["Errors" if is_error else "Classes" if isinstance(value, type) else "Functions"].append(name)
    parts = [
        "# API",
        "",
        "Every public name, by its docstring. With tables and examples: [the reference](reference.md).",
    ]
    for kind, names in kinds.items():
        parts += ["", f"## {kind}"]
        for name in sorted(names, key=str.lower):
            parts += ["", f"::: tasklib.{name}"]
    return "\n".join(parts) + "\n"


def write_settings(file: Path) -> None:
    groups: dict[str, list[dict[str, str]]] = {}
    for page in listed():
        groups.setdefault(page.group, []).append({page.title: page.file})
    groups["Look it up"].insert(1, {"API": "api.md"})
    nav = [{"tasklib": "index.md"}, *({group: pages} for group, pages in groups.items())]
    # A list of tables in one line is the same in JSON but for the colons.
    inline = json.dumps(nav, ensure_ascii=False).replace('": ', '" = ')
    settings = (HERE / "zensical.toml").read_text().replace("[project]\n", f"[project]\nnav = {inline}\n", 1)
    code = f'[project.plugins.mkdocstrings.handlers.python]\npaths = ["{ROOT / "src"}"]\n'
    file.write_text(f"{settings}\n{code}")


def write_llms(pages: Path, site: Path) -> None:
    """llms.txt: what there is, for those who read with a model; the pages beside it as Markdown."""
    lines = ["# tasklib", "", "> A durable task queue for Python: `pip install tasklib-queue`, `import tasklib`.", ""]
    group = None
    for page in listed():
        if page.group != group:
            group = page.group
            lines += [*([""] if lines[-1] else []), f"## {group}", ""]
        lines.append(f"- [{page.title}]({page.file}): {page.about}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n")
    for source in pages.glob("*.md"):
        if source.name != "api.md":  # that one is directives
            shutil.copy(source, site)


def build(work: Path) -> Path:
    """The site, in that folder. A link that leads nowhere is an error."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    write_pages(work / "pages")
    write_settings(work / "zensical.toml")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    subprocess.run(command, cwd=work, check=True, env={**os.environ, "NO_COLOR": "1"})
    write_llms(work / "pages", work / "site")
    return work / "site"


if __name__ == "__main__":
    sys.stdout.write(f"{build(ROOT / 'build' / 'docs') / 'index.html'}\n")
