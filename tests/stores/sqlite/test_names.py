"""The file and its name: what is told when the two part under an open queue, and which names are one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tasklib.core.errors import StoreGone, StoreRefused
from tasklib.stores.sql.sqlite import SqliteStore, connection_thread, filesystem
from tests.conformance.builders import WORK, WORKER_A, claim, new_task, submit
from tests.stores.conftest import number_of


def deleted(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def moved_with_its_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


async def by_submit(store: SqliteStore) -> None:
    await store.insert([new_task()])


async def by_submits_at_once(store: SqliteStore) -> None:
    outcomes = await asyncio.gather(*(store.insert([new_task()]) for _ in range(5)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreGone}
    raise next(outcome for outcome in outcomes if isinstance(outcome, StoreGone))


async def by_submit_here(store: SqliteStore) -> None:
    store.insert_sync([new_task()])


async def by_claim(store: SqliteStore) -> None:
    await claim(store)


async def by_look(store: SqliteStore) -> None:
    await store.claims_of_worker(WORKER_A)


CALLS = [by_submit, by_submits_at_once, by_submit_here, by_claim, by_look]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    directory = tmp_path / "queues"
    directory.mkdir()
    return directory / "tasks.db"


@pytest.fixture
def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("part", "what"),
    [
        (deleted, "is no longer there"),
        (moved, "is no longer there"),
        (moved_with_its_directory, "is no longer there"),
        (replaced, "another file is there now"),
    ],
)
async def test_nothing_is_acknowledged_once_the_file_is_gone(
    store: SqliteStore,
    path: Path,
    part: Callable[[Path], None],
    what: str,
    call: Callable[[SqliteStore], Awaitable[None]],
):
    await submit(store)
    part(path)
    for _ in range(2):
        with pytest.raises(StoreGone, match=f"{path}.*{what}.*start this process anew"):
            await call(store)
    assert part is replaced or not path.exists(), "nobody makes an empty one in its place"


async def test_a_link_that_leads_elsewhere_is_noticed(tmp_path: Path):
    """As a deployment does that swings a link to the next release."""
    link = tmp_path / "current.db"
    link.symlink_to(tmp_path / "one.db")
    store = SqliteStore(f"sqlite:///{link}")
    await store.open()
    (tmp_path / "two.db").touch()
    link.unlink()
    link.symlink_to(tmp_path / "two.db")
    with pytest.raises(StoreGone, match="another file is there now"):
        await submit(store)
    await store.close()


async def test_a_file_that_is_put_back_is_used_again(store: SqliteStore, path: Path):
    aside = path.with_name("aside.db")
    path.rename(aside)
    with pytest.raises(StoreGone):
        await store.stats()
    aside.rename(path)
    await submit(store)
    assert await number_of(store) == 1


async def test_a_fork_does_not_make_a_missing_file(store: SqliteStore, path: Path):
    """No connection is open during a fork; those that are opened after it are to the same file."""
    path.unlink()
    connection_thread._before_fork()
    connection_thread._after_fork_in_parent()
    with pytest.raises(StoreGone):
        await submit(store)
    assert not path.exists()


async def test_another_store_of_the_process_does_not_make_a_missing_file(store: SqliteStore, path: Path):
    """As the heartbeat of a worker has one."""
    path.unlink()
    with pytest.raises(StoreGone):
        await SqliteStore(f"sqlite:///{path}").open()
    assert not path.exists()
    await store.close()
    other = SqliteStore(f"sqlite:///{path}")
    await other.open()
    await submit(other)
    await other.close()


async def test_another_store_of_the_process_does_not_open_what_took_the_place_of_the_file(
    store: SqliteStore, path: Path
):
    replaced(path)
    with pytest.raises(StoreGone, match="another file is there now"):
        await SqliteStore(f"sqlite:///{path}").open()


async def test_a_file_that_goes_while_another_store_opens_it_is_not_made_anew(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def gone_meanwhile(directory: Path) -> None:
        path.unlink()

    monkeypatch.setattr(filesystem, "network_type", gone_meanwhile)  # what is asked between the look and the opening
    with pytest.raises(StoreGone, match="is no longer there"):
        await SqliteStore(f"sqlite:///{path}").open()
    assert not path.exists()


# -- names ------------------------------------------------------------------------------------------------------------


async def test_a_second_name_is_refused(store: SqliteStore, path: Path):
    await store.close()
    other = path.with_name("other.db")
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(StoreRefused, match=r"has 2 names \(hard links\).*remove all but one"):
            await SqliteStore(f"sqlite:///{name}").open()
    other.unlink()
    await store.open()
    await submit(store)


async def test_what_is_left_of_a_process_that_died_while_it_made_the_file_is_no_second_name(path: Path):
    path.touch()
    draft = path.with_name(f".{path.name}.0123456789abcdef")
    draft.hardlink_to(path)
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    assert not draft.exists()
    await store.close()


async def test_symbolic_links_are_names_of_one_queue(store: SqliteStore, path: Path, tmp_path: Path):
    """One log and one wake-up directory, however the file is reached."""
    (tmp_path / "directory").symlink_to(path.parent)
    (tmp_path / "file.db").symlink_to(path)
    for name in ("directory/tasks.db", "file.db"):
        other = SqliteStore(f"sqlite:///{tmp_path}/{name}")
        await other.open()
        heard = asyncio.Event()
        stop = other.listen(lambda name, heard=heard: heard.set())  # type: ignore[misc]
        await submit(store)
        async with asyncio.timeout(30):
            await heard.wait()
        assert [task.name for task in await claim(other)] == [WORK]
        stop()
        await other.close()
    assert {entry.name for entry in tmp_path.iterdir()} == {"queues", "directory", "file.db"}
    ends = ("", "-wal", "-shm", "-wake")
    assert {entry.name for entry in path.parent.iterdir()} == {f"tasks.db{end}" for end in ends}


async def test_a_link_to_a_file_that_is_not_there_yet_makes_it_there(tmp_path: Path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "there" / "tasks.db")
    store = SqliteStore(f"sqlite:///{link}")
    await store.open()
    await submit(store)
    await store.close()
    assert link.is_symlink()
    assert (tmp_path / "there" / "tasks.db").stat().st_mode & 0o777 == 0o600
