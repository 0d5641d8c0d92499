"""The pages: one HTML file for all of them, and the files it loads, as the build of `ui/` leaves them."""

from __future__ import annotations

import asyncio
from html import escape
from pathlib import Path
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tasklib.server.asgi import accepts, header, route_path
from tasklib.server.headers import ASSETS, BUILT_ASSETS

router = APIRouter(include_in_schema=False)

OWN = Path(__file__).parent / "assets"
"""Files that need no build: those of the login page."""
BUILT = Path(__file__).parent / "dashboard"
API_DOCS = "/api/docs"
PAGES = (
    "/",
    "/tasks",
    "/tasks/{task_id}",
    "/new",
    "/stats",
    "/workers",
    "/workers/{worker_id:text}",
    "/types",
    "/types/{type:text}",
    "/schedules",
    "/flows",
    "/flows/{flow_id}",
    "/audit",
    API_DOCS,
)
"""What the router in the browser knows (ui/src/router.tsx); it also shows that there is nothing at other paths."""

PAGE_WANTED = "tasklib.page_wanted"
"""Where the scope says so. Noted at the gate: inside a mount of ours the path is no longer what was asked for."""

_NO_PAGES = ("/api/", ASSETS)
_NEVER_PAGES = frozenset({"/api", "/healthz", "/readyz", "/metrics", "/openapi.json"})


def wants_page(scope: Scope) -> bool:
    """Whether a browser is about to show the answer, and not a script or a client of the API."""
    path = route_path(scope)
    if scope["method"] != "GET" or path in _NEVER_PAGES or (path.startswith(_NO_PAGES) and path != API_DOCS):
        return False
    if path.endswith("/login"):
        return False  # a proxy that should take a prefix off and does not: it would be sent in circles
    return b"text/html" in (header(scope, b"accept") or b"")


def page(scope: Scope, status: int = 200) -> HTMLResponse:
    """The dashboard, told where it is mounted: all its addresses are relative to that."""
    built = BUILT / "index.html"
    text = (built if built.exists() else OWN / "unbuilt.html").read_text("utf-8")
    base = escape(f"{_prefix(scope)}/")
    return HTMLResponse(text.replace("<head>", f'<head>\n<base href="{base}">', 1), status)


def to_login(scope: Scope) -> RedirectResponse:
    """To the login page, which goes on to what was wanted."""
    wanted = quote(route_path(scope).lstrip("/"), safe="/")
    if scope["query_string"]:
        wanted += f"?{scope['query_string'].decode('latin-1')}"
    query = {"next": wanted} if wanted else {}
    if header(scope, b"sec-fetch-site") in (b"cross-site", b"same-site"):
        query["elsewhere"] = "1"  # the cookie may be held back: the page looks again
    return RedirectResponse(f"{_prefix(scope)}/login{'?' if query else ''}{urlencode(query)}", 303)


class Files(StaticFiles):
    """Sent as the build has compressed them, to browsers that take that."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        whole = await super().get_response(path, scope)
        if not isinstance(whole, FileResponse) or scope["method"] != "GET" or not accepts(scope, "br"):
            return whole
        small = Path(f"{whole.path}.br")
        if not await asyncio.to_thread(small.exists):
            return whole
        headers = {"Content-Encoding": "br", "ETag": whole.headers["etag"]}
        return Response(await asyncio.to_thread(small.read_bytes), headers=headers, media_type=whole.media_type)


def mount_assets(app: FastAPI) -> None:
    for path, folder in ((BUILT_ASSETS, BUILT / BUILT_ASSETS.strip("/")), (ASSETS, OWN)):
        app.mount(path.rstrip("/"), Files(directory=folder, check_dir=False))


async def show(request: Request) -> HTMLResponse:
    return page(request.scope)


for _path in PAGES:
    router.add_api_route(_path, show, methods=["GET"])


def _prefix(scope: Scope) -> str:
    return quote(scope.get("root_path", "").rstrip("/"))
