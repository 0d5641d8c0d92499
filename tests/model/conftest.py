"""Comparisons outside of test files show what they compared, too."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.benches import Benches

for module in ("ground", "laws", "operating", "working"):
    pytest.register_assert_rewrite(f"tests.model.{module}")


@pytest.fixture
def benches(postgres_url: str, nats_server: str, tmp_path: Path) -> Iterator[Benches]:
    with asyncio.Runner() as runner:
        yield Benches(runner, postgres_url, nats_server, tmp_path)
