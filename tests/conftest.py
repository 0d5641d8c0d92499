"""What every test may ask for. A server that cannot be had is an error, never a skip."""

import os
import random
import shutil
import signal
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.databases import new_schema
from tests.nats_servers import NatsServer, ask
from tests.servers import QUICK, PostgresServer

pytest.register_assert_rewrite("tests.conformance")  # it is imported, not collected

SEED = "TASKLIB_SEED"
POSTGRES = "TASKLIB_TEST_POSTGRES_URL"
NATS = "TASKLIB_TEST_NATS_URL"
_USUAL = "/tmp"
"""Whoever names another folder for temporary files has a reason."""
_MEMORY = Path("/dev/shm")
_ROOM = 4 * 1024**3
_HERE = Path(__file__).parent
_ORDER = {_HERE / "ui": 0, _HERE / "core": 2}
_SECTION = 100_000
"""Characters of captured output that a report keeps."""

# Tests share two cores with a database: how long one example takes says nothing.
hypothesis.settings.register_profile("tasklib", deadline=None, print_blob=True)
hypothesis.settings.load_profile("tasklib")


def pytest_configure(config: pytest.Config) -> None:
    """Runs in the xdist controller too; its environment reaches the workers."""
    # A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: the tests that
    # interrupt a command would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(2**32)))
    if tempfile.gettempdir() == _USUAL and _has_room_in_memory():
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)
    if getattr(config.option, "numprocesses", None):
        _start_postgres(config)
        _start_nats(config)


def _has_room_in_memory() -> bool:
    """Files of tests and servers then wait for no disk. Nothing has to survive a power cut; SQLite waits at each
    commit, and PostgreSQL makes dozens of files for each schema."""
    return (
        _MEMORY.is_dir()
        and shutil.disk_usage(_MEMORY).free > _ROOM
        and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        and os.access(_MEMORY, os.W_OK)
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes are given tests in this order: those of the dashboard to one of them, with one browser and one site of
    each engine; the shortest when there are few left, so that none works on alone."""
    items.sort(key=lambda item: _ORDER.get(item.path.parent, 1))


def pytest_report_header() -> str:
    return f"seed: {SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    if exitstatus:  # -q leaves the header out, and this is when it is wanted
        terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tasks fail with what no encoding has, and megabytes of it: their log goes with the report, between processes."""
    report = yield
    report.sections = [(name, text[-_SECTION:].encode(errors="replace").decode()) for name, text in report.sections]
    return report


def _start_postgres(config: pytest.Config) -> str:
    """One server for all workers, or the one that the variable names."""
    if POSTGRES not in os.environ:
        server = PostgresServer(settings=QUICK)
        config.add_cleanup(server.close)
        os.environ[POSTGRES] = server.start().dsn
    return os.environ[POSTGRES]


def _start_nats(config: pytest.Config) -> str:
    if NATS not in os.environ:
        server = NatsServer()
        config.add_cleanup(server.close)
        os.environ[NATS] = server.start().url
    return os.environ[NATS]


@pytest.fixture(autouse=True)
def _init_was_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes import the module that called `init` last: it must not be one of an earlier test."""
    monkeypatch.setattr("tasklib.engine.default._init_module", None)


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> str:
    """The address of the shared server, no schema of one's own. Without xdist it starts here, when first wanted."""
    return _start_postgres(pytestconfig)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty schema on the shared server: `postgresql://...?schema=t_...`."""
    with new_schema(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def nats_server(pytestconfig: pytest.Config) -> str:
    """The address of the shared NATS server."""
    return _start_nats(pytestconfig)


@pytest.fixture
def nats_url(nats_server: str) -> Iterator[str]:
    """A bucket of one's own on the shared server: `nats://...?bucket=t_...`."""
    bucket = f"t_{uuid.uuid4().hex}"
    yield f"{nats_server}?bucket={bucket}"
    ask(nats_server, f"$JS.API.STREAM.DELETE.KV_{bucket}")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
def memory_url() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(params=["sqlite", "memory", "postgres", "nats"])
def backend_url(request: pytest.FixtureRequest) -> str:
    """The test runs once on each store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def table_url(request: pytest.FixtureRequest) -> str:
    """The same for tests that read or edit the table with SQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest) -> str:
    """The same for tests in which several processes use one table."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that come again with the seed in the report's header, for each test its own."""
    return random.Random(f"{os.environ[SEED]}:{request.node.nodeid}")
