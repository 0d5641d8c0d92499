"""What stores keep of an alert rule. By itself, as the rules are models of Pydantic's, which only few programs need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AlertState(StrEnum):
    OK = "ok"
    PENDING = "pending"
    """It holds, not yet for long enough."""
    FIRING = "firing"
    CLEARING = "clearing"
    """It fired and no longer holds, not yet for long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A rule's state, as it is kept for the whole fleet. Written under its version, so that one of those who check
    makes each step, and tells of it."""

    name: str
    state: str
    since: datetime
    text: str = ""
    """What was found when it fired, or was over."""
    fired_at: datetime | None = None
    """The latest time it did."""
    over_at: datetime | None = None
    """When that was over; None: it is not."""
    told: bool = True
    """Whether the latest message has arrived. A later one takes the place of one that has not."""
    tries: int = 0
    try_at: datetime | None = None
    """When it is tried again."""
    version: int = 0

    def is_due(self, now: datetime) -> bool:
        """Whether its message is to be sent now."""
        return not self.told and (self.try_at is None or self.try_at <= now)
