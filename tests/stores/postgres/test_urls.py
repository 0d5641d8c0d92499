"""Database URLs: what libpq takes is translated, what nobody knows is refused by name."""

import pytest

from tasklib.core.errors import InvalidConfig
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.postgres.url import parse


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg", "postgres+psycopg2"]
)
def test_every_spelling_of_the_scheme(scheme: str):
    target = parse(f"{scheme}://anna:secret@db.example:5433/app")
    assert target.hosts == (("db.example", 5433),)
    assert target.arguments == {"user": "anna", "password": "secret", "database": "app"}
    assert target.schema == "public"
    assert not target.creates_schema


def test_escapes_are_undone():
    target = parse("postgresql://an%40na:s%3Ae%2Fc@db/my%20app")
    assert target.arguments == {"user": "an@na", "password": "s:e/c", "database": "my app"}


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("", ((None, None),)),
        ("db", (("db", None),)),
        ("one:5433,two:5434", (("one", 5433), ("two", 5434))),
        ("one,two:5434", (("one", None), ("two", 5434))),
        ("[::1]:5433,[fe80::2]", (("::1", 5433), ("fe80::2", None))),
        ("%2Fvar%2Frun%2Fpostgresql", (("/var/run/postgresql", None),)),
    ],
)
def test_hosts(hosts: str, expected: object):
    assert parse(f"postgresql://{hosts}/app").hosts == expected


def test_hosts_and_ports_may_be_options():
    assert parse("postgresql:///app?host=one,two&port=5433,5434").hosts == (("one", 5433), ("two", 5434))
    assert parse("postgresql:///app?host=one,two&port=5433").hosts == (("one", 5433), ("two", 5433))
    assert parse("postgresql:///app?host=/tmp").hosts == (("/tmp", None),)


def test_of_several_hosts_only_one_that_takes_writes_will_do():
    assert "target_session_attrs" not in parse("postgresql://one/app").arguments
    assert parse("postgresql://one,two/app").arguments["target_session_attrs"] == "read-write"
    assert parse("postgresql://one,two/app?target_session_attrs=any").arguments["target_session_attrs"] == "any"
    with pytest.raises(InvalidConfig, match="target_session_attrs"):
        parse("postgresql://one,two/app?target_session_attrs=standby")


def test_options_of_libpq():
    target = parse(
        "postgresql://db/app?connect_timeout=3&application_name=shop&options=-c%20geqo%3Doff&passfile=/etc/pgpass"
        "&sslmode=verify-full&sslrootcert=/etc/ca.pem&keepalives_idle=60&tcp_user_timeout=5000&client_encoding=utf8"
    )
    assert target.connect_timeout == 3
    assert target.session == {"application_name": "shop", "options": "-c geqo=off"}
    assert target.arguments["passfile"] == "/etc/pgpass"
    assert target.arguments["dsn"] == "postgresql://?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem"
    assert target.keepalives["keepalives_idle"] == 60
    assert target.keepalives["tcp_user_timeout"] == 5000


def test_our_own_options():
    target = parse("postgresql://db/app?schema=jobs&pgbouncer=true")
    assert (target.schema, target.quoted_schema, target.creates_schema) == ("jobs", '"jobs"', True)
    assert target.pgbouncer is True
    assert parse("postgresql://db/app?pgbouncer=off").pgbouncer is False
    assert parse("postgresql://db/app").pgbouncer is None


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("postgresql://db/app?colour=blue", "colour"),
        ("postgresql://db/app?statement_timeout=5", "statement_timeout"),
        ("postgresql://db/app?schema=", "schema"),
        ("postgresql://db/app?schema=1st", "schema"),
        ('postgresql://db/app?schema=a"b', "schema"),
        ("postgresql://db/app?schema=a.b", "schema"),
        ("postgresql://db/app?schema=" + "x" * 64, "schema"),
        ("postgresql://db/app?pgbouncer=perhaps", "pgbouncer"),
        ("postgresql://db/app?connect_timeout=soon", "connect_timeout"),
        ("postgresql://db/app?sslmode=maybe", "sslmode"),
        ("postgresql://db/app?channel_binding=require", "channel_binding"),
        ("postgresql://db/app?client_encoding=latin1", "client_encoding"),
        ("postgresql://db:0/app", "port"),
        ("postgresql://db:99999/app", "port"),
        ("postgresql://db:five/app", "port"),
        ("postgresql://db/app?rubbish", "database_url"),
        ("mysql://db/app", "database_url"),
    ],
)
def test_refused_by_name(url: str, field: str):
    with pytest.raises(InvalidConfig) as refusal:
        PostgresStore(url)
    assert refusal.value.field == field


@pytest.mark.parametrize("schema", ["s", "x" * 63])
def test_channels_are_names_that_postgres_takes(schema: str):
    target = parse(f"postgresql://db/app?schema={schema}")
    assert target.work_channel != target.done_channel
    assert max(len(target.work_channel), len(target.done_channel)) <= 63
