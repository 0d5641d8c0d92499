"""How many bytes a viewer of the dashboard pulls: the first load, a list of huge tasks, the stream.

Counted are the bytes of the answers as a browser gets them, compressed. The viewer does what the page does: it holds
the stream open, and reads the list anew, with the tag that it has, once a second. Alone:

    python -m benchmarks.wire --seconds 10

Beside the code of another revision, which is taken out of the repository and built for this (needs git and the
development tools):

    python -m benchmarks.wire --before v0.1
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.revision import ROOT, take_out
from benchmarks.stage import remove_sqlite
from tasklib import Config
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app, dashboard

TOKEN = "a-token-for-the-benchmark"
HUGE = 900_000
"""Bytes of a payload."""
TASKS, TYPES = 60, 315
EVERY_SECONDS = 0.2
"""A task comes so often while the viewer looks."""
VIEWER = "a viewer of huge tasks"
FIRST_LOAD = "first load of the list"
LIMIT_KB = 100.0
FIRST_LOAD_KB = 200.0


@dataclass(frozen=True)
class Wire:
    what: str
    bytes: int
    seconds: float | None = None
    """None: once."""

    @property
    def shown(self) -> str:
        each = self.bytes if self.seconds is None else self.bytes / self.seconds
        return f"{each / 1000:,.1f} KB{'' if self.seconds is None else '/s'}"


class Counted:
    """Around the application: how many bytes of answers to a reader left it, by path."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.bytes: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def counting(message: Any) -> None:
            if message["type"] == "http.response.body" and scope["method"] == "GET":
                self.bytes[scope["path"]] = self.bytes.get(scope["path"], 0) + len(message.get("body", b""))
            await send(message)

        await self.app(scope, receive, counting)


async def measure(url: str, seconds: float) -> list[Wire]:
    engine = Engine(Config(database_url=url))
    settings = ServerSettings(token=TOKEN, stream_seconds=seconds)
    app = Counted(create_app(engine, registry=Registry(), settings=settings))
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip, br"}
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers, timeout=60
        ) as client:
            await _fill(client)
            found = [Wire(FIRST_LOAD, await _first_load(app, client))]
            for what, query in (
                ("a list of 50 huge tasks", ""),
                ("the same, whole (fields=payload)", "&fields=payload"),
                ("the same, searched for a word", "&word=type_7"),
            ):
                app.bytes.clear()
                answer = await client.get(f"/api/tasks?limit=50{query}")
                if answer.status_code == 200:  # an older revision may not know it
                    found.append(Wire(what, sum(app.bytes.values())))
            app.bytes.clear()
            await _view(client, seconds)
            return [
                *found,
                Wire(f"the stream of {TYPES} types", app.bytes["/api/events"], seconds),
                Wire(VIEWER, sum(app.bytes.values()), seconds),
            ]
    finally:
        await engine.close()


async def _fill(client: httpx.AsyncClient) -> None:
    for number in range(max(TASKS, TYPES)):
        await _submit(client, number, HUGE if number >= TYPES - TASKS else 10)


async def _submit(client: httpx.AsyncClient, number: int, size: int) -> None:
    document = random.Random(number).randbytes(size // 2).hex()
    payload = {"order": number, "document": document}
    body = {"type": f"type_{number % TYPES}", "payload": payload, "options": {"tags": {"customer": number}}}
    (await client.post("/api/tasks", json=body)).raise_for_status()


async def _first_load(app: Counted, client: httpx.AsyncClient) -> int:
    """The page and everything that it loads before the list shows."""
    manifest = json.loads((dashboard.BUILT / "manifest.json").read_text())
    files = {file for key in ("index.html", "src/pages/tasks/tasks-page.tsx") for file in _needed(manifest, key)}
    app.bytes.clear()
    for path in ("/tasks", *(f"/{file}" for file in sorted(files))):
        (await client.get(path, headers={"Accept": "text/html,*/*"})).raise_for_status()
    return sum(app.bytes.values())


def _needed(manifest: dict[str, Any], key: str) -> Iterator[str]:
    yield manifest[key]["file"]
    yield from manifest[key].get("css", ())
    for imported in manifest[key].get("imports", ()):
        yield from _needed(manifest, imported)


async def _view(client: httpx.AsyncClient, seconds: float) -> None:
    """The stream, and the list as often as the page reads it: once a second while something changes."""
    tag = ""

    async def read() -> None:
        nonlocal tag
        answer = await client.get("/api/tasks?limit=50", headers={"If-None-Match": tag} if tag else {})
        tag = answer.headers.get("etag", "")

    async def list_page() -> None:
        while True:
            await read()
            await asyncio.sleep(1)

    async def traffic() -> None:
        number = TYPES
        while True:
            await _submit(client, number, HUGE)
            number += 1
            await asyncio.sleep(EVERY_SECONDS)

    others = [asyncio.create_task(list_page()), asyncio.create_task(traffic())]
    await client.get("/api/events")  # until it ends
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def table(found: list[Wire], before: list[Wire] | None = None) -> str:
    if before is None:
        rows = [f"| {each.what} | {each.shown} |" for each in found]
        return "\n".join(["| what a viewer pulls | |", "|---|--:|", *rows])
    was = {each.what: each.shown for each in before}
    rows = [f"| {each.what} | {was.get(each.what, '')} | {each.shown} |" for each in found]
    return "\n".join(["| what a viewer pulls | before | now |", "|---|--:|--:|", *rows])


def measure_before(revision: str, seconds: float) -> list[Wire]:
    """The same by the code of another revision, its dashboard included."""
    with tempfile.TemporaryDirectory(prefix="tasklib-before-") as folder:
        take_out(revision, Path(folder))
        subprocess.run([sys.executable, "ui/build.py"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.wire", "--json", "--seconds", str(seconds)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(Path(folder, "src"))},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    return [Wire(**each) for each in json.loads(answer)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes on the wire of one viewer of the dashboard.")
    parser.add_argument("--seconds", type=float, default=10, help="how long the viewer looks (default 10)")
    parser.add_argument("--before", metavar="REVISION", help="measure the code of this revision, too")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args()
    before = measure_before(given.before, given.seconds) if given.before else None
    folder = Path(tempfile.mkdtemp(prefix="tasklib-wire-"))
    try:
        found = asyncio.run(measure(f"sqlite:///{folder / 'wire.db'}", given.seconds))
    finally:
        remove_sqlite(folder / "wire.db")
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps([asdict(each) for each in found]) if given.json else table(found, before))


if __name__ == "__main__":
    main()
