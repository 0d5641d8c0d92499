"""What browsers cannot be made to do: sessions and their cookies, other sites, host names, headers."""

import re
import time

import httpx
import pytest

from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings
from tasklib.server.sessions import COOKIE, Sessions
from tasklib.server.tokens import TokenStore
from tests.server.conftest import BROWSER, TOKEN, client_of, make_app, mounted, refused


async def test_sessions(engine: Engine):
    async with client_of(make_app(engine), token=None) as browser:
        refused(await browser.post("/api/login", json={"token": "wrong"}, headers=BROWSER), 401, "unauthorized")
        answer = await browser.post("/api/login", json={"token": TOKEN}, headers=BROWSER)
        assert answer.json() == {
            "label": "TASKLIB_TOKEN",
            "role": "admin",
            "may": ["read", "submit", "claim", "operate"],
        }
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{COOKIE}=")
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        assert "path=/;" in cookie.lower()
        assert TOKEN not in cookie
        assert (await browser.get("/api/session")).json()["role"] == "admin"
        assert (await browser.post("/api/tasks/pause", headers=BROWSER)).status_code == 200
        wrong = await browser.get("/api/session", headers={"Authorization": "Bearer wrong"})
        refused(wrong, 401, "unauthorized")
        assert (await browser.post("/api/logout", headers=BROWSER)).status_code == 204
        refused(await browser.get("/api/session"), 401, "unauthorized")


async def test_a_cookie_over_https_is_secure_and_holds_below_the_mount(memory_engine: Engine):
    app, prefix = mounted(make_app(memory_engine), "fastapi")
    async with client_of(app, None, base_url="https://localhost") as browser:
        cookie = (await browser.post(f"{prefix}/api/login", json={"token": TOKEN}, headers=BROWSER)).headers[
            "set-cookie"
        ]
        assert "secure" in cookie.lower()
        assert "path=/tasks;" in cookie.lower()
        assert (await browser.get(f"{prefix}/api/session")).status_code == 200


async def test_forged_and_old_cookies(memory_engine: Engine):
    settings = ServerSettings(token=TOKEN, session_seconds=60)
    token_store = TokenStore(memory_engine, settings)
    now = [time.time()]
    sessions = Sessions(token_store, settings, clock=lambda: now[0])
    identity = await token_store.match(TOKEN.encode())
    assert identity is not None
    good = sessions.issue(identity)
    assert await sessions.open(good) == identity
    key, expiry, signature = good.split(".")
    forged = [
        "",
        "x",
        "..",
        f"{key}.{int(expiry) + 999}.{signature}",
        f"{key}.{expiry}.{'0' * 64}",
        f"{key}.{expiry}.é",
        f"{key}.{expiry}",
        f"é.{expiry}.{signature}",
        f"{key}.{'9' * 5000}.{signature}",
        f"{key}.²³.{signature}",
        good + "x",
    ]
    for cookie in forged:
        assert await sessions.open(cookie) is None, cookie
    other = ServerSettings(token=TOKEN + "2")
    assert await Sessions(TokenStore(memory_engine, other), other).open(good) is None
    now[0] += 61
    assert await sessions.open(good) is None


CROSS_SITE: list[tuple[dict[str, str], bool]] = [
    ({}, False),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:8700"}, False),
    ({"Origin": "http://localhost:8700"}, True),
    ({"Origin": "http://localhost:9999"}, False),
    ({"Origin": "http://evil.example"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://[broken"}, False),
]


@pytest.mark.parametrize(("headers", "accepted"), CROSS_SITE)
async def test_changes_come_from_our_own_pages(memory_engine: Engine, headers: dict[str, str], accepted: bool):
    async with client_of(make_app(memory_engine), token=None) as browser:
        await browser.post("/api/login", json={"token": TOKEN}, headers=BROWSER)
        for path in ("/api/tasks/pause", "/api/logout"):
            answer = await browser.post(path, headers=headers)
            if accepted:
                assert answer.status_code in (200, 204)
                await browser.post("/api/login", json={"token": TOKEN}, headers=BROWSER)
            else:
                refused(answer, 403, "cross_site")
        login = await browser.post("/api/login", json={"token": TOKEN}, headers=headers)
        assert login.status_code == (200 if accepted else 403)
        # A bearer token is something that no other site can make a browser send.
        answer = await browser.post("/api/tasks/pause", headers={**headers, "Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200


async def test_there_is_no_cors(quick: httpx.AsyncClient):
    answer = await quick.get("/api/tasks", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


HOSTS = [
    ("localhost", True),
    ("localhost:8700", True),
    ("LOCALHOST", True),
    ("127.0.0.1:1", True),
    ("[::1]:8700", True),
    ("evil.example", False),
    ("localhost.evil.example", False),
    ("127.0.0.1.evil.example:8700", False),
    ("", False),
]


@pytest.mark.parametrize(("host", "answered"), HOSTS)
async def test_hosts(memory_engine: Engine, host: str, answered: bool):
    async with client_of(make_app(memory_engine)) as client:
        for path in ("/api/tasks", "/login", "/assets/login.js"):
            answer = await client.get(path, headers={"Host": host})
            if answered:
                assert answer.status_code == 200
            else:
                refused(answer, 421, "host_not_allowed")
        assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


async def test_hosts_can_be_allowed(memory_engine: Engine):
    app = make_app(memory_engine, allowed_hosts=["queue.example"])
    async with client_of(app) as client:
        assert (await client.get("/api/tasks", headers={"Host": "Queue.example:443"})).status_code == 200
        refused(await client.get("/api/tasks", headers={"Host": "localhost"}), 421, "host_not_allowed")
    async with client_of(make_app(memory_engine, allowed_hosts=["*"])) as client:
        assert (await client.get("/api/tasks", headers={"Host": "any.example"})).status_code == 200


async def test_without_authentication_other_sites_still_change_nothing(memory_engine: Engine):
    async with client_of(make_app(memory_engine, authenticate=False, token=None), token=None) as client:
        assert (await client.get("/api/tasks")).status_code == 200
        assert (await client.post("/api/tasks/pause")).status_code == 200
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
            refused(await client.post("/api/tasks/pause", headers=headers), 403, "cross_site")
            forged = {**headers, "Authorization": "Bearer x"}
            refused(await client.post("/api/tasks/pause", headers=forged), 403, "cross_site")


POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


async def test_headers(quick: httpx.AsyncClient):
    for path in ("/api/tasks", "/login", "/assets/login.js", "/nowhere", "/healthz", "/api/tasks?limit=0"):
        answer = await quick.get(path)
        policy = answer.headers["content-security-policy"]
        assert dict(each.strip().split(" ", 1) for each in policy.split(";")) == POLICY
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == ("no-cache" if path.startswith("/assets") else "no-store")


async def test_the_login_page_fits_its_policy(quick: httpx.AsyncClient):
    page = (await quick.get("/login")).text
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=|https?://", page)
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert (await quick.get(f"/{name}")).status_code == 200
