"""Signing in from a browser: the page, its files, and the session."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import FileResponse, RedirectResponse

from tasklib.server.dashboard import OWN
from tasklib.server.docs import BODY, problems
from tasklib.server.problems import ProblemError
from tasklib.server.schemas import Login, Session
from tasklib.server.service import IdentityDep, Served
from tasklib.server.tokens import NOBODY_ASKED, Identity, Need

router = APIRouter(tags=["session"])

_OPEN: dict[str, Any] = {"security": []}


@router.get("/login", include_in_schema=False, response_model=None)
async def page(request: Request, service: Served) -> Response:
    if not service.settings.authenticate:
        return RedirectResponse(f"{request.scope.get('root_path', '').rstrip('/')}/", 303)
    return FileResponse(OWN / "login.html", media_type="text/html")


@router.post("/api/login", operation_id="log_in", openapi_extra=_OPEN, responses=problems(*BODY))
async def log_in(given: Login, request: Request, response: Response, service: Served) -> Session:
    """Change a token for a session cookie. For the login page: other clients send the token itself."""
    identity: Identity | None = NOBODY_ASKED
    if service.settings.authenticate:
        identity = await service.token_store.match(given.token.encode("utf-8", "surrogatepass"))
        if identity is None:
            raise ProblemError(401, "unauthorized", "this token is not known, or was revoked")
        secure = request.url.scheme == "https"
        service.sessions.set_cookie(response, identity, secure=secure, path=_cookie_path(request))
    assert identity is not None
    return _session(identity)


@router.post("/api/logout", status_code=204, operation_id="log_out", responses=problems())
async def log_out(request: Request, service: Served) -> Response:
    """End the browser's session."""
    response = Response(status_code=204)
    service.sessions.clear_cookie(response, path=_cookie_path(request))
    return response


@router.get("/api/session", operation_id="get_session", responses=problems())
async def session(who: IdentityDep) -> Session:
    """Who the token belongs to, and what it may do."""
    return _session(who)


def _session(identity: Identity) -> Session:
    may = [need.value for need in Need if need is not Need.NOTHING and identity.may(need)]
    return Session(label=identity.label, role=identity.role, may=may)


def _cookie_path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
