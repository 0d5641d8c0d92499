"""What went wrong, in our words: whether to try again, and what to tell people."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import nats.errors

from tasklib.core.errors import StoreError, StoreFull, StoreRefused, StoreUnavailable

WRONG_SEQUENCE = (10071, 10164)
"""A compare-and-set that found another revision."""

_BATCH_UNKNOWN = (10176, 10202)
_BATCHES_IN_FLIGHT = (10210, 10211)
_NO_PEERS = 10005
"""Servers of the cluster are away, or have not come up yet."""
_NO_ROOM = (10023, 10028, 10047, 10077, 10122)
"""insufficient resources, account resources exceeded, insufficient storage, maximum bytes or messages exceeded."""

_MAX_BYTES = "maximum bytes exceeded"
_MAX_MESSAGES = "maximum messages exceeded"


class Again(Exception):
    """A call that did not get its answer: nobody knows whether it was carried out. It is looked up and tried again."""


class Conflict(Exception):
    """A compare-and-set that did not hold; nothing was written."""


def refusal(error: dict[str, Any]) -> Exception:
    """What a JetStream error is to us."""
    code, text = error.get("err_code", 0), str(error.get("description", ""))
    status = error.get("code", 0)
    if code in WRONG_SEQUENCE:
        return Conflict(text)
    if code in _NO_ROOM or _MAX_BYTES in text or _MAX_MESSAGES in text:
        return StoreFull(f"no room left in the NATS kv: {text}")
    if status in (408, 503) or code == _NO_PEERS or code in _BATCH_UNKNOWN or code in _BATCHES_IN_FLIGHT:
        return Again(text)
    return StoreRefused(f"NATS refused: {text} (error {code})")


def is_permanent(error: BaseException) -> bool:
    """Whether to connect again would be in vain: a wrong password, a certificate that is not trusted."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    text = str(error).lower()
    return isinstance(error, nats.errors.Error) and ("authorization" in text or "authentication" in text)


def given_up(error: BaseException | None, seconds: float) -> StoreError:
    reason = str(error) or type(error).__name__ if error is not None else "no answer"
    return StoreUnavailable(f"NATS did not answer within {seconds:g} s: {reason}")


PASSING = (Again, nats.errors.Error, OSError, asyncio.IncompleteReadError)
"""What a call is tried again after. TimeoutError is an OSError."""
