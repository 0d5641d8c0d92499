"""How the pages are served: to whom, under which address, with which headers, and without a build."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tasklib.engine.engine import Engine
from tasklib.server import dashboard
from tests.server.conftest import TOKEN, client_of, make_app, refused

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
TASK = "/tasks/0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"
PAGES = ["/", "/tasks", TASK, "/stats", "/workers", "/types", "/schedules", "/flows", TASK.replace("tasks", "flows")]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build in small."""
    files = tmp_path / "assets" / "app"
    files.mkdir(parents=True)
    (tmp_path / "index.html").write_text(
        '<!doctype html>\n<html><head>\n<script src="./assets/app/x.js"></script></head>'
    )
    (files / "x-1a2b.js").write_text("export {};\n" * 500)
    monkeypatch.setattr(dashboard, "BUILT", tmp_path)
    return tmp_path


@pytest.fixture
async def guest(memory_engine: Engine, built: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(make_app(memory_engine), token=None) as client:
        yield client


@pytest.fixture
async def admin(memory_engine: Engine, built: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(make_app(memory_engine)) as client:
        yield client


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("/", ""),
        ("/tasks", "?next=tasks"),
        ("/tasks?q=type%3Aa%26b&cursor=1", "?next=tasks%3Fq%3Dtype%253Aa%2526b%26cursor%3D1"),
        (TASK, f"?next={TASK[1:].replace('/', '%2F')}"),
        ("/nowhere", "?next=nowhere"),
        ("/api/docs?q=limit", "?next=api%2Fdocs%3Fq%3Dlimit"),
        ("//evil.example/", "?next=evil.example%2F"),
    ],
)
async def test_browsers_are_sent_to_the_login(guest: httpx.AsyncClient, asked: str, wanted: str):
    request = guest.build_request("GET", "http://localhost/", headers=HTML)
    request.url = request.url.copy_with(raw_path=asked.encode())
    answer = await guest.send(request)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/login{wanted}")
    assert answer.headers["cache-control"] == "no-store"


async def test_only_browsers_that_open_a_page_are(guest: httpx.AsyncClient):
    for path in ("/api/tasks", "/api", "/api/nowhere", "/openapi.json", "/metrics"):
        refused(await guest.get(path, headers=HTML), 401, "unauthorized")
    refused(await guest.get("/tasks", headers={"Accept": "*/*"}), 401, "unauthorized")
    refused(await guest.post("/tasks", headers={**HTML, "Sec-Fetch-Site": "same-origin"}), 401, "unauthorized")
    refused(await guest.get("/tasks", headers={**HTML, "Authorization": "Bearer wrong"}), 401, "unauthorized")


async def test_a_prefix_that_was_not_taken_off_leads_nobody_in_circles(guest: httpx.AsyncClient):
    refused(await guest.get("/ops/queue/login", headers=HTML), 401, "unauthorized")


async def test_a_visitor_from_another_site_is_told_apart(guest: httpx.AsyncClient):
    answer = await guest.get("/stats", headers={**HTML, "Sec-Fetch-Site": "cross-site"})
    assert answer.headers["location"] == "/login?next=stats&elsewhere=1"


@pytest.mark.parametrize("path", PAGES)
async def test_pages(admin: httpx.AsyncClient, path: str):
    answer = await admin.get(path, headers=HTML)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<head>\n<base href="/">' in answer.text


async def test_what_is_not_there(admin: httpx.AsyncClient):
    answer = await admin.get("/nowhere", headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    refused(await admin.get("/nowhere"), 404, "not_found")
    for path in ("/api/nowhere", "/api", "/assets/nowhere.js", "/assets/app/nowhere.js"):
        refused(await admin.get(path, headers=HTML), 404, "not_found")


@pytest.mark.parametrize("outer", [FastAPI, Starlette])
async def test_a_page_knows_where_it_is_mounted(memory_engine: Engine, built: Path, outer: type[Starlette]):
    app = outer(routes=[Mount('/o"p<s/q', make_app(memory_engine))])
    async with client_of(app) as client:
        answer = await client.get('/o"p<s/q/tasks', headers=HTML)
        assert '<base href="/o%22p%3Cs/q/">' in answer.text
    async with client_of(app, token=None) as client:
        answer = await client.get('/o"p<s/q/tasks', headers=HTML)
        assert answer.headers["location"] == "/o%22p%3Cs/q/login?next=tasks"


async def test_built_files_are_kept_by_browsers_and_sent_small(guest: httpx.AsyncClient, built: Path):
    answer = await guest.get("/assets/app/x-1a2b.js", headers={"Accept-Encoding": "gzip, br"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert len(answer.text) > 1000
    assert int(answer.headers["content-length"]) < 200
    # The build has compressed it better; everything else about it is the same.
    (built / "assets" / "app" / "x-1a2b.js.br").write_bytes(b"as brotli writes it")
    async with guest.stream("GET", "/assets/app/x-1a2b.js", headers={"Accept-Encoding": "gzip, br"}) as small:
        assert b"".join([part async for part in small.aiter_raw()]) == b"as brotli writes it"
    assert small.headers["content-encoding"] == "br"
    for name in ("etag", "vary", "content-type", "cache-control"):
        assert small.headers[name] == answer.headers[name], name
    again = await guest.get("/assets/app/x-1a2b.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = await guest.get("/assets/app/x-1a2b.js", headers={"Accept-Encoding": "br;q=0, gzip"})
    assert plain.headers["content-encoding"] == "gzip"
    missing = await guest.get("/assets/app/x-9f8e.js")
    assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-cache")


@pytest.mark.parametrize("path", ["/assets/app/../../secret", "/assets/app/..%2f..%2fsecret", "/assets/%2e%2e/secret"])
async def test_no_other_file_is_served(guest: httpx.AsyncClient, built: Path, path: str):
    for folder in (built, built / "assets", built.parent):
        (folder / "secret").write_text("hush")
    request = guest.build_request("GET", "http://localhost/")
    request.url = request.url.copy_with(raw_path=path.encode())
    answer = await guest.send(request)
    assert answer.status_code in (401, 404)
    assert "hush" not in answer.text


async def test_without_a_build_one_page_says_how_to_make_it(admin: httpx.AsyncClient, built: Path):
    (built / "index.html").unlink()
    page = ""
    for path in PAGES:
        page = (await admin.get(path, headers=HTML)).text
        assert "make ui" in page
        assert '<base href="/">' in page
        assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=|https?://", page)
    for name in re.findall(r'(?:src|href)="(assets/[^"]+)"', page):
        assert (await admin.get(f"/{name}")).status_code == 200
    assert (await admin.get("/api/tasks")).status_code == 200


async def test_without_authentication_there_is_no_login(memory_engine: Engine, built: Path):
    app = make_app(memory_engine, authenticate=False, token=None)
    async with client_of(app, token=None) as client:
        assert (await client.get("/tasks", headers=HTML)).status_code == 200
        answer = await client.get("/login", headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_a_page_shows_in_a_session_too(guest: httpx.AsyncClient):
    await guest.post("/api/login", json={"token": TOKEN}, headers={"Sec-Fetch-Site": "same-origin"})
    assert (await guest.get("/tasks", headers=HTML)).status_code == 200
