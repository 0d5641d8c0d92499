"""The file with the alert rules, and with whom to tell."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from tasklib.core.alerts import AlertRule, Duration
from tasklib.core.errors import InvalidConfig

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def _with_variables(text: Any) -> Any:
    """`${NAME}` is the variable of that name, so that a secret need not be in the file."""
    if not isinstance(text, str):
        return text

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ValueError(f"the variable {found[1]} is not set")
        return os.environ[found[1]]

    return _VARIABLE.sub(value, text)


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known or _CONTROLS.search(url) or " " in url:
        raise ValueError("a URL that begins with http:// or https:// is expected")
    return url


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or _CONTROLS.search(value) or not value.isascii():
            raise ValueError(f"{name!r:.60}: not a header of HTTP")
    return headers


_Text = Annotated[str, BeforeValidator(_with_variables)]


class AlertFile(BaseModel):
    """What is told to whom. Nothing of the webhook but its host is ever shown."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    webhook: Annotated[_Text, AfterValidator(_check_url)] | None = Field(default=None, repr=False)
    headers: Annotated[dict[str, _Text], AfterValidator(_check_headers)] = Field(default_factory=dict, repr=False)
    command: tuple[Annotated[str, Field(min_length=1)], ...] | None = Field(default=None, min_length=1, repr=False)
    """A program and its arguments. No shell."""
    timeout: Duration = Field(default=10.0, gt=0, le=300)
    """How long the webhook may take to answer, or the command to end."""
    rules: tuple[AlertRule, ...] = Field(alias="rule", min_length=1)

    @model_validator(mode="after")
    def _check(self) -> AlertFile:
        if (self.webhook is None) == (self.command is None):
            raise ValueError("webhook: name either a webhook or a command")
        if self.headers and self.webhook is None:
            raise ValueError("headers: they go with a webhook")
        names = [rule.name for rule in self.rules]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"rule: {twice!r} is the name of two rules")
        return self

    @property
    def shown_target(self) -> str:
        """Whom it tells, without what may be secret."""
        if self.command is not None:
            return f"command {self.command[0]}"
        parts = urlsplit(self.webhook or "")
        return f"webhook {parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


def read_alert_file(path: Path) -> AlertFile:
    """Raises InvalidConfig, which names file, rule and field."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # TOML's errors and wrong encodings name a place, not a value
        raise _refused(path, f"is not TOML: {error}") from None
    try:
        return AlertFile(**found)
    except ValidationError as error:
        lines = [
            f"{_place(item['loc'], found)}{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise _refused(path, "\n".join(lines)) from None


def _place(place: tuple[str | int, ...], found: dict[str, Any]) -> str:
    """Where in the file: a rule by its name, if it has one."""
    words = [str(part) for part in place]
    if len(place) > 1 and place[0] == "rule" and isinstance(place[1], int):
        rule = found["rule"][place[1]]
        name = rule.get("name") if isinstance(rule, dict) else None
        words[:2] = [f"rule {name!r:.60}" if name else f"rule {place[1] + 1}"]
    return f"{'.'.join(words)}: " if words else ""


def _refused(path: Path, reason: str) -> InvalidConfig:
    return InvalidConfig(f"alerts_file: {path}: {reason}", field="alerts_file")
