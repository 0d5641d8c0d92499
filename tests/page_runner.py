"""Runs the Python and SQL of one page, in order: `python -m tests.page_runner PAGE`, in the directory for its files.

Blocks may await: the page runs in one event loop, as a notebook does. TASKLIB_DATABASE_URL says where its queue is;
SQL runs on PostgreSQL, at POSTGRES_URL.
"""

import ast
import asyncio
import importlib
import inspect
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

import psycopg

from tasklib.stores.sql.postgres import PostgresStore
from tests.pages import Block, blocks, files_before


async def run(page: Path) -> None:
    module = types.ModuleType("page")
    sys.modules["page"] = module
    sys.path.insert(0, str(Path.cwd()))
    for block in (*files_before(page), *blocks(page)):
        if block.file is not None:
            _write(block)
        elif block.runs:
            await _execute(block, vars(module))
        elif block.language == "sql":
            await _query(block)
        elif block.language == "python":
            compile(block.source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


async def _execute(block: Block, namespace: dict[str, Any]) -> None:
    code = compile(block.source, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(code, namespace)
    if inspect.iscoroutine(outcome):
        await outcome


def _write(block: Block) -> None:
    path = Path(block.file or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text + "\n")
    if path.suffix == ".py" and not path.name.startswith(("test_", "conftest")):
        importlib.invalidate_caches()
        importlib.import_module(".".join(path.with_suffix("").parts))


async def _query(block: Block) -> None:
    """Statement by statement, on tasklib's own tables."""
    url = os.environ["POSTGRES_URL"]
    store = PostgresStore(url)
    await store.migrate()
    await store.close()
    dsn, _, schema = url.partition("?schema=")
    with psycopg.connect(dsn, autocommit=True, options=f"-csearch_path={schema}") as connection:
        for statement in re.split(r";\s*$", block.text, flags=re.MULTILINE):
            if re.sub(r"--.*", "", statement).strip():
                try:
                    connection.execute(statement)
                except psycopg.Error as error:
                    error.add_note(f"{block.page}:{block.line}: {statement.strip()}")
                    raise


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
