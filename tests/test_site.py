"""The docs as a site: what `make docs` builds has every page and no broken link, and loads nothing from elsewhere."""

import importlib.util
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import tasklib
from tests.pages import ALL_PAGES, ROOT

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
LAZY = ("mermaid", "glightbox", "pyodide")
"""The theme's script loads what these classes need from elsewhere, on pages that have them."""


class Read(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.ids: set[str] = set()
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        self.classes.update(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in LOADING and LOADING[tag] in found and found.get("rel") != "canonical":
            self.loads.add(found[LOADING[tag]])


@cache
def read(page: Path) -> Read:
    return Read(page.read_text())


def test_the_site(tmp_path: Path):
    """All of it in one test: a build takes seconds, and every test process would make its own."""
    builder = load_builder()
    site = builder.build(tmp_path)
    pages = builder.listed()
    check_every_page_is_listed_and_there(site, {page.file for page in pages})
    check_links_and_anchors_lead_somewhere(site)
    check_pages_load_nothing_from_elsewhere(site)
    check_what_is_for_the_tests_is_not_shown(site)
    check_llms_txt_lists_the_pages_as_markdown(site, [page.file for page in pages])
    assert {f"tasklib.{name}" for name in tasklib.__all__} <= read(site / "api.html").ids
    assert {"__palette_0", "__palette_1"} <= read(site / "index.html").ids, "light and dark"


def load_builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site_build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_every_page_is_listed_and_there(site: Path, listed: set[str]) -> None:
    assert listed == {page.name for page in ALL_PAGES if page.name not in ("README.md", "index.md")}
    for name in {*listed, "index.md", "api.md"}:
        page = read((site / name).with_suffix(".html"))
        assert any(link.endswith("alerts.html") for link in page.links), f"{name} has no navigation"
    found = json.loads((site / "search.json").read_text())
    locations = {item["location"].partition("#")[0] for item in found["items"]}
    assert {name.replace(".md", ".html") for name in listed} <= locations


def check_links_and_anchors_lead_somewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        for link in read(page).links | read(page).loads:
            if re.match(r"[a-z]+:", link) or page.name == "404.html":
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_relative_to(site), f"{page.name}: {link}"
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or target.suffix != ".html" or anchor in read(target).ids, f"{page.name}: {link}"


def check_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        found = read(page)
        assert not {each for each in found.loads if re.match(r"([a-z]+:)?//", each)}, page.name
        assert not found.classes.intersection(LAZY), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text()), sheet.name


def check_what_is_for_the_tests_is_not_shown(site: Path) -> None:
    for page in site.glob("*.html"):
        assert "<!-- run" not in page.read_text(), page.name
        assert "```" not in re.sub(r"<code>.*?</code>", "", page.read_text()), f"{page.name}: a fence that is no block"


def check_llms_txt_lists_the_pages_as_markdown(site: Path, listed: list[str]) -> None:
    text = (site / "llms.txt").read_text()
    assert text.startswith("# tasklib\n\n> ")
    linked = re.findall(r"\]\((.+?)\): .+", text)
    assert linked == listed
    for name in linked:
        assert (site / name).read_text().startswith("# "), name
