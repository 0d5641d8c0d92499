"""What is refused at the border, what is cut, and what is taken literally."""

from tests.guards.claims import DECIDE
from tests.guards.fencing import POSTGRES, SQLITE_SETTLE, SUITE, one, suite

CODEC = "core/codec.py"
POSTGRES_LIST = "stores/sql/postgres/list.sql"
OPTIONS = "core/options.py"
CHECKS = "core/checks.py"
T = "tests/core/test_codec.py::"
REFUSED = f"{T}test_refused_with_the_field_named"
AGREES = f"{T}test_a_serialisers_text_gets_the_same_verdict"
REFUSALS = "tests/stores/postgres/test_refusals.py::"
BATCH = f"{T}test_one_at_the_limits_among_many_gets_its_own_verdict"

VALUES = (
    one(
        "search: large payloads are not looked at",
        "stores/sql/sqlite/list.sql",
        "octet_length(t.kwargs) <= :payload_bytes",
        f"{SUITE}test_large_payloads_are_not_looked_at[sqlite]",
        put="true",
        within="-- name: where_payload",
    ),
    one(
        "search: large payloads are not looked at, postgres",
        POSTGRES_LIST,
        " AND octet_length(t.kwargs::text) <= :payload_bytes",
        f"{SUITE}test_large_payloads_are_not_looked_at[postgres]",
        within="-- name: where_payload",
    ),
    one(
        "a file of tasks has an end",
        "server/export.py",
        "written >= MOST or ",
        "tests/server/test_search.py::test_all_that_matches_as_a_file",
    ),
    one("NaN and infinities are refused", CODEC, "if not math.isfinite(value):", REFUSED, put="if False:"),
    one(
        "NaN in JSON text is refused",
        CODEC,
        "parse_constant=refuse",
        f"{T}test_what_is_no_json_is_refused",
        put="parse_constant=None",
    ),
    one(
        "NaN in a serialiser's text is seen",
        CODEC,
        'or "NaN" in text',
        "tests/submitting/test_refusals.py::test_values[nan-by_submit_task]",
    ),
    one("NUL is refused", CODEC, 'if "\\0" in text:', REFUSED, f"{T}test_text_problem", put="if False:"),
    one(
        "NUL in plain ASCII is seen",
        CODEC,
        'if not value.isascii() or "\\0" in value:',
        REFUSED,
        put="if not value.isascii():",
    ),
    one(
        "a lone surrogate is refused",
        CODEC,
        'return "contains a lone surrogate"',
        REFUSED,
        f"{T}test_text_problem",
        put="return None",
    ),
    one(
        "NUL and surrogates in a serialiser's text are seen",
        CODEC,
        '("\\\\u" in text and _UNSETTLED_TEXT.search(text))',
        AGREES,
        put="False",
    ),
    one(
        "depth is bounded",
        CODEC,
        "if depth >= MAX_DEPTH:",
        REFUSED,
        put="if depth >= 900:",
        times=2,
    ),
    one(
        "depth of a serialiser's text is bounded",
        CODEC,
        "or _openings(text) > MAX_DEPTH",
        f"{T}test_vet_agrees_with_encode_at_the_limits",
    ),
    one(
        "a batch of texts is looked at",
        CODEC,
        'or not _is_plain("\\n".join(texts))',
        f"{T}test_what_no_database_takes_is_refused_alone_and_among_many",
    ),
    one(
        "depth is bounded in a batch",
        CODEC,
        "or (longest > MAX_DEPTH and max(map(_openings, texts)) > MAX_DEPTH)",
        BATCH,
    ),
    one(
        "digits are bounded",
        CODEC,
        "if not -_TOO_LONG < value < _TOO_LONG:",
        REFUSED,
        put="if False:",
    ),
    one(
        "size is bounded",
        CODEC,
        "if size > limit:",
        f"{T}test_too_large_is_refused_with_both_sizes",
        "tests/submitting/test_refusals.py::test_the_size_limit_is_a_setting",
        put="if False:",
    ),
    one(
        "size is counted in bytes",
        CODEC,
        'len(text.encode("utf-8", "surrogatepass"))',
        f"{T}test_too_large_is_refused_with_both_sizes",
        put="len(text)",
    ),
    one(
        "keys are text",
        CODEC,
        "if not isinstance(key, str):",
        REFUSED,
        put="if False:",
        within="def _settled",
    ),
    one(
        "a payload's limit is the setting's",
        "core/registry.py",
        'codec.vet(text.decode(), field="payload", limit=limit)',
        "tests/tq/test_options.py::test_the_size_limit_of_payloads_is_a_setting",
        put='codec.vet(text.decode(), field="payload", limit=2**30)',
        within="def _encode",
    ),
    one(
        "arguments are checked by what a worker has published",
        "core/schemas.py",
        "        if problems:",
        "tests/test_same_row.py::test_bad_arguments_are_refused_alike[schema-missing]",
        put="        if False:",
    ),
    one(
        "a refusal by a schema does not repeat what was given",
        "core/schemas.py",
        ', mask="the value"',
        "tests/test_same_row.py::test_bad_arguments_are_refused_alike[schema-no date]",
    ),
    one(
        "a schema fetches nothing",
        "core/schemas.py",
        "retriever=_refuse, ",
        "tests/test_same_row.py::test_a_schema_fetches_nothing",
    ),
    one(
        "a result has a limit",
        "core/registry.py",
        'codec.vet(text, field="result", limit=limit)',
        "tests/worker/test_retries.py::test_a_result_that_cannot_be_stored_is_a_failure_with_the_reason",
        put='codec.vet(text, field="result", limit=2**30)',
    ),
    one(
        "a method is no task",
        "core/registry.py",
        'if first in ("self", "cls") and owner and',
        "tests/submitting/test_definitions.py::test_a_method_is_no_task",
        put="if False and",
    ),
    one(
        "a result fits its annotation",
        "core/registry.py",
        "value = self._fitting(value, self.returns.validator.validate_python)",
        "tests/core/test_results.py::test_what_does_not_fit_is_refused",
        "tests/worker/test_retries.py::test_a_result_that_does_not_fit_its_annotation_is_a_failure",
        put="pass",
    ),
    one(
        "arguments are checked again before they run",
        "core/registry.py",
        "model = self.params.__pydantic_validator__.validate_json(text)",
        "tests/worker/test_retries.py::test_arguments_that_the_model_refuses_at_run_time_fail_at_once",
        put="model = self.params.model_construct(**codec.decode(text))",
    ),
)

CUTS = (
    one(
        "errors are cut",
        CODEC,
        "if len(data) <= limit:",
        f"{T}TestClipError::test_it_is_never_longer_than_the_limit_and_always_storable",
        put="if True:",
    ),
    one(
        "errors in the row are cut",
        "core/decide.py",
        "error=clip_error(error)",
        f"{DECIDE}test_errors_are_cut_in_the_row_and_more_in_the_history",
        put="error=error",
    ),
    one(
        "errors in the history are cut more",
        "core/decide.py",
        "clip_error(error, HISTORY_ERROR_LIMIT)",
        f"{DECIDE}test_errors_are_cut_in_the_row_and_more_in_the_history",
        put="error",
    ),
    one(
        "sqlite: the history is bounded",
        SQLITE_SETTLE,
        "json_array_length(tasks.history) >= :history_limit",
        suite("test_it_is_bounded_and_keeps_the_first_and_the_latest", "sqlite"),
        put=":history_limit < 0",
    ),
    one(
        "postgres: the history is bounded",
        POSTGRES,
        "jsonb_array_length(t.history) >= :history_limit::int",
        suite("test_it_is_bounded_and_keeps_the_first_and_the_latest", "postgres"),
        put=":history_limit::int < 0",
    ),
    one(
        "nats: the history is bounded",
        "stores/nats/record.py",
        "if len(entries) > HISTORY_LIMIT:",
        suite("test_it_is_bounded_and_keeps_the_first_and_the_latest", "nats"),
        put="if False:",
    ),
    one(
        "tags have a limit",
        OPTIONS,
        "limit=TAGS_LIMIT",
        "tests/server/test_bad_input.py::test_tags_have_a_limit",
        put="limit=codec.MAX_BYTES",
    ),
)

SEARCHES = (
    one(
        "sql: a search that stops says where it goes on",
        "stores/sql/lists.py",
        "ids[limit - 1] if len(ids) > limit else stop)",
        suite("test_a_search_that_stops_says_so_and_goes_on_behind_its_cursor", "sqlite"),
        put="ids[limit - 1] if len(ids) > limit else None)",
    ),
    one(
        "sql: the count of a search that stops is not called exact",
        "stores/sql/lists.py",
        "found > cap or stop is not None",
        suite("test_a_search_that_stops_says_so_and_goes_on_behind_its_cursor", "sqlite"),
        put="found > cap",
    ),
    one(
        "sql: a search of several types and states looks at no more than it says",
        "stores/sql/lists.py",
        "if there <= most:",
        "tests/server/test_operating.py::test_bulk_by_a_search_is_done_to_all",
        put="if True:",
    ),
    one(
        "sql: a list in the order of ends that stops says where it goes on",
        "stores/sql/lists.py",
        "found[limit - 1] if len(found) > limit else stop)",
        suite("test_the_order_of_ends_under_every_filter", "sqlite"),
        put="found[limit - 1] if len(found) > limit else None)",
    ),
    one(
        "sql: the cursor of the order of ends tells tasks apart that ended at once",
        "stores/sql/lists.sql",
        "(t.completed_at, t.id) < (:behind_at, :behind_id)",
        suite("test_the_order_of_ends_is_walked_without_gaps_or_repeats", "sqlite"),
        put="t.completed_at < :behind_at AND :behind_id IS NOT NULL",
    ),
    one(
        "nats: what has not ended is not found by its end",
        "stores/nats/filters.py",
        "(terminal or not where.by_end)",
        suite("test_ranges_of_ends_hold_what_ended_in_them_and_nothing_else", "nats"),
        put="True",
    ),
    one(
        "nats: the count of a search that stops is not called exact",
        "stores/nats/reads.py",
        "found > cap or stop is not None",
        suite("test_a_search_that_stops_says_so_and_goes_on_behind_its_cursor", "nats"),
        put="found > cap",
    ),
    one(
        "rest: a bulk action goes on behind its cursor",
        "server/bulk.py",
        "bulk.perform(service.engine, action, where, given.cursor, audit=audit)",
        "tests/server/test_operating.py::test_bulk_that_runs_out_of_time_goes_on_behind_its_cursor",
        put="bulk.perform(service.engine, action, where, audit=audit)",
    ),
)

LITERAL = (
    one(
        "sql: a prefix is taken literally",
        "stores/sql/lists.sql",
        "substr(t.name, 1, length(CAST(:name_prefix AS text))) = CAST(:name_prefix AS text)",
        suite("test_by_prefix_taken_literally", "sqlite", "_-expected4"),
        put="t.name LIKE CAST(:name_prefix AS text) || '%'",
    ),
    one(
        "sqlite: an error's text is taken literally",
        "stores/sql/sqlite/list.sql",
        "instr(lower(t.error), lower(:error_text)) > 0",
        suite("test_by_error_text_taken_literally", "sqlite"),
        put="t.error LIKE '%' || :error_text || '%'",
    ),
    one(
        "postgres: an error's text is taken literally",
        "stores/sql/postgres/list.sql",
        "strpos(lower(t.error), lower(:error_text::text)) > 0",
        suite("test_by_error_text_taken_literally", "postgres"),
        put="t.error ILIKE '%' || :error_text::text || '%'",
    ),
    one(
        "nats: no two texts share a key",
        "stores/nats/keys.py",
        'return "=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")',
        "tests/stores/nats/test_records.py::test_no_two_texts_share_a_key",
        put='return re.sub(r"[^A-Za-z0-9_-]", "_", text) or "_"',
    ),
    one(
        "postgres: a role or database that may only read is told at once",
        "stores/sql/postgres/driver.py",
        "return await why_read_only(connection, timeout)",
        f"{REFUSALS}test_a_database_whose_sessions_may_only_read",
        put="return None",
    ),
    one(
        "postgres: of several hosts, too",
        "stores/sql/postgres/url.py",
        "if refused is not None:",
        f"{REFUSALS}test_a_role_whose_sessions_may_only_read[role-several hosts]",
        put="if False:",
    ),
    one(
        "postgres: a standby, and a server that may only read for now, are waited for",
        "stores/sql/postgres/failures.py",
        "if source not in _READ_ONLY:",
        f"{REFUSALS}test_a_server_that_may_only_read_for_now_is_waited_for",
        put="if False:",
    ),
    one(
        "postgres: a connection limit is told at once",
        "stores/sql/postgres/driver.py",
        "or at_limit or",
        f"{REFUSALS}test_a_role_without_a_connection_left",
        put="or",
    ),
    one(
        "postgres: a pool at its limit waits for its own connections",
        "stores/sql/postgres/pool.py",
        "if not self._makes_do(error):",
        f"{REFUSALS}test_a_pool_that_reaches_the_limit_makes_do_with_what_it_has",
        put="if True:",
    ),
    one(
        "postgres: a schema's name is an identifier",
        "stores/sql/postgres/url.py",
        "if schema is not None and not _IDENTIFIER.fullmatch(schema):",
        "tests/stores/postgres/test_urls.py::test_refused_by_name",
        put="if False:",
    ),
)

CHOICES = (
    one(
        "names and keys have a length",
        CHECKS,
        "if not isinstance(value, str) or not 1 <= len(value) <= limit:",
        "tests/submitting/test_refusals.py::test_names",
        "tests/submitting/test_refusals.py::test_options",
        put="if not isinstance(value, str):",
    ),
    one(
        "a time has a zone",
        OPTIONS,
        "if value.tzinfo is None or value.utcoffset() is None:",
        "tests/submitting/test_refusals.py::test_options",
        put="if False:",
    ),
    one(
        "a delay is a number within reason",
        CHECKS,
        "not 0 <= value <= LONGEST_DELAY_SECONDS",
        "tests/submitting/test_refusals.py::test_options",
        put="False",
    ),
    one(
        "true is no number",
        CHECKS,
        "if isinstance(value, bool) or not isinstance(value, int) or not low",
        "tests/submitting/test_refusals.py::test_options",
        put="if not isinstance(value, int) or not low",
    ),
    one(
        "unknown settings are refused",
        "engine/config.py",
        'extra="forbid"',
        "tests/test_config.py::test_a_bad_setting_is_refused_by_name",
        put='extra="ignore"',
    ),
    one(
        "a lease is longer than two heartbeats",
        "engine/config.py",
        "if getattr(self, limit) <= 2 * self.heartbeat_seconds:",
        "tests/test_config.py::test_a_bad_setting_is_refused_by_name",
        put="if False:",
    ),
)

OWN = "tests/test_own_queue.py::"

QUEUES = (
    one(
        "a test without a queue does not open the default one",
        "engine/engine.py",
        "        check_default(self.config)\n",
        f"{OWN}test_without_the_fixture_the_default_queue_is_refused",
    ),
    one(
        "init leads to the test's queue",
        "engine/default.py",
        "if _held is None:\n            _set(Engine(config))",
        f"{OWN}test_init_leads_to_the_fixtures_queue",
        put="if True:\n            _set(Engine(config))",
    ),
    one(
        "init does not lead a test to a queue by name",
        "engine/default.py",
        "            check_held(config)\n",
        f"{OWN}test_another_queue_by_name_is_refused_with_the_reason",
    ),
    one(
        "a command that reads makes no queue",
        "cli/session.py",
        "if not creates:",
        "tests/cli/test_reaching.py::test_what_reads_makes_no_queue",
        put="if False:",
    ),
)

GUARDS = (*VALUES, *CUTS, *SEARCHES, *LITERAL, *CHOICES, *QUEUES)
