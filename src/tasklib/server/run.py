"""Runs the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tasklib.server.service import Service

GRACE_SECONDS = 10
"""How long requests may go on after a signal to stop."""


async def run(app: FastAPI, listening: socket.socket, *, root_path: str = "") -> None:
    """Returns after SIGTERM or SIGINT, once the requests under way are answered; a second signal leaves at once."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        root_path=root_path,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    await _Server(config, app.state.tasklib).serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends its live streams when told to stop, and does not die of the signal in the end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _told(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.feed.end()
