"""Who a token belongs to. Tokens are kept as hashes and compared in constant time."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tasklib.core.errors import StoreError
from tasklib.core.options import check_name
from tasklib.engine.engine import Engine
from tasklib.server.settings import ServerSettings
from tasklib.stores.protocol import AccessStore
from tasklib.stores.values import Token

log = logging.getLogger("tasklib.server")

CACHE_SECONDS = 2.0
"""How long a revoked token may still be accepted."""
REREAD_SECONDS = 0.1
"""Unknown tokens have the database asked again, but no more often: guessing must not be a load."""
PREFIX = "tl_"
_CONFIGURED = "configured"


class Role(StrEnum):
    READ_ONLY = "read-only"
    OPERATOR = "operator"
    WORKER = "worker"
    ADMIN = "admin"


class Need(StrEnum):
    """What a request asks for."""

    NOTHING = "nothing"
    READ = "read"
    SUBMIT = "submit"
    CLAIM = "claim"
    """Payloads are not masked there: it is for those who do the work."""
    OPERATE = "operate"


GRANTS: dict[Role, frozenset[Need]] = {
    Role.READ_ONLY: frozenset({Need.READ}),
    Role.OPERATOR: frozenset({Need.READ, Need.OPERATE}),
    Role.WORKER: frozenset({Need.READ, Need.SUBMIT, Need.CLAIM}),
    Role.ADMIN: frozenset({Need.READ, Need.SUBMIT, Need.CLAIM, Need.OPERATE}),
}


@dataclass(frozen=True, slots=True)
class Identity:
    key: str
    """The token's id."""
    label: str
    role: Role
    digest: str = field(repr=False)
    signed_in: bool = field(default=False, compare=False)
    """In a browser: a person, and not a program."""

    def may(self, need: Need) -> bool:
        return need is Need.NOTHING or need in GRANTS[self.role]


NOBODY_ASKED = Identity("none", "anyone (no authentication)", Role.ADMIN, "")
"""Who acts where authentication is switched off."""


def digest_of(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


def new_token(role: Role, label: str) -> tuple[str, Token]:
    """A fresh token in plain text, for its owner's eyes, and what is kept of it."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, Token(id=secrets.token_hex(4), label=check_name(label), role=role, digest=digest_of(text.encode()))


class TokenStore:
    """The tokens that open this server: the configured one, and those in the database."""

    def __init__(self, engine: Engine, settings: ServerSettings) -> None:
        self._engine = engine
        self._configured: Identity | None = None
        if settings.token is not None:
            digest = digest_of(settings.token.encode())
            self._configured = Identity(_CONFIGURED, settings.token_label, Role.ADMIN, digest)
        self._stored: list[Identity] = []
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def match(self, token: bytes) -> Identity | None:
        """Whose token this is."""
        digest = digest_of(token).encode()
        if self._configured is not None and hmac.compare_digest(digest, self._configured.digest.encode()):
            return self._configured
        found = _among(await self._known(), digest)
        if found is None:  # it may be newer than what was read
            asked = time.monotonic()
            async with self._reading:
                if self._read_at is None or self._read_at <= asked:
                    await asyncio.sleep(max(0.0, REREAD_SECONDS - (time.monotonic() - (self._read_at or 0.0))))
                    await self._read()
            found = _among(self._stored, digest)
        return found

    async def find(self, key: str) -> Identity | None:
        """The owner of a token by its id, if the token is still good."""
        if self._configured is not None and key == _CONFIGURED:
            return self._configured
        return next((identity for identity in await self._known() if identity.key == key), None)

    async def _known(self) -> Sequence[Identity]:
        if self._is_stale():
            async with self._reading:
                if self._is_stale():
                    await self._read()
        return self._stored

    def _is_stale(self) -> bool:
        return self._read_at is None or time.monotonic() - self._read_at > CACHE_SECONDS

    async def _read(self) -> None:
        now = time.monotonic()
        try:
            store: AccessStore = await self._engine.store()
            tokens = await store.tokens()
        except StoreError:
            if self._read_at is None:
                raise
            log.warning("the tokens cannot be read now; those read before are used")
        else:
            self._stored = identities(tokens)
            self._read_at = now


def _among(known: Sequence[Identity], digest: bytes) -> Identity | None:
    found: Identity | None = None
    for identity in known:  # all of them, so that the time taken tells nothing
        if hmac.compare_digest(digest, identity.digest.encode()):
            found = identity
    return found


def identities(tokens: Sequence[Token]) -> list[Identity]:
    """The owners of tokens that are not revoked. A role that this version does not know opens nothing."""
    return [
        Identity(token.id, token.label, Role(token.role), token.digest)
        for token in tokens
        if token.revoked_at is None and token.role in {role.value for role in Role}
    ]
