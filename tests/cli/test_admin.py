"""stats, workers, migrate, doctor."""

from pathlib import Path

import apsw
import psycopg
import pytest

from tests.cli.queue import Queue
from tests.cli.running import Cli


def test_stats(cli: Cli, queue: Queue):
    queue.finished("greet", name="ada")
    queue.finished("break_down", text="no")
    cli("submit", "nobody_knows_me")
    data = cli("stats", "--json").data
    assert data["total"] == {"pending": 1, "running": 0, "waiting": 0, "completed": 1, "failed": 1, "cancelled": 0}
    assert [kind["name"] for kind in data["types"]] == ["break_down", "greet", "nobody_knows_me"]
    assert data["live_workers"] == 0
    lines = cli("stats").out.splitlines()
    assert "no live worker handles it" in next(line for line in lines if line.startswith("nobody_knows_me"))
    assert lines[-1].split()[:7] == ["all", "1", "0", "0", "1", "1", "0"]


def test_workers(cli: Cli, queue: Queue):
    assert "No worker has been seen." in cli("workers").err
    queue.finished("greet", name="ada")
    [worker] = cli("workers", "--json").data["workers"]
    assert worker["condition"] == "stopped"
    assert "greet" in worker["names"]
    assert "stopped" in cli("workers").out


@pytest.mark.usefixtures("no_queue")
def test_migrate_an_empty_database(cli: Cli):
    planned = cli("migrate", "--plan", "--json").data
    assert planned["planned"]
    assert planned["version"] is None
    assert cli("migrate", "--json").data["applied"] == planned["planned"]
    assert cli("migrate").out.startswith("The schema is up to date: version ")
    assert cli("migrate", "--plan", "--json").data["planned"] == []


@pytest.mark.usefixtures("no_queue")
def test_migrate_prints_sql_without_a_database(cli: Cli, tmp_path: Path):
    assert "CREATE TABLE" in cli("migrate", "--sql").out
    assert "CREATE TABLE" in cli("migrate", "--sql", "--json").data["steps"][0]["sql"]
    assert not (tmp_path / "tasks.db").exists()


@pytest.mark.usefixtures("no_queue")
def test_a_foreign_schema_is_refused(cli: Cli, tmp_path: Path):
    with apsw.Connection(str(tmp_path / "tasks.db")) as connection:
        connection.execute("CREATE TABLE tasks (id INTEGER)")
    connection.close()
    for command in ("list", "migrate", "stats"):
        ran = cli(command)
        assert (ran.code, ran.out) == (4, ""), command
        assert "not tasklib's" in ran.err


def test_doctor_on_a_healthy_queue(cli: Cli, queue: Queue):
    queue.finished("greet", name="ada")
    ran = cli("doctor")
    assert ran.code == 0, ran
    assert "ok       schema" in ran.out
    data = cli("doctor", "--json").data
    assert {finding["level"] for finding in data["findings"]} == {"ok"}


def test_doctor_warns_without_failing(cli: Cli):
    cli("submit", "nobody_knows_me")
    ran = cli("doctor")
    assert ran.code == 0
    assert "warning" in ran.out
    assert "nobody_knows_me" in ran.out
    assert "advice: start a worker" in ran.out


def test_doctor_fails_on_an_error(cli: Cli, queue: Queue, tmp_path: Path):
    queue.finished("greet", name="ada")
    with apsw.Connection(str(tmp_path / "tasks.db")) as connection:
        connection.execute("UPDATE task_migrations SET version = 999 WHERE version = 2")
    connection.close()
    ran = cli("doctor")
    assert ran.code == 1, ran
    assert "error" in ran.out
    assert "upgrade tasklib" in ran.out
    assert cli("doctor", "--json").code == 1
    assert cli("list").code == 4


def test_doctor_on_each_store(cli: Cli, backend_url: str):
    data = cli("doctor", "--json", "--database-url", backend_url).data
    assert all(set(finding) == {"level", "subject", "message", "advice"} for finding in data["findings"])
    assert {finding["level"] for finding in data["findings"]} <= {"ok", "warning"}


def test_doctor_names_who_locks_the_table(cli: Cli, postgres_server: str, postgres_url: str):
    assert cli("migrate", "--database-url", postgres_url).code == 0
    with psycopg.connect(postgres_server, application_name="nightly report") as report:
        pid = report.info.backend_pid
        report.execute(f"LOCK TABLE {postgres_url.rpartition('schema=')[2]}.tasks".encode())
        ran = cli("doctor", "--database-url", postgres_url)
    assert ran.code == 1
    assert f"pid {pid}, nightly report" in ran.out
    assert f"advice: end it: SELECT pg_terminate_backend({pid})" in ran.out
