"""Which error gives which exit code: one table for all of them."""

from collections.abc import Iterator

import pytest

from tasklib.cli import session
from tasklib.cli.exits import MEANINGS, Exit, code_of
from tasklib.core import errors
from tests.cli.running import Cli


def every(kind: type[errors.TaskLibError]) -> Iterator[type[errors.TaskLibError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


EXPECTED = {
    errors.InvalidConfig: Exit.USAGE,
    errors.TaskValidationError: Exit.USAGE,
    errors.TaskDefinitionError: Exit.USAGE,
    errors.MissingExtra: Exit.USAGE,
    errors.Unsupported: Exit.USAGE,
    errors.TaskNotFound: Exit.FAILED,
    errors.TaskNotFailed: Exit.FAILED,
    errors.WaitTimeout: Exit.FAILED,
    errors.StoreUnavailable: Exit.UNAVAILABLE,
    errors.StoreGone: Exit.UNAVAILABLE,
    errors.StoreBusy: Exit.UNAVAILABLE,
    errors.StoreFull: Exit.UNAVAILABLE,
    errors.StoreRefused: Exit.REFUSED,
    errors.SchemaMismatch: Exit.REFUSED,
    errors.StoreClosed: Exit.FAILED,
    errors.WorkerExhausted: Exit.EXHAUSTED,
}


@pytest.mark.parametrize(("kind", "code"), EXPECTED.items())
def test_the_table(kind: type[errors.TaskLibError], code: Exit):
    assert code_of(kind.__new__(kind)) is code


def test_no_error_passes_for_success():
    assert all(code_of(kind.__new__(kind)) is not Exit.OK for kind in every(errors.TaskLibError))


def test_every_code_is_explained():
    assert set(MEANINGS) == set(Exit)


def test_a_database_that_is_away(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(session, "REACH_SECONDS", 1.0)
    ran = cli("list", "--database-url", "postgresql://tasklib:geheim@127.0.0.1:9/tasklib")
    assert ran.code == Exit.UNAVAILABLE, ran
    waiting, told = ran.err.splitlines()
    assert waiting.startswith("Trying to reach ")
    assert told.startswith("error: ")
    assert "geheim" not in ran.err


def test_errors_for_programs(cli: Cli):
    ran = cli("show", "01890000-0000-7000-8000-000000000000", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert '"code": "task_not_found"' in ran.err
