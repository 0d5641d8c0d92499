"""The dashboard as a person uses it: a real Chromium, a real server, a real worker, on SQLite and PostgreSQL.

A server and a worker are shared by all tests of an engine; each test finds their queue empty, no control set and nobody
signed in. Those that need other settings ask for `serve` and get processes of their own.

Tests are `async def`, ask for `page` and `site`, and begin with `await site.sign_in(page)`. A message in the browser's
console that nobody expected fails the test: scripts that broke, requests that failed, violations of the content
security policy.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.databases import new_schema
from tests.ui.chromium import find_or_install
from tests.ui.console import Console
from tests.ui.emptying import empty
from tests.ui.site import Site, start_site

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PATIENCE_MS = 15_000

expect.set_options(timeout=PATIENCE_MS)

LIVELY = {"TASKLIB_HEARTBEAT_SECONDS": "2"}
"""What a worker tells and hears with its heartbeats shows soon."""

Serve = Callable[..., Site]
Axe = Callable[[Page], Awaitable[None]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all of them: a browser belongs to the loop that it was started in."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("asyncio") is not None:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """The test runs once on each engine, and all tests on one before those on the next."""
    name: str = request.param
    return name


@pytest.fixture
def backend_url(engine_name: str, request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{engine_name}_url")
    return url


@pytest.fixture
def serve(backend_url: str, tmp_path: Path) -> Iterator[Serve]:
    """`serve(worker=True, mount="", environment=None)`: `tasklib serve` and `tasklib worker` as processes."""
    with ExitStack() as stack:

        def start(**options: Any) -> Site:
            return stack.enter_context(start_site(tmp_path, backend_url, **options))

        yield start


@pytest.fixture(scope="session")
def standing_site(
    engine_name: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as stack:
        url = f"sqlite:///{folder}/tasks.db"
        if engine_name == "postgres":
            url = stack.enter_context(new_schema(request.getfixturevalue("postgres_server")))
        yield stack.enter_context(start_site(folder, url, settings=LIVELY))


@pytest.fixture
def site(standing_site: Site, tmp_path: Path) -> Iterator[Site]:
    """A server and a worker that has the task types of `tests/ui/jobs.py`, with nothing in the queue."""
    empty(standing_site.database_url)
    yield replace(standing_site, folder=tmp_path)
    (tmp_path / "go").touch()  # a task that a failed test left running gives its slot back


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        found = find_or_install(Path(playwright.chromium.executable_path))
        # As root Chromium cannot use its sandbox; what it opens here is our own.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    await context.close()


@pytest.fixture
def console(context: BrowserContext) -> Iterator[Console]:
    """What the browser complained of. `console.expect(pattern)` lets one kind of message pass, and requires it."""
    console = Console()
    context.on("console", console.hear)
    context.on("weberror", console.hear_error)
    yield console
    console.explain_miss()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext, console: Console) -> Page:
    """A tab of a browser that has never been here."""
    return await context.new_page()


@pytest.fixture
def axe() -> Axe:
    """`await axe(page)`: no serious violation of the rules for accessibility, by axe-core."""
    source = (ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js").read_text()

    async def check(page: Page) -> None:
        await page.evaluate(source)
        found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{each['id']} ({each['impact']}): {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        assert not serious, f"{page.url}:\n" + "\n".join(serious)

    return check
