"""What the tests of the command line share: the command line itself, and a queue with something in it."""

import io
from pathlib import Path

import pytest

from tasklib.cli.main import run
from tests.cli.queue import Queue
from tests.cli.running import SHOP, Cli, Ran


@pytest.fixture
def cli(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    """Runs a command line in this process, in an empty folder, on an empty queue."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKLIB_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("COLUMNS", "200")
    if "no_queue" not in request.fixturenames:
        assert run(["migrate"]) == 0

    def call(*arguments: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture
def no_queue() -> None:
    """Asked for by tests of the command line that find no queue there."""


@pytest.fixture
def queue(sqlite_url: str) -> Queue:
    return Queue(sqlite_url)


@pytest.fixture
def app_folder(tmp_path: Path) -> Path:
    """A folder with an application in it: the module `shop`."""
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path
