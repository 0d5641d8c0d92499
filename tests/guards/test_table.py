"""The table of guards fits the code. That each guard is missed is shown by `make guards`, which takes minutes."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.guards.guard import ROOT, Cut, Guard, Stale
from tests.guards.table import GUARDS


def test_every_guard_stands_where_the_table_says():
    stale = []
    for guard in GUARDS:
        try:
            files = guard.mutated(ROOT)
        except Stale as error:
            stale.append(f"{guard.name}: {error}")
            continue
        assert all(text != path.read_text() for path, text in files.items()), guard.name
        for path, text in files.items():
            if path.suffix == ".py":
                ast.parse(text, path.name)  # one that cannot be imported would prove nothing
    assert stale == []


def test_every_test_of_the_table_is_there():
    for guard in GUARDS:
        assert guard.tests, guard.name
        for test in guard.tests:
            file, *path = test.partition("[")[0].split("::")
            assert "::".join(path) in _tests_in(ROOT / file), f"{guard.name}: {test}"


def test_names_are_told_apart():
    assert [name for name, times in Counter(guard.name for guard in GUARDS).items() if times > 1] == []


SQL = "-- name: one\nWHERE id = 1 AND version = 2\n\n-- name: one_more\nWHERE id = 1 AND version = 2\n"
PYTHON = "class A:\n    def f(\n        self,\n    ):\n        return 1\n\n    def g(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("source", "cut", "cut_out"),
    [
        (SQL, Cut("x", " AND version = 2", within="-- name: one"), SQL.replace(" AND version = 2", "", 1)),
        (SQL, Cut("x", " AND version = 2", times=2), SQL.replace(" AND version = 2", "")),
        (PYTHON, Cut("x", "1", "2", "def g"), PYTHON[:-2] + "2\n"),
        (PYTHON, Cut("x", "1", "2", "def f"), PYTHON.replace("1", "2", 1)),
    ],
)
def test_a_cut_is_made_where_it_is_meant(source: str, cut: Cut, cut_out: str):
    assert cut.applied(source) == cut_out


@pytest.mark.parametrize(
    ("source", "cut"),
    [
        (SQL, Cut("x", " AND version = 2")),
        (SQL, Cut("x", "worker_id", within="-- name: one")),
        (SQL, Cut("x", "version", within="-- name: two")),
        (PYTHON, Cut("x", "1", "2", "class A")),
    ],
)
def test_a_table_that_does_not_fit_is_noticed(source: str, cut: Cut):
    with pytest.raises(Stale):
        cut.applied(source)


def test_a_file_that_is_gone_is_noticed():
    with pytest.raises(Stale, match=r"no such\.py"):
        Guard("x", (Cut("such.py", "x"),), ()).mutated(ROOT)


@cache
def _tests_in(file: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if hasattr(each, "name")}
    if file.name == "test_conformance.py":  # it inherits them from the suite
        for module in (ROOT / "tests/conformance").glob("*.py"):
            found |= {f"TestStores::{name.partition('::')[2]}" for name in _tests_in(module) if "::test_" in name}
    return frozenset(found)
