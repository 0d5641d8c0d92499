"""Goal 5: POST and GET of one task over real HTTP, 64 clients at once, beside handlers that answer a constant."""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import plan, servers
from benchmarks.cases import Run, Step
from benchmarks.ours.server import TOKEN
from benchmarks.turn import Entry, TurnFailed, workers

CLIENTS = 64
BODY = {"type": "noop", "payload": {"number": 1}}


def rest(run: Run, number: int) -> Iterator[Step]:
    """Goal 5: the REST API with 64 clients."""
    yield Step("REST", lambda: _rest(run, number, 0.6 if run.quick else 5.0))


def _rest(run: Run, number: int, seconds: float) -> None:
    port = servers.free_port()
    entry = Entry(plan.OURS, "ours.server:Server", "postgres", plan.QUICK_SLOW, options={"port": port})
    with ExitStack() as stack:
        url = stack.enter_context(run.stage.store("postgres"))
        log = stack.enter_context(tempfile.TemporaryFile("w+b"))
        stack.enter_context(workers(entry, url, run.stage.folder / "none", log))
        try:
            rates = asyncio.run(_load(port, seconds))
        except (OSError, TurnFailed) as error:
            run.book.fail("REST", f"round {number}: {error}")
            return
        for name, rate in rates.items():
            run.book.note(f"REST, {name}", "rate", number, rate)


async def _load(port: int, seconds: float) -> dict[str, float]:
    await _until_up(port)
    _, answer = await _request(*await asyncio.open_connection("127.0.0.1", port), "POST", "/api/tasks", BODY)
    path = f"/api/tasks/{json.loads(answer)['id']}"
    asked = {
        "POST": ("POST", "/api/tasks", BODY),
        "constant POST": ("POST", "/api/constant", BODY),
        "GET": ("GET", path, None),
        "constant GET": ("GET", "/api/constant", None),
    }
    counts = dict.fromkeys(asked, 0.0)
    # In short turns, so that all of them meet the same machine.
    for _ in range(4):
        for name, request in asked.items():
            counts[name] += await _rate(port, seconds / 4, *request) / 4
    return counts


async def _rate(port: int, seconds: float, method: str, path: str, body: object) -> float:
    until = time.perf_counter() + seconds
    done = 0

    async def client() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            status, answer = await _request(reader, writer, method, path, body)
            if status not in (200, 201):
                raise TurnFailed(f"{method} {path}: {status} {answer[:200]!r}")
            done += 1
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return done / (time.perf_counter() - began)


async def _request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: object
) -> tuple[int, bytes]:
    """A few lines of HTTP, because a client library would take more time than the server."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    if content:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    writer.write(head.encode() + b"\r\n" + content)
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(answer.split(b" ", 2)[1]), await reader.readexactly(length)


async def _until_up(port: int) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
        except OSError:
            if time.monotonic() > give_up:
                raise TurnFailed("the server did not start") from None
            await asyncio.sleep(0.05)
        else:
            return
