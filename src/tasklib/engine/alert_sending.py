"""Sends a message to the operator's webhook or command, each time in a process of its own that is ended in time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasklib.core.redact import mask_text
from tasklib.engine.alert_file import AlertFile

_WEBHOOK = str(Path(__file__).with_name("webhook.py"))
"""Not imported: what it needs would cost every program that imports tasklib."""
_KEPT = 2000
"""The last bytes of what it says on stderr."""
_LAST_WORDS_SECONDS = 1.0
"""What it started may hold its stderr open for ever."""


async def send(target: AlertFile, message: Mapping[str, Any]) -> str | None:
    """What went wrong; None: it arrived."""
    body = json.dumps(message, ensure_ascii=True)
    if target.command is not None:
        return await _run(target.command, body, target.timeout)
    order = {"url": target.webhook, "headers": target.headers, "body": body, "seconds": target.timeout}
    # -P and -S: it finds the standard library, and nothing else.
    return await _run((sys.executable, "-P", "-S", _WEBHOOK), json.dumps(order), target.timeout)


async def _run(argv: tuple[str, ...], stdin: str, seconds: float) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return f"it cannot be started: {getattr(error, 'strerror', None) or type(error).__name__}"
    said = asyncio.create_task(_read(process))
    try:
        async with asyncio.timeout(seconds):
            await _tell(process, stdin)
            code = await process.wait()
        await asyncio.wait({said}, timeout=_LAST_WORDS_SECONDS)
    except BaseException as error:
        with suppress(ProcessLookupError):  # all of it has ended
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(error, TimeoutError):
            return f"it took longer than {seconds:g} s"
        raise
    finally:
        said.cancel()
    if code == 0:
        return None
    text = said.result() if said.done() and not said.cancelled() else ""
    return text or (f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}")


async def _tell(process: Process, stdin: str) -> None:
    assert process.stdin is not None
    process.stdin.write(stdin.encode())
    with suppress(OSError):  # it need not read it
        await process.stdin.drain()
    process.stdin.close()


async def _read(process: Process) -> str:
    """The last line it says. All is read, so that it is not held up."""
    assert process.stderr is not None
    kept = b""
    while chunk := await process.stderr.read(4096):
        kept = (kept + chunk)[-_KEPT:]
    lines = kept.decode(errors="replace").strip().splitlines()
    return mask_text(lines[-1])[:200] if lines else ""
