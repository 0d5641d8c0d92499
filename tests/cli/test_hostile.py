"""Names, payloads and errors are other people's text: printed, never obeyed; and secrets stay secret."""

import json

import pytest

from tasklib.cli.text import clean
from tasklib.core.options import SubmitOptions
from tests.cli.queue import Queue
from tests.cli.running import Cli
from tests.core.test_redact import SECRET_NAMES
from tests.secrets import SECRET_TEXTS, SECRET_URLS

EVIL = "\x1b[2J\x1b]0;title\x07[bold red]x[/] :smile: \u202e\u2066\u200b\r\n\x9b31m"
SECRET = "postgresql://ada:geheim@db.example.com/shop"


def test_control_and_bidi_characters_are_shown_escaped():
    assert clean("a\x1b[31m\r\n\t\u202eb\x9b\u2028\ud800") == r"a\x1b[31m\r\n\t\u202eb\x9b\u2028\ud800"
    assert clean("a\tb\nc\r", lines=True) == "a    b\nc\\r"
    assert clean("Grüße, 世界 🙂") == "Grüße, 世界 🙂"


@pytest.mark.parametrize("command", [["list"], ["show"], ["stats"], ["doctor"]])
def test_nothing_of_it_reaches_the_terminal(cli: Cli, command: list[str]):
    task_id = cli("submit", EVIL, f"key{EVIL}={EVIL}", "--tag", f"t={EVIL}", "--key", EVIL).out.strip()
    ran = cli(*command, *([task_id] if command == ["show"] else []))
    assert ran.code == 0
    assert not set(ran.out) & set("\x1b\x07\x9b\r\u202e\u2066\u200b")
    assert "[bold red]x[/] :smile:" in ran.out  # neither markup nor emoji codes mean anything


def test_errors_are_escaped_too(cli: Cli, queue: Queue):
    task_id = queue.finished("break_down", text=EVIL)
    for ran in (cli("list"), cli("show", str(task_id))):
        assert not set(ran.out) & set("\x1b\x07\x9b\r\u202e\u2066")


def test_markup_means_nothing(cli: Cli):
    ran = cli("submit", "x", "--key", "[bold red]k[/]", "--json")
    assert ran.code == 0
    again = cli("submit", "x", "--key", "[bold red]k[/]")
    assert "[bold red]k[/]" in again.err
    assert "[bold red]k[/]" in cli("show", ran.data["id"]).out


def test_json_is_exact_and_plain_ascii(cli: Cli):
    cli("submit", EVIL)
    ran = cli("list", "--json")
    assert ran.out.isascii()
    assert "\x1b" not in ran.out
    assert json.loads(ran.out)["tasks"][0]["name"] == EVIL


def test_passwords_in_urls_are_masked_everywhere(cli: Cli, queue: Queue):
    failed = str(queue.finished("break_down", text=f"cannot reach {SECRET}"))
    cli("submit", SECRET, f"url={SECRET}", "--tag", f"db={SECRET}")
    outputs = [cli(*command.split()) for command in ("list", "list --json", "stats", "stats --json", "doctor")]
    outputs += [cli("show", failed), cli("show", failed, "--json"), cli("pause", SECRET)]
    outputs += [cli("list", SECRET), cli("show", SECRET), cli("list", "--database-url", f"x{SECRET}")]
    for ran in outputs:
        assert "geheim" not in ran.out + ran.err
        assert "ada:***@" in ran.out + ran.err


def test_nothing_of_the_corpus_is_printed(cli: Cli, queue: Queue):
    texts = [*SECRET_URLS, *SECRET_TEXTS]
    failed = str(queue.finished("break_down", text="\n".join(texts)))
    payload = json.dumps({"texts": texts, **dict.fromkeys(SECRET_NAMES, "geheim")})
    made = cli("submit", "x", "--payload", payload, "--tag", f"x={texts[0]}").out.strip()
    outputs = [cli("list", *form) for form in ((), ("--json",))]
    outputs += [cli("show", each, *form) for each in (failed, made) for form in ((), ("--json",))]
    outputs += [cli("list", "--debug", "--database-url", f"x{url}") for url in SECRET_URLS[:3]]
    for ran in outputs:
        assert "geheim" not in ran.out + ran.err


def test_nothing_of_the_corpus_is_printed_of_flows_and_schedules(cli: Cli, queue: Queue):
    texts = [*SECRET_URLS, *SECRET_TEXTS]
    payload = json.dumps({"texts": texts, **dict.fromkeys(SECRET_NAMES, "geheim"), **dict.fromkeys(texts, 1)})
    add = ("schedule", "add", "s", "x", "--payload", payload, "--tag", f"x={texts[0]}")
    every = ("--every", "1h")
    outputs = [cli(*add, *every, *form) for form in ((), ("--json",))]
    outputs += [cli("schedule", "trigger", "s"), cli("schedule", "pause", "s", "--json"), cli("schedule", "show", "no")]
    outputs += [cli("schedule", *what, *form) for what in (["show", "s"], ["list"]) for form in ((), ("--json",))]
    outputs += [cli(*add, "--cron", text) for text in texts[:3]] + [cli(*add, *every, "--timezone", texts[0])]
    flows = [queue.flow(name, texts) for name in texts if len(name) <= 255]
    outputs += [cli("flow", "list", *form) for form in ((), ("--json",))]
    for flow_id, child in flows[-3:]:
        for form in ((), ("--json",)):
            outputs += [cli("flow", "show", flow_id, *form), cli("show", child, *form)]
        outputs += [cli("flow", "cancel", flow_id, "--yes", "--json"), cli("show", child)]
    for ran in outputs:
        assert "geheim" not in ran.out + ran.err, ran
    assert all(ran.out for ran in outputs[-4:]), "there was something to be seen"


def test_values_under_secret_keys_are_masked(cli: Cli, queue: Queue):
    payload = {"user": "ada", "password": "geheim", "deep": [{"api_key": "geheim", "accessToken": "geheim"}]}
    task_id = cli("submit", "x", "--payload", json.dumps(payload), "--tag", "auth_token=geheim").out.strip()
    # What is no text under such a key is not found in the printed text: it has to be masked before.
    nested = queue.add(
        "y", options=SubmitOptions(tags={"auth_token": ["one", "geheim"]}), user="ada", password=["geheim"]
    )
    finished = queue.finished("log_in", user="ada")
    outputs = [cli("show", str(each), *form) for each in (task_id, nested, finished) for form in ((), ("--json",))]
    for ran in (*outputs, cli("list", "--json")):
        assert "geheim" not in ran.out
        assert "ada" in ran.out
