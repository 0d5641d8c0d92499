"""Secrets do not get into what people read."""

import time

import pytest

from tasklib.core import redact as redact_module
from tasklib.core.redact import mask_text, redact
from tests.secrets import SECRET_TEXTS, SECRET_URLS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ada:geheim@db/shop", "postgresql://ada:***@db/shop"),
        ("cannot reach 'redis://:geheim@db:6379/0', sorry", "cannot reach 'redis://:***@db:6379/0', sorry"),
        ("postgresql+asyncpg://ada:ge@heim@h1:1,h2:2/shop", "postgresql+asyncpg://ada:***@h1:1,h2:2/shop"),
        ("postgresql://ada:ge/h?e#im@db/shop", "postgresql://ada:***@db/shop"),
        ("postgresql://ada:ge'h\"eim@db/shop", "postgresql://ada:***@db/shop"),
        ("postgresql://db/shop?user=ada&password=geheim&x=1", "postgresql://db/shop?user=ada&password=***&x=1"),
        ("postgresql://db/shop?sslpassword=geheim", "postgresql://db/shop?sslpassword=***"),
        ("postgresql://db/shop?password=ge'heim&x=1", "postgresql://db/shop?password=***&x=1"),
        ("two: a://u:geheim@h b://u:geheim@h", "two: a://u:***@h b://u:***@h"),
        ("nats://geheim@h1:4222,nats://ada:geheim@h2", "nats://***@h1:4222,nats://ada:***@h2"),
        ("options.nats://geheim@h1", "options.nats://***@h1"),
        ("git+https://geheim@h1", "git+https://***@h1"),
        ("nats://ge/heim@h:4222", "nats://***@h:4222"),
        ("tls://geheim@h:4222/queue", "tls://***@h:4222/queue"),
        ("https://ghp_geheim@git.example.com/x.git", "https://***@git.example.com/x.git"),
        ("smtp://ada@example.com:geheim@mail:25", "smtp://ada@example.com:***@mail:25"),
        ("http://h:80/x|postgresql://ada:geheim@h", "http://h:80/x|postgresql://ada:***@h"),
        ("1http://ada:geheim@h", "1http://ada:***@h"),
        ("postgresql://ada:12345@db/shop", "postgresql://ada:***@db/shop"),
        ("got 'postgresql://ada:gehei...", "got 'postgresql://ada:***"),
        ("postgresql://ada:ge heim", "postgresql://ada:*** heim"),
        ("postgresql://ada:12345/6@db/shop", "postgresql://ada:***@db/shop"),
    ],
)
def test_passwords_in_urls(text: str, shown: str):
    assert mask_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host=db user=ada password=geheim", "host=db user=ada password=***"),
        ("password='ge\\'heim' port=1", "password=*** port=1"),
        ("password='ge'heim' port=1", "password=*** port=1"),
        ("Login(user='ada', password=\"it's geheim\")", "Login(user='ada', password=***)"),
        ("{'password': 'ge heim', 'user': 'ada'}", "{'password': ***, 'user': 'ada'}"),
        ('{"user":"ada","pin":1234,"x":1}', '{"user":"ada","pin":***,"x":1}'),
        ('{"credentials": {"all": "of it"}}', '{"credentials": ***'),
        ('"{\\"token\\": \\"ge heim\\", \\"x\\": 1}"', '"{\\"token\\": ***, \\"x\\": 1}"'),
        ("    password = 'geheim'", "    password = ***"),
        ("error: password=geheim", "error: password=***"),
        ("Authorization: Basic geheim==", "Authorization: Basic ***"),
        ("cookie: sid=geheim; x=y", "cookie: ***"),
        ("sent 'Bearer geheim' to h", "sent 'Bearer ***' to h"),
    ],
)
def test_values_of_secret_keys_in_text(text: str, shown: str):
    assert mask_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("http://localhost:8080/mail?to=ada@example.com", "ssh://ada@example.com/x", "12:30 ada@example.com", "a=b"),
        *(
            "postgresql://ada@db/shop",
            "https://example.com/@ada",
            "http://[::1]:80/?x=a@b",
            "nats://[::1]:4222",
            "nats://h1:1,h2:2",
            "http://h:80.",
        ),
        *("sqlite:////home/a@b/x.db"),
        *("token: Field required", "tokens = count(text)", "token = next(tokens)", "max_tokens=100", "auth=None"),
        *("author=ada", "pinned=1", "Authorization: missing", "a bearer token", "'password': None", "password:"),
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert mask_text(text) == text


@pytest.mark.parametrize("secret", SECRET_URLS + SECRET_TEXTS)
def test_the_corpus(secret: str):
    for text in (secret, f"cannot reach {secret!r}: refused", f"({secret})", f"{secret}\nand {secret}"):
        assert "geheim" not in mask_text(text)


@pytest.mark.parametrize(
    "text",
    [
        *("a" * 10**6 + "://", "a://b:" * 170_000, "://" + "a:" * 500_000, "?" + "p" * 10**6 + "="),
        *("http://h:80/" * 80_000 + "@", "x://a@" * 160_000, ",a" * 500_000 + "://", "nats://" + "a," * 500_000 + "@"),
        *(
            'password="' * 100_000,
            "password='\\" * 100_000,
            "pwd={" * 200_000,
            '"token":' * 120_000,
            "Bearer " * 100_000,
        ),
        "authorization: " * 60_000,
    ],
)
def test_hostile_text_costs_no_more_than_its_length(text: str):
    begun = time.process_time()
    mask_text(text)
    assert time.process_time() - begun < 10


SECRET_NAMES = [
    *("password", "Password", "db_password", "dbPassword", "passWord", "passwd", "pwd", "DB_PWD", "passphrase"),
    *("client-secret", "clientsecret", "token", "accessToken", "authtoken", "tokens", "credentials", "awsCredential"),
    *("api_key", "API_KEY", "apiKey", "APIKey", "apikey", "x-api-key", "private_key", "access_key", "awsAccessKeyId"),
    *("Authorization", "Set-Cookie", "dsn", "SENTRY_DSN", "auth", "OAuth2", "bearer", "connection_string"),
    *("ConnectionString", "pin", "pin_code", "userPIN", "card", "card_number", "creditCard"),
]
OTHER_NAMES = [
    *("name", "friends_name", "monkey", "author", "authority", "authenticated", "authorized", "pass", "key"),
    *("pinned", "spin", "shipping", "opinion", "cardinality", "wildcard", "discard", "cardio"),
    *("tokenizer", "tokenize", "secretary", "cookiecutter", "forbearance", "passage"),
]


@pytest.mark.parametrize("key", SECRET_NAMES)
def test_values_under_secret_keys(key: str):
    assert redact({"deep": [{key: "geheim"}]}) == {"deep": [{key: "***"}]}
    assert redact({key: {"all": "of it"}}) == {key: "***"}


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_other_keys_stay(key: str):
    assert redact({key: "shown"}) == {key: "shown"}


def test_a_number_is_a_secret_unless_it_counts():
    assert redact({"pin": 1234, "card": 0}) == {"pin": "***", "card": "***"}
    counts = {"max_tokens": 100, "tokens_used": 7.5, "cards": 3}
    assert redact(counts) == counts


@pytest.mark.parametrize("value", [None, True, False, "", [], {}])
def test_nothing_yes_and_no_are_no_secrets(value: object):
    assert redact({"password": value}) == {"password": value}


def test_text_anywhere_in_a_value():
    url = "postgresql://ada:geheim@db"
    assert redact({url: [url, {"x": url}]}) == {mask_text(url): [mask_text(url), {"x": mask_text(url)}]}


def test_a_list_of_ones_own():
    assert redact({"iban": "DE02", "password": "x"}, keys=["iban"]) == {"iban": "***", "password": "x"}
    assert redact({"пароль": "x", "name": "ada"}, keys=["пароль"]) == {"пароль": "***", "name": "ada"}
    assert redact({"name": "ada"}, keys=["-"]) == {"name": "ada"}


def test_the_original_is_left_alone():
    value = {"password": "geheim", "list": [1]}
    assert redact(value)["list"] == [1]
    assert value["password"] == "geheim"


def test_names_as_long_as_a_payload_are_masked_and_not_remembered():
    before = redact_module._known.cache_info().currsize
    name = "password" * 1000
    assert redact({name: "s3cret"}) == {name: "***"}
    assert redact_module._known.cache_info().currsize == before
