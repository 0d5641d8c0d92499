"""The queue over HTTP: a REST API, live events, metrics and health, to run alone or inside another application."""

from __future__ import annotations

from tasklib.core.errors import MissingExtra

try:
    import fastapi as _fastapi
except ImportError:
    raise MissingExtra("server", "fastapi", "the HTTP API") from None
else:
    del _fastapi

from tasklib.server.app import create_app
from tasklib.server.settings import ServerSettings

__all__ = ["ServerSettings", "create_app"]
