"""Answers are sent compressed where that helps, and not again where they have not changed."""

import gzip

import httpx
import pytest

from tasklib.engine.engine import Engine
from tests.conformance.builders import submit, submit_several
from tests.server.conftest import TOKEN, client_of, make_app

GZIP = {"Accept-Encoding": "gzip, br"}
PLAIN = {"Accept-Encoding": "identity"}


async def raw(client: httpx.AsyncClient, path: str, headers: dict[str, str], method: str = "GET") -> tuple[str, bytes]:
    """The Content-Encoding and the bytes as they came."""
    async with client.stream(method, path, headers=headers) as answer:
        content = b"".join([part async for part in answer.aiter_raw()])
        assert int(answer.headers["content-length"]) == len(content)
        assert answer.headers["vary"] == "Accept-Encoding"
        return answer.headers.get("content-encoding", ""), content


async def test_large_answers_are_compressed(api: httpx.AsyncClient, engine: Engine):
    await submit_several(await engine.store(), 50)
    encoding, small = await raw(api, "/api/tasks", GZIP)
    _, plain = await raw(api, "/api/tasks", PLAIN)
    assert encoding == "gzip"
    assert gzip.decompress(small) == plain
    assert len(small) < len(plain) / 5


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0, identity", "*;q=0"])
async def test_only_for_those_who_take_it(quick: httpx.AsyncClient, memory_engine: Engine, accepted: str):
    await submit_several(await memory_engine.store(), 50)
    assert (await raw(quick, "/api/tasks", {"Accept-Encoding": accepted}))[0] == ""


async def test_small_answers_and_secrets_are_not_compressed(memory_engine: Engine):
    async with client_of(make_app(memory_engine)) as client:
        assert (await raw(client, "/api/tasks", GZIP))[0] == ""
        for method, path in (("GET", "/api/session"), ("POST", "/api/login")):
            body = {"token": TOKEN} if method == "POST" else None
            answer = await client.request(method, path, headers={**GZIP, "Sec-Fetch-Site": "same-origin"}, json=body)
            assert answer.status_code == 200
            assert {"etag", "vary", "content-encoding"}.isdisjoint(answer.headers)


async def test_streams_are_not_compressed(memory_engine: Engine):
    await submit_several(await memory_engine.store(), 50)
    async with client_of(make_app(memory_engine, stream_seconds=0.1)) as client:
        answer = await client.get("/api/events", headers=GZIP)
    assert answer.text.startswith("retry:")
    assert {"content-encoding", "content-length", "etag"}.isdisjoint(answer.headers)


async def test_an_unchanged_list_is_not_sent_again(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit_several(store, 50)
    first = await api.get("/api/tasks", headers=GZIP)
    tag = first.headers["etag"]
    assert (await api.get("/api/tasks", headers=PLAIN)).headers["etag"] == tag
    assert tag.startswith('W/"')  # one for both encodings
    for asked in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = await api.get("/api/tasks", headers={"If-None-Match": asked})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["vary"] == "Accept-Encoding"
        assert "content-length" not in again.headers
    assert (await api.get("/api/tasks?limit=20", headers={"If-None-Match": tag})).status_code == 200
    await submit(store)
    changed = await api.get("/api/tasks", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_errors_have_no_tag(quick: httpx.AsyncClient):
    answer = await quick.get("/api/tasks?limit=0", headers={"If-None-Match": "*"})
    assert answer.status_code == 400
    assert "etag" not in answer.headers


async def test_files_have_one_tag_for_both_encodings(quick: httpx.AsyncClient):
    encoding, _ = await raw(quick, "/assets/login.js", GZIP)
    assert encoding == "gzip"
    tags = {(await quick.get("/assets/login.js", headers=each)).headers["etag"] for each in (GZIP, PLAIN)}
    assert len(tags) == 1
    tag = tags.pop()
    assert tag.startswith('W/"')
    again = await quick.get("/assets/login.js", headers={"If-None-Match": tag})
    assert (again.status_code, again.headers["etag"]) == (304, tag)
