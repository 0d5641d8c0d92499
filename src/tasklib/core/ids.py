"""Task ids: UUID version 7, so that ids sort by the time they were made."""

from __future__ import annotations

from uuid import UUID

from tasklib.core.errors import InvalidInput

_LATEST = (1 << 48) - 1


def uuid7(unix_ms: int, sequence: int, entropy: int) -> UUID:
    """A UUIDv7 from 48 bits of milliseconds, 12 bits of sequence within one, and 62 bits of entropy."""
    value = (
        (min(unix_ms, _LATEST) << 80) | (7 << 76) | ((sequence & 0xFFF) << 64) | (2 << 62) | (entropy & ((1 << 62) - 1))
    )
    return UUID(int=value)


def as_task_id(value: UUID | str) -> UUID:
    """Every call that takes an id takes its text form too."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise InvalidInput(f"task_id must be a UUID or its text form, got {value!r:.80}", field="task_id")
