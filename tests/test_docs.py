"""The documentation is true: its code runs, its commands exist, its tables name all there is, its links lead on."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import tasklib
from tasklib.cli.exits import MEANINGS
from tasklib.cli.main import app
from tasklib.core import errors
from tasklib.core.lifecycle import mermaid
from tasklib.core.task import Task
from tasklib.engine.config import ENV_PREFIX
from tests.pages import ALL_PAGES, PAGES, ROOT, anchors, blocks, code_spans, commands, links

REFERENCE = ROOT / "docs" / "reference.md"
SCHEMA = ROOT / "docs" / "schema.md"
STORE_TABLES = {"sqlite": 13, "postgres": 12}
"""In their migrations; SQLite's task_migrations is made by the store."""
GUARANTEES = ROOT / "docs" / "guarantees.md"
FAULTS = ROOT / "docs" / "faults.md"

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
every_page = pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)


# -- code -------------------------------------------------------------------------------------------------------------


@each_page
def test_the_code_runs(page: Path, postgres_url: str, tmp_path: Path):
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)},
        "PYTHONPATH": str(ROOT),
        "TASKLIB_DATABASE_URL": f"sqlite:///{tmp_path}/tasks.db",
        "POSTGRES_URL": postgres_url,
        "DATABASE_URL": postgres_url.partition("?")[0],
    }
    _run([sys.executable, "-m", "tests.page_runner", str(page)], tmp_path, env)
    if list(tmp_path.rglob("test_*.py")):
        # Nothing of ours but the installed plugin: that is how a reader's project has it.
        _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "."], tmp_path, env)


def _run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"


@each_page
def test_blocks_say_what_they_are(page: Path):
    """A fence that nobody knows is a block that nobody checks."""
    known = {"python", "sql", "bash", "ini", "toml", "mermaid", ""}
    known |= {"sh", "javascript"}  # files of examples/, shown whole: test_claim_workers.py runs and compares them
    for block in blocks(page):
        assert block.language in known, f"{page.name}:{block.line}: {block.language}"
        assert block.note in ("", "no-run") or block.file, f"{page.name}:{block.line}: {block.note}"


# -- commands ---------------------------------------------------------------------------------------------------------


@every_page
def test_commands_exist(page: Path):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line, words in commands(page):
        where = f"{page.name}:{line}: {' '.join(words)}"
        match words:
            case [program, *arguments] if Path(program).name == "tasklib":
                _parse(arguments, where)
            case ["make", *wanted]:
                assert {target for target in wanted if "=" not in target} <= targets, where
            case ["pip", "install", *wanted]:
                ours = [word for word in wanted if word.startswith((".", "tasklib"))]
                extras = {extra for word in ours for some in re.findall(r"\[(.*)\]", word) for extra in some.split(",")}
                assert extras <= set(project["optional-dependencies"]), where
                assert "tasklib" not in {word.partition("[")[0] for word in wanted}, f"{where}: another project's"


def _parse(arguments: list[str], where: str) -> None:
    """As the command line itself would, down to the command; nothing is run."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("tasklib", list(arguments))
    rest = [*context._protected_args, *context.args]
    name, found, rest = command.resolve_command(context, rest)
    assert found is not None, where
    try:
        found.make_context(name, rest, parent=context)
    except Exception as error:
        raise AssertionError(f"{where}: {getattr(error, 'message', error)}") from error


def test_the_reference_names_every_command_and_option():
    root: Any = typer.main.get_command(app)
    text = REFERENCE.read_text()
    for name, command in root.commands.items():
        assert f"`tasklib {name}" in text, name
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and not parameter.hidden and option != "--help":
                    assert re.search(rf"{option}\b", text), f"tasklib {name} {option}"


def test_the_reference_has_the_exit_codes():
    codes = {int(row[0]) for row in _rows(REFERENCE) if row[0].isdigit()}
    assert codes == {code.value for code in MEANINGS}


# -- names ------------------------------------------------------------------------------------------------------------


def test_the_reference_names_everything_public():
    said = {word for span in code_spans(REFERENCE) for word in re.findall(r"\w+", span)}
    assert set(tasklib.__all__) - said == set()


def test_the_reference_has_the_signatures_as_they_are():
    compared = 0
    for block in blocks(REFERENCE):
        for node in ast.parse(block.text).body if block.language == "python" else []:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                actual = inspect.signature(getattr(tasklib, node.name)).parameters.values()
                assert _parameters(node.args) == [_parameter(each) for each in actual], node.name
                compared += 1
    assert compared >= 10


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return f"{parameter.kind.description} {parameter.name}"
    plain = parameter.default is None or isinstance(parameter.default, int | float | str)
    return f"{parameter.kind.description} {parameter.name}={parameter.default if plain else ...!r}"


def _parameters(args: ast.arguments) -> list[str]:
    """As `_parameter` tells them: run, the definition says itself what it is."""
    node = ast.FunctionDef("f", args, [ast.Pass()], [], lineno=1, col_offset=0)
    namespace: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([node], [])), "reference.md", "exec"), namespace)
    return [_parameter(each) for each in inspect.signature(namespace["f"]).parameters.values()]


def test_the_reference_has_every_setting_with_its_variable_and_default():
    rows = {row[0]: row for row in _rows(REFERENCE)}
    for name, field in tasklib.Config.model_fields.items():
        assert rows[f"`{name}`"][1:3] == [f"`{ENV_PREFIX}{name.upper()}`", f"`{field.default}`"], name


def test_the_reference_has_every_error_with_its_code():
    rows = {row[0]: row for row in _rows(REFERENCE)}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.TaskLibError):
            assert rows[f"`{name}`"][1] == f"`{kind.code}`", name


def test_the_schema_has_the_lifecycle_as_it_is():
    (drawn,) = [block.text for block in blocks(SCHEMA) if block.language == "mermaid"]
    assert drawn == mermaid()


def test_the_schema_has_every_column_table_and_index():
    said = {word for span in code_spans(SCHEMA) for word in re.findall(r"\w+", span)}
    for store in ("sqlite", "postgres"):
        made = "\n".join(
            path.read_text() for path in (ROOT / f"src/tasklib/stores/sql/{store}/migrations").glob("*.sql")
        )
        tables = re.findall(r"^CREATE TABLE (?:{schema}\.)?(\w+) \((.*?)^\)", made, re.MULTILINE | re.DOTALL)
        columns = {name for _, body in tables for name in re.findall(r"^    ([a-z_]+) ", body, re.MULTILINE)}
        indexes = set(re.findall(r"CREATE (?:UNIQUE )?INDEX (ix_tasks_\w+)", made))
        indexes -= set(re.findall(r"DROP INDEX (?:{schema}\.)?(ix_tasks_\w+)", made))
        assert (len(tables), len(indexes)) == (STORE_TABLES[store], 10), (
            "the migrations are not read as they are written"
        )
        assert ({name for name, _ in tables} | columns | indexes) - said == set()
    assert {field.name for field in fields(Task)} - said == set()


@pytest.mark.parametrize("page", [GUARANTEES, FAULTS], ids=lambda page: page.name)
def test_the_tests_that_are_named_exist(page: Path):
    named = [span for span in code_spans(page) if span.startswith("tests/")]
    assert len(named) > 40
    for name in named:
        assert _docstring(name) is not None, name


def test_every_fault_and_every_kind_of_bad_input_has_a_test_that_names_it():
    rows = {row[0]: row[-1] for row in _rows(FAULTS) if row[0].isdigit()}
    assert list(rows) == [str(number) for number in range(1, 28)]
    for number, shown_by in rows.items():
        texts = [_docstring(name) or "" for name in re.findall(r"`(tests/[^`]*)`", shown_by)]
        assert any(re.match(rf"Fault {number}\b", text) for text in texts), f"fault {number}"
    kinds = re.findall(r"^### (.*)\n((?:.|\n)*?)(?=^### |\Z)", FAULTS.read_text(), re.MULTILINE)
    assert len(kinds) == 6
    for kind, table in kinds:
        texts = [_docstring(name) or "" for name in re.findall(r"`(tests/[^`]*)`", table)]
        assert any(text.lower().startswith(f"bad input, {kind.lower()}:") for text in texts), kind


def _docstring(name: str) -> str | None:
    """Of a test like `tests/test_docs.py::test_it`, or of its file; None if there is no such test."""
    file, *path = name.split("::")
    if path[0] == "TestStores":  # it inherits them from the suite
        modules = sorted((ROOT / "tests/conformance").glob("*.py"))
        return next((text for each in modules for test, text in _tests_in(each).items() if test[-1] == path[1]), None)
    return _tests_in(ROOT / file).get(tuple(path))


@cache
def _tests_in(file: Path) -> dict[tuple[str, ...], str]:
    """What each test says of itself, by its path inside the file."""
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found: dict[tuple[str, ...], str] = {}
    found |= {(node.name,): ast.get_docstring(node) or "" for node in tree.body if isinstance(node, functions)}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        methods = (node for node in kind.body if isinstance(node, functions))
        found |= {(kind.name, node.name): ast.get_docstring(node) or "" for node in methods}
    return found


def _rows(page: Path) -> list[list[str]]:
    """The rows of all tables on the page, as cells."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


# -- links ------------------------------------------------------------------------------------------------------------


@every_page
def test_links_lead_somewhere(page: Path):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), link
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert target.is_relative_to(ROOT), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_every_page_can_be_reached_from_the_readme():
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        linked = ((page.parent / link.partition("#")[0]).resolve() for link in links(page) if ":" not in link)
        ahead += [each for each in linked if each in ALL_PAGES and each not in reached]
    assert set(ALL_PAGES) - reached == set()


def test_the_readme_is_short():
    """What it would say beyond that has a page."""
    assert len((ROOT / "README.md").read_text().splitlines()) < 200
