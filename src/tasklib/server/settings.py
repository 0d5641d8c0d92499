"""What a server is told about itself, beside the queue it serves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasklib.core.errors import InvalidConfig

TOKEN_VARIABLE = "TASKLIB_TOKEN"
ENVIRONMENT_VARIABLE = "TASKLIB_ENVIRONMENT"
SHORTEST_TOKEN = 16
LONGEST_ENVIRONMENT = 40
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def token_from_environment() -> str | None:
    """The admin token that the environment gives, if it does. An empty one is none."""
    return os.environ.get(TOKEN_VARIABLE) or None


def name_from_environment() -> str | None:
    """What the environment calls itself, if it does."""
    return os.environ.get(ENVIRONMENT_VARIABLE) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    token: str | None = field(default_factory=token_from_environment, repr=False)
    """An admin token beside those kept in the database."""
    token_label: str = TOKEN_VARIABLE
    """What the audit trail calls whoever uses it."""
    authenticate: bool = True
    """False lets everybody do everything."""
    allowed_hosts: Sequence[str] = LOOPBACK
    """Values of the Host header, ports aside, that are answered; `*` is any."""
    redact: Callable[[Any], Any] | None = None
    """Masks secrets in payloads, results and tags before they are shown. None: whatever lies under the keys that the
    queue's settings name."""
    max_body_bytes: int = 1024 * 1024
    request_seconds: float = 30.0
    max_streams: int = 50
    """Live streams at once; more are refused with 429."""
    stream_seconds: float = 300.0
    """A live stream ends after this; browsers connect again, and must then still be allowed to."""
    submit_rate: float | None = None
    """Submits a second that one token may make; None: as many as it likes."""
    session_seconds: float = 12 * 3600.0
    environment: str | None = field(default_factory=name_from_environment)
    """What people call this queue (production, staging): pages show it as a badge."""

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise InvalidConfig(
                f"{TOKEN_VARIABLE}: a token has at least {SHORTEST_TOKEN} characters", field=TOKEN_VARIABLE
            )
        for name in ("max_body_bytes", "request_seconds", "max_streams", "stream_seconds", "session_seconds"):
            if not getattr(self, name) > 0:
                raise InvalidConfig(f"{name}: must be more than 0", field=name)
        if self.environment is not None and not 0 < len(self.environment) <= LONGEST_ENVIRONMENT:
            raise InvalidConfig(f"environment: 1 to {LONGEST_ENVIRONMENT} characters", field="environment")
        if self.submit_rate is not None and not 0 < self.submit_rate <= 1e6:
            raise InvalidConfig("submit_rate: must be more than 0 and at most a million", field="submit_rate")
