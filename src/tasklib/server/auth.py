"""The one gate: every request passes it, whatever the route. What is not listed as public needs a token."""

from __future__ import annotations

from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from tasklib.server.asgi import header, route_path
from tasklib.server.dashboard import PAGE_WANTED, to_login, wants_page
from tasklib.server.headers import ASSETS
from tasklib.server.problems import ProblemError
from tasklib.server.sessions import COOKIE, Sessions
from tasklib.server.settings import ServerSettings
from tasklib.server.tokens import NOBODY_ASKED, Identity, Need, TokenStore

HEALTH = frozenset({"/healthz", "/readyz"})
PUBLIC = frozenset({*(("GET", path) for path in HEALTH), ("GET", "/login"), ("POST", "/api/login")})
"""All that is answered without a token, beside files under /assets/."""
SUBMITS = frozenset({"/api/tasks", "/api/flows"})
CLAIMS = "/api/claims"
SCHEDULES = "/api/schedules/"
SAFE_METHODS = frozenset({"GET", "HEAD"})
IDENTITY = "tasklib.identity"
"""Where the scope says who asks. An application that has its own users may set it before it calls us."""


def need_of(method: str, path: str) -> Need:
    """What a request asks for. Changes that nobody listed need an operator."""
    if (method, path) in PUBLIC or (method == "GET" and path.startswith(ASSETS)):
        return Need.NOTHING
    if method in SAFE_METHODS or (method, path) == ("POST", "/api/logout"):
        return Need.READ
    if method == "POST" and path in SUBMITS:
        return Need.SUBMIT
    if method == "PUT" and path.startswith(SCHEDULES):
        return Need.SUBMIT  # it says what is to be submitted
    if method == "POST" and (path == CLAIMS or path.startswith(f"{CLAIMS}/")):
        return Need.CLAIM
    return Need.OPERATE


class AuthMiddleware:
    def __init__(self, app: ASGIApp, settings: ServerSettings, token_store: TokenStore, sessions: Sessions) -> None:
        self.app = app
        self.settings = settings
        self.token_store = token_store
        self.sessions = sessions
        self._hosts = frozenset(host.lower() for host in settings.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[PAGE_WANTED] = wants_page(scope)
            try:
                scope[IDENTITY] = await self._admit(scope)
            except ProblemError as refused:
                if refused.status != 401 or not scope[PAGE_WANTED] or _bearer(scope) is not None:
                    raise
                await to_login(scope)(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # there are none here
            return
        await self.app(scope, receive, send)

    async def _admit(self, scope: Scope) -> Identity | None:
        method, path = scope["method"], route_path(scope)
        if path not in HEALTH:  # probes come under whatever address the machine has, and learn nothing
            self._check_host(scope)
        need = need_of(method, path)
        bearer = _bearer(scope)
        identity: Identity | None = None
        if not self.settings.authenticate:
            identity = NOBODY_ASKED
        elif need is not Need.NOTHING:
            identity = await self._identify(scope, bearer)
        if method not in SAFE_METHODS:
            self._check_site(scope, bearer is not None)
        if identity is not None and not identity.may(need):
            raise ProblemError(403, "forbidden", f"a token with the role {identity.role} may not do this")
        return identity

    async def _identify(self, scope: Scope, bearer: bytes | None) -> Identity:
        identity: Identity | None = scope.get(IDENTITY)
        if identity is not None:
            return identity  # an application that we are mounted in has seen to it
        if bearer is not None:
            identity = await self.token_store.match(bearer)
        else:
            cookie = _cookie(scope)
            if cookie is not None:
                identity = await self.sessions.open(cookie)
        if identity is None:
            detail = "send a token: Authorization: Bearer ..., or sign in at /login"
            raise ProblemError(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
        return identity

    def _check_host(self, scope: Scope) -> None:
        """Against DNS rebinding: a page elsewhere can point a name of its own at us, but not choose the name."""
        if "*" in self._hosts:
            return
        host = (header(scope, b"host") or b"").decode("latin-1").lower()
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if name not in self._hosts:
            raise ProblemError(421, "host_not_allowed", f"this server does not answer to the host name {name!r:.80}")

    def _check_site(self, scope: Scope, has_bearer: bool) -> None:
        """Against requests that another site makes in a visitor's name."""
        if has_bearer and self.settings.authenticate:
            return  # no site can make a browser send a token that it does not know
        site = header(scope, b"sec-fetch-site")
        origin = header(scope, b"origin")
        if site is not None:
            same = site in (b"same-origin", b"none")
        elif origin is not None:
            same = origin.lower().partition(b"://")[2] == (header(scope, b"host") or b"").lower()
        else:
            same = not self.settings.authenticate  # browsers always send one of the two
        if not same:
            raise ProblemError(
                403, "cross_site", "changes need a bearer token, or must come from this server's own pages"
            )


def _bearer(scope: Scope) -> bytes | None:
    scheme, _, token = (header(scope, b"authorization") or b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else None


def _cookie(scope: Scope) -> str | None:
    return cookie_parser((header(scope, b"cookie") or b"").decode("latin-1")).get(COOKIE)
