"""Settings: refused with the key and the reason; every field by a variable; arguments win."""

from pathlib import Path
from typing import Any

import pytest

from tasklib import Config, InvalidConfig, TaskWorker
from tasklib.core.errors import TaskLibError
from tasklib.engine.backends import make_store
from tasklib.engine.config import SCHEMES


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"unknown_setting": 1}, "unknown_setting"),
        ({"max_retries": -2}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"max_retries": "many"}, "max_retries"),
        ({"max_retries": 1.5}, "max_retries"),
        ({"base_retry_delay_seconds": -1}, "base_retry_delay_seconds"),
        ({"base_retry_delay_seconds": float("nan")}, "base_retry_delay_seconds"),
        ({"retry_backoff_multiplier": float("inf")}, "retry_backoff_multiplier"),
        ({"retry_jitter": 1.5}, "retry_jitter"),
        ({"lock_timeout_seconds": 0}, "lock_timeout_seconds"),
        ({"default_task_timeout_seconds": 0}, "default_task_timeout_seconds"),
        ({"worker_id": ""}, "worker_id"),
        ({"database_url": ""}, "database_url"),
        ({"pool_size": 0}, "pool_size"),
        ({"heartbeat_seconds": 10, "lock_timeout_seconds": 20}, "heartbeat_seconds"),
        ({"heartbeat_seconds": 10, "dead_after_seconds": 15}, "heartbeat_seconds"),
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_by_name(settings: dict[str, Any], key: str):
    """Bad input, settings: refused with the key and the reason."""
    with pytest.raises(InvalidConfig, match=key) as caught:
        Config(**settings)
    assert caught.value.field == key


def test_every_field_can_be_set_by_a_variable_and_arguments_win(monkeypatch: pytest.MonkeyPatch):
    values = {
        "database_url": "memory://variables",
        "max_retries": 7,
        "base_retry_delay_seconds": 1.5,
        "retry_backoff_multiplier": 3.0,
        "max_retry_delay_seconds": 60.0,
        "retry_jitter": 0.5,
        "lock_timeout_seconds": 90.0,
        "default_task_timeout_seconds": 12,
        "worker_id": "mine",
        "heartbeat_seconds": 2.0,
        "dead_after_seconds": 9.0,
        "shutdown_grace_seconds": 4.0,
        "keep_completed_seconds": 100.0,
        "keep_failed_seconds": 200.0,
        "app_version": "2.1",
        "max_payload_bytes": 1000,
        "max_result_bytes": 2000,
        "pool_size": 3,
        "redact_keys": ("iban", "account_number"),
        "call_timeout_seconds": 6.0,
        "submit_timeout_seconds": 2.5,
        "alerts_file": Path("/etc/shop/alerts.toml"),
    }
    assert {*values, "middleware"} == set(Config.model_fields), "every field is tried; that one names objects"
    for key, value in values.items():
        monkeypatch.setenv(f"TASKLIB_{key.upper()}", ",".join(value) if isinstance(value, tuple) else str(value))
    config = Config()
    assert config.model_dump(exclude={"middleware"}) == values
    assert Config(max_retries=1).max_retries == 1


def test_a_bad_variable_is_refused_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_MAX_RETRIES", "lots")
    with pytest.raises(InvalidConfig, match="max_retries"):
        Config()


def test_the_heartbeat_follows_a_short_lease():
    assert Config(lock_timeout_seconds=9).beat_seconds == 3
    assert Config(dead_after_seconds=3).beat_seconds == 1
    assert Config().beat_seconds == 10


def test_the_default_is_a_file_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TASKLIB_DATABASE_URL", raising=False)
    assert Config().database_url == "sqlite:///tasklib.db"


def test_passwords_are_not_shown():
    config = Config(database_url="postgresql://me:hunter2@db/app?password=hunter2")
    assert "hunter2" not in repr(config)
    assert "hunter2" not in config.shown_url
    with pytest.raises(InvalidConfig) as caught:
        Config(database_url="mysql://me:hunter2@db/app")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidConfig) as caught:
        Config(database_url="postgresql://me:hunter2@db/app", lock_timeout_seconds=-1)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://x", "nonsense", "sqlite", "redis://localhost"])
def test_unknown_urls_are_refused_with_those_that_are_known(url: str):
    with pytest.raises(InvalidConfig, match="sqlite://"):
        Config(database_url=url)


def test_every_scheme_has_its_engine():
    for scheme in SCHEMES:
        make_store(Config(database_url=f"{scheme}://{'/x' if scheme == 'sqlite' else 'x'}"))


@pytest.mark.parametrize("concurrency", [0, -1, True, 2.5, "4", 10_001])
def test_a_worker_checks_its_concurrency(concurrency: Any):
    with pytest.raises(TaskLibError, match="concurrency"):
        TaskWorker(Config(database_url="memory://"), concurrency=concurrency)


@pytest.mark.parametrize("interval", [0, -1, 4000, float("nan")])
def test_a_worker_checks_its_poll_interval(interval: float):
    with pytest.raises(InvalidConfig, match="poll_interval_seconds"):
        TaskWorker(Config(database_url="memory://"), poll_interval_seconds=interval)


async def test_a_worker_refuses_names_that_nobody_defined():
    worker = TaskWorker(Config(database_url="memory://"), names=["no_such_task"], handle_signals=False)
    with pytest.raises(InvalidConfig, match="no_such_task"):
        await worker.run()


def test_what_is_stored_as_worker_id_is_new_for_each_start():
    config = Config(database_url="memory://", worker_id="billing")
    first, second = TaskWorker(config).worker_id, TaskWorker(config).worker_id
    assert first != second
    assert first.startswith("billing-")


def test_more_secret_keys_come_from_a_variable_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_REDACT_KEYS", "iban, account_number")
    config = Config()
    assert config.redact_keys == ("iban", "account_number")
    masked = config.redact({"iban": "1", "accountNumber": "2", "password": "3", "name": "ada"})
    assert masked == {"iban": "***", "accountNumber": "***", "password": "***", "name": "ada"}


@pytest.mark.parametrize("keys", [("",), "a,,b", (1,), 7])
def test_secret_keys_are_words(keys: Any):
    with pytest.raises(InvalidConfig, match="redact_keys"):
        Config(redact_keys=keys)
