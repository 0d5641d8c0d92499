"""Findings that every store words alike. What they rest on each reads in its own way."""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.values import Finding

LEASE_ENDS_SOON = 10.0
"""Seconds. A worker that lives extends its leases long before."""
SEEN_LATELY = 60.0
"""Seconds since a worker was heard of, whatever the settings of the one who asks."""
_CLOCKS_AGREE = 2.0
_NAMES_SHOWN = 10


def clock(ahead: float, whose: str) -> Finding:
    """`ahead`: so many seconds this machine's clock is before the one that decides."""
    message = f"this machine's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the {whose}'s"
    if abs(ahead) < _CLOCKS_AGREE:
        return Finding("ok", "clock", message)
    return Finding("warning", "clock", message, f"the {whose}'s clock decides; set this one right for readable logs")


def no_tables() -> Finding:
    return Finding("warning", "schema", "there are no tables yet", "the first use makes them, or: tasklib migrate")


def wrong_schema(error: SchemaMismatch) -> Finding:
    """What the error says, and behind its semicolon what to do."""
    message, _, advice = str(error).partition("; ")
    return Finding("error", "schema", message, advice)


def unhandled(names: Sequence[str]) -> Finding:
    """`names` are the task types that have something due and no live worker."""
    if not names:
        return Finding("ok", "workers", "every task type that waits has a live worker")
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    advice = "start a worker that has them: tasklib worker MODULE"
    return Finding("warning", "workers", f"tasks wait that no live worker handles: {shown}", advice)


def leases(expired: int, soon: int) -> Finding:
    if expired:
        message = f"{expired} running tasks have an expired lease"
        return Finding("warning", "leases", message, "workers expire them within seconds: is one running?")
    if soon:
        message = f"{soon} running tasks have a lease that ends within {LEASE_ENDS_SOON:g} seconds"
        return Finding("warning", "leases", message, "are their workers alive, and do they reach the database?")
    return Finding("ok", "leases", "none has expired or is about to")
