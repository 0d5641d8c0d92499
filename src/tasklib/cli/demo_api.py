"""The HTTP API beside the demo: `tasklib serve` in a process of its own, on this machine only."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from tasklib.cli.serve import DEFAULT_PORT
from tasklib.cli.workerprocess import Lifeline, end
from tasklib.core.errors import TaskLibError

_START_SECONDS = 20.0
_STOP_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
_ANY_PORT = 0

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A proxy of the environment cannot know what runs on this machine."""


class ApiFailed(TaskLibError):
    code = "demo_failed"


@dataclass(frozen=True)
class Api:
    """A server that answers."""

    url: str
    token: str = field(repr=False)

    @property
    def login(self) -> str:
        return f"{self.url}/login#token={self.token}"

    @property
    def example(self) -> str:
        return f'curl -H "Authorization: Bearer {self.token}" {self.url}/api/tasks/stats'

    async def completed(self) -> int:
        """How many tasks are completed, by the API's word."""
        try:
            stats = await self.get("/api/tasks/stats")
            return int(stats["completed"])
        except (OSError, ValueError, KeyError) as error:
            raise ApiFailed(f"the HTTP API does not tell its counts: {error}") from error

    async def get(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})

        def ask() -> Any:
            with _opener.open(request, timeout=_REQUEST_SECONDS) as answer:
                return json.load(answer)

        return await asyncio.to_thread(ask)


def is_installed() -> bool:
    return all(find_spec(package) is not None for package in ("fastapi", "uvicorn"))


@asynccontextmanager
async def serving(database_url: str, log_file: Path) -> AsyncIterator[Api]:
    """Until the block ends, or this process, however it does."""
    token = secrets.token_urlsafe(32)
    async with AsyncExitStack() as stack:
        lifeline = Lifeline()
        stack.callback(lifeline.close)
        log = stack.enter_context(log_file.open("wb"))
        # In the environment, not on the command line: that one every user of the machine can read.
        env = {**os.environ, "TASKLIB_DATABASE_URL": database_url, "TASKLIB_TOKEN": token}
        try:
            async with asyncio.timeout(_START_SECONDS):
                url = await _start(stack, DEFAULT_PORT, lifeline, env, log)
                if url is None:  # most likely the port is taken
                    url = await _start(stack, _ANY_PORT, lifeline, env, log)
                if url is None:
                    last = log_file.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
                    raise ApiFailed(f"the HTTP API did not start: {last[0]}")
                api = Api(url, token)
                await _answers(api)
        except TimeoutError:
            raise ApiFailed(f"no HTTP API after {_START_SECONDS:.0f} s; its log is {log_file}") from None
        yield api


async def _start(
    stack: AsyncExitStack, port: int, lifeline: Lifeline, env: dict[str, str], log: IO[bytes]
) -> str | None:
    """The address it listens on; None if it ended before. Told by the server itself: no other can take the port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tasklib.cli", "serve", "--json"),
        *("--host", "127.0.0.1", "--port", str(port), "--lifeline", str(lifeline.reading)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        env=env,
        pass_fds=(lifeline.reading,),
        start_new_session=True,
    )
    stack.push_async_callback(end, process, _STOP_SECONDS)
    assert process.stdout is not None
    said = await process.stdout.readline()
    return str(json.loads(said)["url"]) if said else None


async def _answers(api: Api) -> None:
    while True:
        try:
            await api.get("/healthz")
            return
        except (OSError, ValueError):
            await asyncio.sleep(0.05)
