"""Bare INSERTs through an asyncpg pool: what a web process gets that writes each request's row by itself."""

import json

import asyncpg

from benchmarks.floors.asyncpg_loop import INSERT, Floor, new_id

CONNECTIONS = 10


class PooledFloor(Floor):
    settings = f"an INSERT for each task, through a pool of {CONNECTIONS} connections; no validation, no wake-up."

    async def open(self) -> None:
        self.pool = await asyncpg.create_pool(self.url, min_size=CONNECTIONS, max_size=CONNECTIONS)

    async def send(self, number: int) -> None:
        await self.pool.execute(INSERT, new_id(), json.dumps({"number": number}))

    async def close(self) -> None:
        await self.pool.close()
