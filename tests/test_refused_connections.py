"""What is said when a connection is refused: where it was tried, never with which password."""

import socket
import traceback
from collections.abc import Iterator

import pytest

from tasklib import Config, RemoteQueue, TaskLibError
from tasklib.engine.engine import Engine

PASSWORDS = ("ada:geheim", "ada:x%40geheim", "ada:x'geheim", 'ada:x"geheim', f"ada:{'geheim' * 400}", "geheim")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["postgresql", "nats"])
@pytest.mark.parametrize("userinfo", PASSWORDS)
async def test_a_database_that_cannot_be_reached(scheme: str, userinfo: str, nobody: str):
    engine = Engine(Config(database_url=f"{scheme}://{userinfo}@{nobody}", call_timeout_seconds=0.2))
    with pytest.raises(TaskLibError) as refused:
        await engine.store()
    if scheme == "postgresql" and ":" not in userinfo:
        return  # there it is the name of a user, who may be known
    assert "geheim" not in "".join(traceback.format_exception(refused.value))
    assert "geheim" not in f"{engine.config!r} {engine.config.shown_url}"


@pytest.mark.parametrize("userinfo", PASSWORDS)
def test_a_server_that_cannot_be_reached(userinfo: str, nobody: str):
    queue = RemoteQueue(f"http://{userinfo}@{nobody}", token="geheim")
    with pytest.raises(TaskLibError) as refused:
        queue.stats()
    queue.close()
    assert "geheim" not in f"{refused.value} {queue!r}"
