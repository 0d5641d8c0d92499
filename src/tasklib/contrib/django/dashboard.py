"""The dashboard and its REST API behind Django's own login, as a view.

Under WSGI and ASGI alike: tasklib's server runs on the event loop that sync calls of tasklib use, and a request waits
for its whole answer. There are no live streams here, which would each hold a thread of the site: pages read every five
seconds instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.csrf import csrf_exempt

from tasklib.api.sync import run_sync
from tasklib.contrib.django.startup import current_backend
from tasklib.engine.engine import Engine
from tasklib.server.app import create_app
from tasklib.server.auth import IDENTITY
from tasklib.server.settings import ServerSettings
from tasklib.server.tokens import Identity, Role

VIEW, CHANGE = "tasklib.view_task", "tasklib.change_task"
STREAM = "api/events"
_NOT_PASSED_ON = frozenset({"authorization", "cookie", "host", "content-length"})

_apps: WeakKeyDictionary[Engine, Any] = WeakKeyDictionary()


@csrf_exempt  # the server itself refuses changes that another site asks for: its pages send no token of Django's
def dashboard(request: Any, path: str) -> HttpResponse:
    root = request.path[: len(request.path) - len(path)].rstrip("/")
    identity = _identity(request.user)
    if path == "login" or identity is None:
        return _refused(request, f"{root}/" if path == "login" else request.get_full_path())
    if path == STREAM:
        return _problem(429, "too_many_streams", "there are no live streams here; read again instead")
    response = run_sync(_answer(_app(), _scope(request, root, identity), request.body))
    if path == "api/logout" and response.status_code == 204:
        logout(request)
    return response


def _identity(user: Any) -> Identity | None:
    """What somebody may do is said by Django's permissions; superusers may also submit and claim."""
    if not (user.is_active and user.is_staff and user.has_perm(VIEW)):
        return None
    role = Role.ADMIN if user.is_superuser else Role.OPERATOR if user.has_perm(CHANGE) else Role.READ_ONLY
    return Identity(f"django:{user.pk}", f"{user.get_username()} (Django)", role, "", signed_in=True)


def _refused(request: Any, wanted: str) -> HttpResponse:
    """People are sent to the login; programs, and people who may not see it, are told."""
    if request.user.is_authenticated and request.user.is_staff and _identity(request.user) is None:
        return _problem(403, "forbidden", f"this needs the permission {VIEW}")
    if "text/html" in request.headers.get("Accept", ""):
        return redirect_to_login(wanted, _login_page())
    return _problem(401, "unauthorized", "sign in first")


def _login_page() -> str | None:
    """The admin's, which is for staff; without it, what LOGIN_URL says."""
    try:
        return reverse("admin:login")
    except NoReverseMatch:
        return None


def _problem(status: int, kind: str, detail: str) -> HttpResponse:
    text = json.dumps({"type": kind, "title": kind.replace("_", " "), "status": status, "detail": detail})
    return HttpResponse(text.encode(), status=status, content_type="application/problem+json")


def _app() -> Any:
    engine = current_backend().engine
    found = _apps.get(engine)
    if found is None:
        # Host names are Django's to check, and who asks was checked above.
        found = _apps[engine] = create_app(engine, settings=ServerSettings(token=None, allowed_hosts=["*"]))
    return found


def _scope(request: Any, root: str, identity: Identity) -> dict[str, Any]:
    headers = [(b"host", request.get_host().encode("latin-1"))]
    for name, value in request.headers.items():
        if name.lower() not in _NOT_PASSED_ON:
            headers.append((name.lower().encode("latin-1"), value.encode("latin-1", "replace")))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": root,
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": headers,
        "client": None,
        "server": None,
        IDENTITY: identity,
    }


async def _answer(app: Callable[..., Any], scope: dict[str, Any], body: bytes) -> HttpResponse:
    sent = [{"type": "http.request", "body": body, "more_body": False}]
    response = HttpResponse()
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not sent:
            await asyncio.Event().wait()  # the client stays until it has its answer
        return sent.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            response.status_code = message["status"]
            del response.headers["Content-Type"]
            for name, value in message["headers"]:
                response.headers[name.decode("latin-1")] = value.decode("latin-1")
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    response.content = b"".join(parts)
    return response
