"""The database's own account of a run: triggers that write down every version of every row, with the database's time.

Kept in the same transaction as the row, it has what was committed and nothing else. That is what the clients' accounts
are held against. The library knows nothing of it.
"""

COLUMNS = (
    "at",
    "op",
    "id",
    "version",
    "state",
    "worker",
    "retry_count",
    "max_retries",
    "due",
    "locked_until",
    "started_at",
    "completed_at",
    "key",
    "result",
    "name",
    "unique_key",
    "waits",
    "cut_by",
    "asked_at",
    "tx",
)
_VALUES = (
    "{row}.id, {row}.version, {row}.state, {row}.worker_id, {row}.retry_count, {row}.max_retries, "
    "coalesce({row}.next_retry_at, {row}.scheduled_at), {row}.locked_until, {row}.started_at, {row}.completed_at, "
    "{row}.idempotency_key, {row}.result, {row}.name, {row}.unique_key, {row}.waits, {cut_by}, "
    "{row}.cancel_requested_at, {tx}"
)
_ENGINES = {
    "sqlite": ("json_extract({row}.after, '$.cutBy')", "NULL"),
    "postgres": ("{row}.after ->> 'cutBy'", "pg_current_xact_id()::text"),
}
"""How each reads the parent whose end cancelled a task, and names the transaction."""
_TOLD = (
    "version",
    "state",
    "worker_id",
    "retry_count",
    "locked_until",
    "next_retry_at",
    "scheduled_at",
    "completed_at",
    "unique_key",
    "cancel_requested_at",
)
"""A change of these is a move; flags that only serve the claim are not."""


def statements(backend: str) -> list[str]:
    return _sqlite() if backend == "sqlite" else _postgres()


def read_page(backend: str, after: int, limit: int) -> str:
    """Rows of the sequence and then the columns."""
    times = ("at", "due", "locked_until", "started_at", "completed_at", "asked_at")
    shown = [
        f"to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        if backend == "postgres" and name in times
        else f"{name}::text"
        if backend == "postgres" and name in ("id", "result")
        else name
        for name in COLUMNS
    ]
    return f"SELECT seq, {', '.join(shown)} FROM chaos_moves WHERE seq > {after} ORDER BY seq LIMIT {limit}"


def _values(backend: str, row: str) -> str:
    cut_by, tx = _ENGINES[backend]
    return _VALUES.format(row=row, cut_by=cut_by.format(row=row), tx=tx)


def _sqlite() -> list[str]:
    made = ["CREATE TABLE chaos_moves (seq INTEGER PRIMARY KEY AUTOINCREMENT, " + ", ".join(COLUMNS) + ")"]
    changed = " OR ".join(f"old.{name} IS NOT new.{name}" for name in _TOLD)
    for op, row, when in (("insert", "new", ""), ("update", "new", f"WHEN {changed}"), ("delete", "old", "")):
        made.append(
            f"CREATE TRIGGER chaos_{op} AFTER {op.upper()} ON tasks {when} BEGIN "
            f"INSERT INTO chaos_moves ({', '.join(COLUMNS)}) "
            f"VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), '{op}', {_values('sqlite', row)}); END"
        )
    return made


def _postgres() -> list[str]:
    changed = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in _TOLD)
    insert = f"INSERT INTO chaos_moves ({', '.join(COLUMNS)}) VALUES (clock_timestamp(), lower(TG_OP), "
    return [
        "CREATE TABLE chaos_moves (seq bigserial PRIMARY KEY, at timestamptz, op text, id uuid, version integer, "
        "state text, worker text, retry_count integer, max_retries integer, due timestamptz, "
        "locked_until timestamptz, started_at timestamptz, completed_at timestamptz, key text, result jsonb, "
        "name text, unique_key text, waits integer, cut_by text, asked_at timestamptz, tx text)",
        "CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'DELETE' THEN {insert}{_values('postgres', 'OLD')}); "
        f"ELSIF TG_OP = 'INSERT' OR {changed} THEN {insert}{_values('postgres', 'NEW')}); END IF; "
        "RETURN NULL; END $$",
        "CREATE TRIGGER chaos_moves AFTER INSERT OR UPDATE OR DELETE ON tasks "
        "FOR EACH ROW EXECUTE FUNCTION chaos_note()",
    ]
