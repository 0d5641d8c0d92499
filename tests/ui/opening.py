"""How long the dashboard takes to open a large flow: `python -m tests.ui.opening 10000`.

From the click on a link to the drawing with all its nodes, in Chromium, the server's part included, seven times for
each shape, on SQLite and on PostgreSQL.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Page, async_playwright, expect

from tests.server.serving import serving
from tests.servers import PostgresServer
from tests.ui.chromium import find_or_install
from tests.ui.site import TOKEN, Site

ROUNDS = 7
OPENED = """
    flow => new Promise(done => {
        const begun = performance.now()
        const look = () => document.querySelector('[data-node]')
            ? requestAnimationFrame(() => done(performance.now() - begun)) : requestAnimationFrame(look)
        document.querySelector(`[data-flow="${flow}"] a`).click()
        look()
    })
"""

Tasks = list[dict[str, Any]]


def fan(size: int) -> Tasks:
    """One, then all the others but one, which waits for the first of them."""
    parts = [{"ref": f"{n}", "type": "part", "after": ["first"]} for n in range(size - 2)]
    return [{"ref": "first", "type": "first"}, *parts, {"ref": "last", "type": "last", "after": [f"{parts[0]['ref']}"]}]


def chains(size: int) -> Tasks:
    """Of five steps each, side by side."""
    return [{"ref": f"{n}", "type": f"step {n % 5}", **({"after": [f"{n - 1}"]} if n % 5 else {})} for n in range(size)]


def kinds(size: int) -> Tasks:
    """Layers of a hundred tasks, each of a type of its own."""
    return [
        {"ref": f"{n}", "type": f"type {n // 100}", **({"after": [f"{n - 100}"]} if n >= 100 else {})}
        for n in range(size)
    ]


def urls(folder: Path) -> Iterator[tuple[str, str]]:
    yield "SQLite", f"sqlite:///{folder}/tasks.db"
    with PostgresServer() as server:
        yield "PostgreSQL", server.dsn


async def opened(page: Page, site: Site, flow: str) -> float:
    await page.goto(f"{site.url}/flows")
    await expect(page.locator(f'[data-flow="{flow}"]')).to_be_visible()
    await page.wait_for_load_state("networkidle")
    milliseconds: float = await page.evaluate(OPENED, flow)
    return milliseconds


async def main(size: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        async with async_playwright() as playwright:
            found = find_or_install(Path(playwright.chromium.executable_path))
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=found, args=arguments)
            for engine, url in urls(Path(scratch)):
                env = {"TASKLIB_DATABASE_URL": url, "TASKLIB_TOKEN": TOKEN}
                folder = Path(scratch) / engine
                folder.mkdir()
                with serving(folder, env=env) as server:
                    site = Site(server.url, folder, env)
                    page = await browser.new_page()
                    await site.sign_in(page)
                    for shape in (fan, chains, kinds):
                        tasks = [{"payload": {}, **each} for each in shape(size)]
                        flow = site.api("POST", "/api/flows", {"name": shape.__name__, "tasks": tasks})["id"]
                        times = [await opened(page, site, flow) for _ in range(ROUNDS)]
                        nodes = await page.locator("[data-node]").count()
                        figures = f"median {median(times):5.0f} ms, worst {max(times):5.0f} ms"
                        print(f"{engine:<12}{shape.__name__:<8}{size:,} tasks, {nodes:3} nodes: {figures}", flush=True)
                    await page.close()
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
