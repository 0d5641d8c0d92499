"""Exit codes: one table, printed by `tasklib --help`."""

from __future__ import annotations

from enum import IntEnum

from tasklib.core.errors import (
    TRANSIENT,
    InvalidInput,
    MissingExtra,
    SchemaMismatch,
    StoreRefused,
    Unsupported,
    WorkerExhausted,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 3
    REFUSED = 4
    EXHAUSTED = 5
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.FAILED: "failed: no such task, its state does not allow it, an error found",
    Exit.USAGE: "bad usage, settings or task module; nothing was done",
    Exit.UNAVAILABLE: "the database is not available now; trying again may help",
    Exit.REFUSED: "the database refused: wrong password, missing, another schema",
    Exit.EXHAUSTED: "a worker's slots are all taken by tasks that do not end; start it again",
    Exit.INTERRUPTED: "interrupted",
}

_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (InvalidInput, Exit.USAGE),
    (MissingExtra, Exit.USAGE),
    (Unsupported, Exit.USAGE),
    *((error, Exit.UNAVAILABLE) for error in TRANSIENT),
    (SchemaMismatch, Exit.REFUSED),
    (StoreRefused, Exit.REFUSED),
    (WorkerExhausted, Exit.EXHAUSTED),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)
"""The first that fits; everything else is a plain failure."""

LASTING = frozenset({Exit.USAGE, Exit.REFUSED})
"""Codes that a second try would only repeat."""


def code_of(error: BaseException) -> Exit:
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)
