"""Session cookies: signed, so that nothing need be kept, and tied to a token, so that they end when it is revoked."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from starlette.responses import Response

from tasklib.server.settings import ServerSettings
from tasklib.server.tokens import Identity, TokenStore

COOKIE = "tasklib_session"


class Sessions:
    def __init__(
        self, token_store: TokenStore, settings: ServerSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._token_store = token_store
        self._seconds = settings.session_seconds
        self._clock = clock
        # With a configured token sessions outlive a restart and hold in every process that has it.
        self._secret = (
            secrets.token_bytes(32)
            if settings.token is None
            else hashlib.sha256(b"tasklib session\0" + settings.token.encode()).digest()
        )

    def issue(self, identity: Identity) -> str:
        key = base64.urlsafe_b64encode(identity.key.encode()).decode().rstrip("=")
        body = f"{key}.{int(self._clock() + self._seconds)}"
        return f"{body}.{self._sign(body, identity)}"

    async def open(self, cookie: str) -> Identity | None:
        """Who the cookie was issued to, if it is ours, has not run out and the token behind it is still good."""
        key, _, rest = cookie.partition(".")
        expiry, _, signature = rest.partition(".")
        try:
            owner = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)).decode()
        except (binascii.Error, ValueError):
            return None
        if not (expiry.isascii() and expiry.isdigit()) or len(expiry) > 12 or int(expiry) < self._clock():
            return None
        identity = await self._token_store.find(owner)
        if identity is None:
            return None
        expected = self._sign(f"{key}.{expiry}", identity)
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
            return None
        return replace(identity, signed_in=True)

    def set_cookie(self, response: Response, identity: Identity, *, secure: bool, path: str) -> None:
        response.set_cookie(
            COOKIE,
            self.issue(identity),
            max_age=int(self._seconds),
            path=path,
            secure=secure,
            httponly=True,
            samesite="strict",
        )

    def clear_cookie(self, response: Response, *, path: str) -> None:
        response.delete_cookie(COOKIE, path=path, httponly=True, samesite="strict")

    def _sign(self, body: str, identity: Identity) -> str:
        return hmac.new(self._secret, f"{body}.{identity.digest}".encode(), hashlib.sha256).hexdigest()
