"""A test's own queue: nothing that the application says about its queue leads a test's tasks elsewhere."""

from pathlib import Path

import pytest

import tasklib
from tasklib import Config, InvalidConfig, TaskManager, TaskQueue, TaskWorker, list_tasks, task, tq
from tasklib.core.registry import Registry
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.testing import QueueForTests, fresh_queue

registry = Registry()


@task(registry=registry)
def double(number: int) -> int:
    return number * 2


@pytest.fixture(params=["the default", "the environment"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tasks would go without the fixture."""
    monkeypatch.chdir(tmp_path)
    if request.param == "the default":
        monkeypatch.delenv("TASKLIB_DATABASE_URL", raising=False)
        monkeypatch.setenv("TASKLIB_TESTING", "0")
        return tmp_path / "tasklib.db"
    monkeypatch.setenv("TASKLIB_DATABASE_URL", f"sqlite:///{tmp_path}/staging.db")
    return tmp_path / "staging.db"


def test_init_leads_to_the_fixtures_queue(elsewhere: Path, tasklib_queue: QueueForTests):
    tasklib.init(Config(max_retries=7))
    assert double.submit(1).get().max_retries == 7
    tasklib.init()
    double.submit(2)
    assert len(tasklib_queue.tasks()) == 2
    assert not elsewhere.exists()


async def test_every_api_leads_to_the_fixtures_queue(elsewhere: Path, tasklib_queue: QueueForTests):
    with TaskManager() as manager, TaskManager(Config()) as configured:
        manager.submit("one")
        configured.submit("two")
    tq("crawl").add("three")
    TaskQueue(enable_worker=False).enqueue("crawl", "four")
    double.submit(5)
    assert len(tasklib_queue.tasks()) == 5
    await TaskWorker(Config(), registry=registry, burst=True, handle_signals=False).run()
    assert tasklib_queue.tasks("double")[0].result == {"value": 10}
    assert not elsewhere.exists()


def test_the_fixtures_own_settings_are_not_lost_by_init():
    with fresh_queue(max_retries=0):
        tasklib.init(Config(max_retries=9, default_task_timeout_seconds=8))
        found = double.submit(1).get()
        assert (found.max_retries, found.timeout_seconds) == (0, 8)


def test_another_queue_by_name_is_refused_with_the_reason(tmp_path: Path, tasklib_queue: QueueForTests):
    url = f"sqlite:///{tmp_path}/real.db"
    with pytest.raises(InvalidConfig, match=r"this test has its own queue.*real\.db would take its place"):
        tasklib.init(Config(database_url=url))
    with pytest.raises(InvalidConfig, match="this test has its own queue"):
        tq.init(url)
    double.submit(1)
    assert len(tasklib_queue.tasks()) == 1
    assert not (tmp_path / "real.db").exists()


def test_tq_has_a_queue_for_each_test():
    for _ in range(2):
        with fresh_queue() as queue:
            tq.init(enable_worker=False)
            tq("crawl").add(1)
            assert len(queue.tasks()) == 1
            assert tq.stats()["pending"] == 1


def test_the_clock_is_one_for_all_who_use_the_queue(tasklib_queue: QueueForTests):
    manager, queue = TaskManager(), TaskQueue(enable_worker=False)
    manager.submit(1, name="later", delay_seconds=3600)
    assert manager.claim_next("me", names=["later"]) == []
    queue.register_handler("later", lambda payload: None)
    tasklib_queue.advance(3600)
    assert queue.process_batch() == 1


@pytest.mark.parametrize("variable", ["PYTEST_VERSION", "PYTEST_CURRENT_TEST", "TASKLIB_TESTING"])
def test_without_the_fixture_the_default_queue_is_refused(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("PYTEST_VERSION", "PYTEST_CURRENT_TEST", "TASKLIB_TESTING", "TASKLIB_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "1")
    before = use_engine(Engine(Config()))
    try:
        for attempt in (lambda: double.submit(1), list_tasks, lambda: TaskManager(Config()).submit(1)):
            with pytest.raises(InvalidConfig, match=r"fixture tasklib_queue.*TASKLIB_DATABASE_URL.*TASKLIB_TESTING=0"):
                attempt()
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setenv("TASKLIB_TESTING", "0")
        assert double.submit(1).get().kwargs == {"number": 1}
        assert (tmp_path / "tasklib.db").exists()
    finally:
        use_engine(before)
