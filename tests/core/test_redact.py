"""Secrets do not get into what people read."""

import time

import pytest

from tasklib.core import redact as redact_module
from tasklib.core.redact import mask_urls, redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ada:geheim@db/shop", "postgresql://ada:***@db/shop"),
        ("cannot reach 'redis://:geheim@db:6379/0', sorry", "cannot reach 'redis://:***@db:6379/0', sorry"),
        ("postgresql+asyncpg://ada:ge@heim@h1:1,h2:2/shop", "postgresql+asyncpg://ada:***@h1:1,h2:2/shop"),
        ("postgresql://ada:ge/h?e#im@db/shop", "postgresql://ada:***@db/shop"),
        ("postgresql://db/shop?user=ada&password=geheim&x=1", "postgresql://db/shop?user=ada&password=***&x=1"),
        ("postgresql://db/shop?sslpassword=geheim", "postgresql://db/shop?sslpassword=***"),
        ("two: a://u:geheim@h b://u:geheim@h", "two: a://u:***@h b://u:***@h"),
    ],
)
def test_passwords_in_urls(text: str, shown: str):
    assert mask_urls(text) == shown


@pytest.mark.parametrize(
    "text",
    ["http://localhost:8080/mail?to=ada@example.com", "https://ada@example.com/x", "12:30 ada@example.com", "a=b"],
)
def test_what_is_no_password_stays(text: str):
    assert mask_urls(text) == text


@pytest.mark.parametrize(
    "text", ["a" * 10**6 + "://", "a://b:" * 170_000, "://" + "a:" * 500_000, "?" + "p" * 10**6 + "="]
)
def test_hostile_text_costs_no_more_than_its_length(text: str):
    begun = time.process_time()
    mask_urls(text)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "key",
    [
        *("password", "Password", "db_password", "dbPassword", "passwd", "client-secret", "token", "accessToken"),
        *(
            "api_key",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "private_key",
            "Authorization",
            "Set-Cookie",
            "dsn",
            "SENTRY_DSN",
        ),
    ],
)
def test_values_under_secret_keys(key: str):
    assert redact({"deep": [{key: "geheim"}]}) == {"deep": [{key: "***"}]}
    assert redact({key: {"all": "of it"}}) == {key: "***"}


@pytest.mark.parametrize("key", ["name", "friends_name", "monkey", "author", "pass", "key"])
def test_other_keys_stay(key: str):
    assert redact({key: "shown"}) == {key: "shown"}


def test_a_list_of_ones_own():
    assert redact({"iban": "DE02", "password": "x"}, keys=["iban"]) == {"iban": "***", "password": "x"}


def test_the_original_is_left_alone():
    value = {"password": "geheim", "list": [1]}
    assert redact(value)["list"] == [1]
    assert value["password"] == "geheim"


def test_names_as_long_as_a_payload_are_masked_and_not_remembered():
    before = redact_module._known.cache_info().currsize
    name = "password" * 1000
    assert redact({name: "s3cret"}) == {name: "***"}
    assert redact_module._known.cache_info().currsize == before
