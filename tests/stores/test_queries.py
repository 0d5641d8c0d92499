"""What the steps of the SQL store ask for by name, every dialect has."""

import ast
from pathlib import Path

import pytest

from tasklib.stores import sql
from tasklib.stores.sql.postgres import driver
from tasklib.stores.sql.sqlite import batches
from tasklib.stores.sql.sqlite.statements import COMPOSED

DIALECTS = {"postgres": driver.QUERIES, "sqlite": batches.SQL}
NOT_ASKED = {"begin", "in_doubt"}
"""These a driver answers by itself."""


def asked() -> set[str]:
    """The first argument of every `Query(...)` in the package."""
    found = set()
    for path in Path(sql.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="Query"), args=[ast.Constant(value=str(name)), *_]):
                    found.add(name)
    return found - NOT_ASKED


def test_the_steps_ask_for_something():
    assert {"get", "heartbeat", "delete"} <= asked()


@pytest.mark.parametrize("engine", DIALECTS)
def test_every_query_has_a_statement(engine: str):
    composed = COMPOSED.keys() if engine == "sqlite" else set()
    assert asked() - composed - DIALECTS[engine].keys() == set()
