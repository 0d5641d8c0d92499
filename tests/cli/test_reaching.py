"""Which queue a command means, and what it says when that is not there or cannot be reached."""

from pathlib import Path

import pytest

from tasklib.cli import session
from tests.cli.running import Cli, run_process

AWAY = "postgresql://ada:hunter2@127.0.0.1:1/shop"


@pytest.mark.parametrize("words", ["stats", "list", "workers", "cleanup --older-than 1d --dry-run", "token list"])
def test_what_reads_makes_no_queue(cli: Cli, tmp_path: Path, words: str):
    ran = cli(*words.split(), "--database-url", "sqlite:///typo.db")
    assert ran.code == 4, ran
    assert f"there is no queue at {tmp_path}/typo.db" in ran.err
    assert not (tmp_path / "typo.db").exists()


def test_what_reads_makes_no_tables(cli: Cli, postgres_url: str):
    ran = cli("stats", "--database-url", postgres_url)
    assert ran.code == 4, ran
    assert "there is no queue at postgresql://" in ran.err


def test_a_queue_that_is_made_is_named(tmp_path: Path):
    first, second = (run_process(["submit", "x"], tmp_path) for _ in range(2))
    assert f"Made the queue {tmp_path}/tasklib.db." in first.err
    assert "Made the queue" not in second.err


def test_a_database_that_is_away(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "REACH_SECONDS", 1.0)
    monkeypatch.setattr(session, "SILENT_SECONDS", 0.1)
    for words in (["stats"], ["submit", "x"]):
        ran = cli(*words, "--database-url", AWAY)
        assert ran.code == 3, ran
        assert "Trying to reach postgresql://ada:***@127.0.0.1:1/shop" in ran.err
        assert "tried for 1 s" in ran.err
        assert "hunter2" not in ran.err + ran.out


def test_a_queue_that_answers_is_not_waited_for_aloud(cli: Cli):
    assert cli("stats").err == ""


def test_the_limits():
    assert (session.SILENT_SECONDS, session.REACH_SECONDS) == (1.0, 10.0)
