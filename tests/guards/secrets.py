"""What people read holds no secrets and obeys nobody: masks, escapes, private files."""

from tests.guards.fencing import SUITE, one
from tests.guards.guard import Cut, Guard

REDACT = "core/redact.py"
VIEWS = "server/views.py"
WORDS = "core/words.py"
NOT_FOUND = f"{SUITE}test_what_is_masked_cannot_be_found_out"
MASKED = "tests/server/test_secrets.py::test_secrets_are_masked[memory]"
EVERYWHERE = "tests/server/test_hostile.py::"
HOSTILE = "tests/cli/test_hostile.py::"

MASKS = (
    one(
        "values under secret keys are masked",
        REDACT,
        "MASK if _is_secret(name, item, keys) else _redact(item, keys)",
        "tests/core/test_redact.py::test_values_under_secret_keys",
        MASKED,
        put="_redact(item, keys)",
    ),
    one(
        "passwords in URLs are masked",
        REDACT,
        "text = _mask_urls(text)",
        "tests/core/test_redact.py::test_passwords_in_urls",
        f"{HOSTILE}test_passwords_in_urls_are_masked_everywhere",
        put="pass",
    ),
    one(
        "values of secret keys in text are masked",
        REDACT,
        "_mask_pairs(text, keys)",
        "tests/core/test_redact.py::test_values_of_secret_keys_in_text",
        f"{EVERYWHERE}test_nothing_of_the_corpus_leaves_through_the_api",
        put="text",
        within="def mask_text",
    ),
    one(
        "a NATS token is masked",
        REDACT,
        "if scheme in _NATS or",
        "tests/core/test_redact.py::test_passwords_in_urls",
        put="if",
    ),
    one(
        "half a password is masked",
        REDACT,
        "secret, until = _cut_password_start(text, start, end), end",
        "tests/core/test_redact.py::test_passwords_in_urls",
        put="secret, until = None, end",
    ),
    one(
        "an error is masked before it is cut",
        "core/codec.py",
        "_storable(mask_text(text))",
        f"{EVERYWHERE}test_nothing_of_the_corpus_leaves_through_the_api",
        put="_storable(text)",
    ),
    one(
        "a huge error is masked before it is cut, as far as it is kept",
        "core/codec.py",
        "mask_text(text[-edge:])[_MARGIN:]",
        "tests/core/test_codec.py::TestClipError::test_no_half_of_a_secret_is_left_of_a_huge_error",
        put="text[-limit:]",
    ),
    one(
        "a huge error: what half a secret may be in is not kept",
        "core/codec.py",
        "mask_text(text[-edge:])[_MARGIN:]",
        "tests/core/test_codec.py::TestClipError::test_no_half_of_a_secret_is_left_of_a_huge_error",
        put="mask_text(text[-edge:])",
    ),
    one(
        "a password holds any number of @",
        REDACT,
        'text.rfind("@", start, end)',
        "tests/core/test_redact.py::test_passwords_in_urls",
        put='text.find("@", start, end)',
    ),
    one(
        "api: passwords in URLs are masked whatever a rule of one's own says",
        "server/service.py",
        "redact(own(value), ())",
        "tests/server/test_secrets.py::test_masking_can_be_configured",
        put="own(value)",
    ),
    one(
        "remote: passwords in URLs are masked in errors",
        "api/rest_client.py",
        'mask_text(f"{self.url} cannot be reached: {type(error).__name__} {error}")',
        "tests/test_refused_connections.py::test_a_server_that_cannot_be_reached",
        put='f"{self.url} cannot be reached"',
    ),
    one(
        "search: values under secret keys are not looked at",
        WORDS,
        "not names_secret(str(name), secret_keys) and is_in_value",
        f"{NOT_FOUND}[sqlite]",
        f"{NOT_FOUND}[nats]",
        put="is_in_value",
    ),
    one(
        "search: a text that may be masked is found as a whole only",
        WORDS,
        "text.lower() == small if any(mark in text for mark in _MAY_BE_MASKED) else ",
        f"{NOT_FOUND}[sqlite]",
        f"{NOT_FOUND}[nats]",
    ),
    one(
        "search: values under secret keys are not looked at, postgres",
        "stores/sql/postgres/list.sql",
        "!~ :secret_names",
        f"{NOT_FOUND}[postgres]",
        put="<> :secret_names",
    ),
    one(
        "search: a text that may be masked is found as a whole only, postgres",
        "stores/sql/postgres/list.sql",
        "'[:=]|Bearer '",
        f"{NOT_FOUND}[postgres]",
        put="'never'",
    ),
    one(
        "search: by the value of a secret is refused",
        "engine/filters.py",
        "if redact(value) != value:",
        "tests/server/test_search.py::test_what_cannot_be_searched_for_is_refused",
        "tests/server/test_search.py::test_where_the_application_masks_by_its_own_rule_no_value_is_searched",
        put="if False:",
    ),
    one(
        "search: no values where they are masked by a rule of one's own",
        "server/service.py",
        "self.engine.config.secret_keys if self.settings.redact is None else None",
        "tests/server/test_search.py::test_where_the_application_masks_by_its_own_rule_no_value_is_searched",
        put="self.engine.config.secret_keys",
    ),
    one(
        "csv: a spreadsheet is given no formulas",
        "core/csv_text.py",
        "value.startswith(_OBEYED)",
        "tests/server/test_search.py::test_a_spreadsheet_is_given_no_formulas",
        put="False",
    ),
    one("api: payloads are redacted", VIEWS, "redact(task.kwargs)", MASKED, put="task.kwargs"),
    one("api: tags are redacted", VIEWS, "redact(task.tags)", MASKED, put="task.tags"),
    one(
        "api: results are redacted",
        VIEWS,
        "redact(task.result)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="task.result",
    ),
    one(
        "api: errors are masked",
        VIEWS,
        "mask_text(task.error)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="task.error",
    ),
    one(
        "api: earlier attempts are masked",
        VIEWS,
        "name: mask_text(value)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="name: value",
    ),
    one(
        "api: reasons for waiting are masked",
        VIEWS,
        "mask_text(each.text)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="each.text",
    ),
    one(
        "api: the audit trail is masked",
        VIEWS,
        "detail=redact(detail)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="detail=detail",
    ),
    one(
        "api: refusals are masked",
        "server/problems.py",
        "redact(body)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="body",
    ),
    one(
        "metrics: names are masked",
        "core/exposition.py",
        "mask_text(text)",
        f"{EVERYWHERE}test_no_secret_leaves_through_the_api",
        put="text",
    ),
    one(
        "metrics: a name cannot add a line",
        "core/exposition.py",
        '.replace("\\n", "\\\\n")',
        "tests/server/test_live.py::test_metrics[memory]",
    ),
    one(
        "metrics: a name cannot end its label",
        "core/exposition.py",
        ".replace('\"', '\\\\\"')",
        "tests/server/test_live.py::test_metrics[memory]",
    ),
    one(
        "cli: values under secret keys are masked in lists",
        "cli/record.py",
        "values[name] = redact(values[name])",
        f"{HOSTILE}test_values_under_secret_keys_are_masked",
        put="pass",
    ),
    one(
        "cli: payloads are redacted",
        "cli/detail.py",
        "redact(task.kwargs)",
        f"{HOSTILE}test_values_under_secret_keys_are_masked",
        put="task.kwargs",
    ),
    Guard(
        "cli: tags are redacted",
        (Cut("cli/detail.py", "redact(task.tags)", "task.tags"), Cut("cli/text.py", "text = mask_text(text)", "pass")),
        (f"{HOSTILE}test_values_under_secret_keys_are_masked",),
    ),
    one(
        "cli: results are redacted",
        "cli/detail.py",
        "redact(task.result or {})",
        f"{HOSTILE}test_values_under_secret_keys_are_masked",
        put="(task.result or {})",
    ),
    one(
        "cli: passwords in URLs are masked in what is printed",
        "cli/text.py",
        "text = mask_text(text)",
        f"{HOSTILE}test_passwords_in_urls_are_masked_everywhere",
        put="pass",
    ),
    one(
        "cli: passwords in URLs are masked in JSON",
        "cli/output.py",
        "return mask_text(value)",
        f"{HOSTILE}test_passwords_in_urls_are_masked_everywhere",
        put="return value",
    ),
    one(
        "logs: secrets are masked in JSON, in tracebacks too",
        "cli/logs.py",
        "redact(entry)",
        "tests/test_events.py::test_passwords_in_urls_are_masked_in_json_logs",
        "tests/test_events.py::test_logs_hold_no_passwords_and_no_forged_lines",
        put="entry",
    ),
    one(
        "logs: a message cannot forge a line",
        "cli/logs.py",
        "clean(record.getMessage())",
        "tests/test_events.py::test_logs_hold_no_passwords_and_no_forged_lines",
        put="record.getMessage()",
    ),
    one(
        "logs: a traceback cannot forge a line",
        "cli/logs.py",
        "clean(_trace(self, record), lines=True)",
        "tests/test_events.py::test_logs_hold_no_passwords_and_no_forged_lines",
        put="_trace(self, record)",
    ),
)

ESCAPES = (
    one(
        "cli: control and direction characters are escaped",
        "cli/text.py",
        "if unicodedata.category(character) not in _UNSAFE:",
        f"{HOSTILE}test_control_and_bidi_characters_are_shown_escaped",
        f"{HOSTILE}test_nothing_of_it_reaches_the_terminal",
        put="if True:",
    ),
    one(
        "cli: markup means nothing",
        "cli/terminal.py",
        "markup=False",
        f"{HOSTILE}test_markup_means_nothing",
        put="markup=True",
    ),
    one(
        "cli: JSON is plain ASCII",
        "cli/output.py",
        "ensure_ascii=True, allow_nan",
        f"{HOSTILE}test_json_is_exact_and_plain_ascii",
        put="ensure_ascii=False, allow_nan",
    ),
)

FILES = (
    one(
        "sqlite: only the owner may read the file",
        "stores/sql/sqlite/filesystem.py",
        "0o600",
        "tests/stores/sqlite/test_file.py::test_only_the_owner_may_read_the_file",
        put="0o666",
    ),
    one(
        "sqlite: only the owner may ring",
        "stores/sql/sqlite/notify.py",
        "os.mkfifo(draft, 0o600)",
        "tests/stores/sqlite/test_file.py::test_only_the_owner_may_read_the_file",
        put="os.mkfifo(draft, 0o666)",
    ),
    one(
        "sqlite: only the owner sees who listens",
        "stores/sql/sqlite/notify.py",
        "mode=0o700",
        "tests/stores/sqlite/test_file.py::test_only_the_owner_may_read_the_file",
        put="mode=0o777",
    ),
    one(
        "sqlite: a network file system is refused",
        "stores/sql/sqlite/filesystem.py",
        "if kind is not None:",
        "tests/stores/sqlite/test_file.py::test_a_network_file_system_is_refused",
        put="if False:",
        within="def prepare",
    ),
)

GUARDS = (*MASKS, *ESCAPES, *FILES)
