"""One statement by itself, for the verbs that are not steps yet."""

from __future__ import annotations

from typing import Any

from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.postgres.url import Connection


async def fetch(calls: PostgresDriver, name: str, *parameters: Any) -> list[Any]:
    async def work(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(calls.sql[name], *parameters, timeout=timeout)

    rows: list[Any] = await calls.run(work)
    return rows
