"""Settings: read once, checked aloud, passed on as values."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    field_validator,
    model_validator,
)

from tasklib.core import codec
from tasklib.core.durations import in_seconds
from tasklib.core.errors import InvalidConfig
from tasklib.core.redact import SECRET_KEYS, mask_text, redact
from tasklib.core.retry import LONGEST_DELAY, RetryPolicy
from tasklib.engine import middleware as around
from tasklib.engine.middleware import Middleware

ENV_PREFIX = "TASKLIB_"
SCHEMES = ("sqlite", "memory", "postgresql", "postgres", "nats")
"""Of database URLs; a driver may follow: `postgresql+asyncpg://`."""
TESTING = f"{ENV_PREFIX}TESTING"
_PYTEST = ("PYTEST_VERSION", "PYTEST_CURRENT_TEST")


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is expected, not true or false")
    return value


def _listed(value: Any) -> Any:
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, (list, tuple)):
        items = tuple(item.strip() if isinstance(item, str) else item for item in items)
        if "" in items:
            raise ValueError("an empty key would mask everything")
    return items


Whole = Annotated[int, BeforeValidator(_no_bool)]
Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Duration = Annotated[Number, BeforeValidator(in_seconds)]
WholeDuration = Annotated[Whole, BeforeValidator(in_seconds)]


class Config(BaseModel):
    """Every field can also be set by a variable, `TASKLIB_` and its name in capitals; arguments win. Seconds may be
    given as a timedelta."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    database_url: str = Field(default="sqlite:///tasklib.db", repr=False, min_length=1)
    """`sqlite:///file.db`, `postgresql://...`, `nats://...` or `memory://`."""
    max_retries: Whole = Field(default=3, ge=-1, le=2**31 - 2)
    """Retries after the first attempt; -1 is unlimited."""
    base_retry_delay_seconds: Duration = Field(default=5.0, ge=0, le=1e9)
    retry_backoff_multiplier: Number = Field(default=2.0, ge=0, le=1e6)
    max_retry_delay_seconds: Duration = Field(default=LONGEST_DELAY, ge=0, le=1e9)
    retry_jitter: Number = Field(default=0.0, ge=0, le=1)
    """0.2 spreads each delay by ±20 %."""
    lock_timeout_seconds: Duration = Field(default=600.0, gt=0, le=1e9)
    """The lease: how long a claim holds without being extended."""
    default_task_timeout_seconds: WholeDuration | None = Field(default=None, ge=1, le=2**31 - 1)
    worker_id: str | None = Field(default=None, min_length=1, max_length=200)
    """A name; what is stored adds a random part for each start of the process."""
    app_version: str | None = Field(default=None, min_length=1, max_length=100)
    """Of the application that a worker runs, for the marks of deploys; otherwise that of the package of its tasks."""
    heartbeat_seconds: Duration = Field(default=10.0, gt=0, le=1e9)
    dead_after_seconds: Duration = Field(default=30.0, gt=0, le=1e9)
    """A worker silent for longer is taken for dead."""
    shutdown_grace_seconds: Duration = Field(default=30.0, ge=0, le=1e9)
    """How long running tasks may go on after a stop signal."""
    keep_completed_seconds: Duration | None = Field(default=None, ge=0)
    """Retention of completed and cancelled tasks; None keeps them for ever. Never less than a submit may take."""
    keep_failed_seconds: Duration | None = Field(default=None, ge=0)
    max_payload_bytes: Whole = Field(default=codec.MAX_BYTES, ge=1, le=256 * 1024 * 1024)
    max_result_bytes: Whole = Field(default=codec.MAX_BYTES, ge=1, le=256 * 1024 * 1024)
    pool_size: Whole = Field(default=10, ge=1, le=1000)
    """Most connections of one process to a database server."""
    redact_keys: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Keys, beside those like `password`, whose values are masked wherever people read tasks. In the variable
    separated by commas."""
    call_timeout_seconds: Duration = Field(default=30.0, gt=0, le=3600)
    """How long one call of a worker to the database may take, reconnecting included."""
    submit_timeout_seconds: Duration = Field(default=5.0, gt=0, le=3600)
    """The same for an application's own calls, submits and reads: a web request cannot wait for long."""
    middleware: Annotated[Sequence[Middleware], PlainValidator(around.load)] = ()
    """The application's own code around submits and runs, the outermost first. In the variable `module:name`, separated
    by commas."""
    alerts_file: Path | None = None
    """The rules for alerts, which workers and `tasklib serve` check, and whom they tell."""

    if not TYPE_CHECKING:  # type checkers derive the arguments from the fields

        def __init__(self, **values: Any) -> None:
            _refuse_misspelt_variables()
            try:
                super().__init__(**(_from_environment() | values))
            except ValidationError as error:
                raise _refusal(error) from None

    @field_validator("database_url")
    @classmethod
    def _check_scheme(cls, url: str) -> str:
        if "://" not in url or _scheme(url) not in SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise ValueError(f"cannot use {mask_text(url)!r:.120}; known are {known}")
        return url

    @model_validator(mode="after")
    def _check_heartbeat(self) -> Config:
        if "heartbeat_seconds" in self.model_fields_set:
            for limit in ("lock_timeout_seconds", "dead_after_seconds"):
                if getattr(self, limit) <= 2 * self.heartbeat_seconds:
                    raise ValueError(f"heartbeat_seconds: {limit} must be longer than two heartbeats")
        return self

    @property
    def scheme(self) -> str:
        """One of SCHEMES."""
        return _scheme(self.database_url)

    @property
    def beat_seconds(self) -> float:
        """How often a worker really reports: often enough for the lease and for being noticed as alive."""
        return min(self.heartbeat_seconds, self.lock_timeout_seconds / 3, self.dead_after_seconds / 3)

    @property
    def recovery_seconds(self) -> float:
        """How often to look for what dead workers hold."""
        return min(10.0, max(0.25, min(self.lock_timeout_seconds, self.dead_after_seconds) / 3))

    @property
    def default_retry(self) -> RetryPolicy:
        return RetryPolicy(
            base=self.base_retry_delay_seconds,
            multiplier=self.retry_backoff_multiplier,
            cap=self.max_retry_delay_seconds,
            jitter=self.retry_jitter,
        )

    def redact(self, value: Any) -> Any:
        """A copy of plain JSON values in which secrets are masked."""
        return redact(value, self.secret_keys)

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """Values under names like these are masked."""
        return (*SECRET_KEYS, *self.redact_keys)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were given, by the program or the environment."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @property
    def shown_url(self) -> str:
        """The database URL without its password."""
        return mask_text(self.database_url)

    @property
    def place(self) -> str:
        """Which queue this is, for people: the whole path of a file, else the URL without its password."""
        scheme, _, rest = self.database_url.partition(":///")
        return str(Path(unquote(rest.partition("?")[0])).absolute()) if scheme == "sqlite" else self.shown_url


def _scheme(url: str) -> str:
    return url.partition("://")[0].partition("+")[0].lower()


def names_queue(config: Config) -> bool:
    """Whether the program itself says which queue it means; if not, the environment or the default does."""
    given = "database_url" in config.model_fields_set
    return given and config.database_url != os.environ.get(f"{ENV_PREFIX}DATABASE_URL")


def is_missing(config: Config) -> bool:
    """Whether it is a file that is not there yet."""
    return config.database_url.startswith("sqlite:///") and not Path(config.place).exists()


def check_default(config: Config) -> None:
    """A test that was to have a queue of its own, and has none, must not write into the file that is here."""
    if "database_url" not in config.model_fields_set and _is_test():
        raise InvalidConfig(
            f"database_url: a test does not use the default queue ({config.shown_url}). Use the fixture tasklib_queue, "
            f"which is an empty queue in memory, or name a queue for tests in {ENV_PREFIX}DATABASE_URL; "
            f"{TESTING}=0 allows the default",
            field="database_url",
        )


def _is_test() -> bool:
    """As the variable says; without it, whether pytest is running here or has started this process."""
    said = os.environ.get(TESTING)
    if said is not None:
        return said.lower() not in ("", "0", "false", "no", "off")
    return any(name in os.environ for name in _PYTEST)


def _from_environment() -> dict[str, str]:
    variables = {name: f"{ENV_PREFIX}{name.upper()}" for name in Config.model_fields}
    return {name: os.environ[variable] for name, variable in variables.items() if variable in os.environ}


def _refuse_misspelt_variables() -> None:
    """Other programs of ours have variables too, so only those that look like a setting are refused."""
    known = {f"{ENV_PREFIX}{name.upper()}": name for name in Config.model_fields}
    for variable in os.environ:
        if variable.startswith(ENV_PREFIX) and variable not in known:
            close = difflib.get_close_matches(variable, known, n=1, cutoff=0.75)
            if close:
                raise InvalidConfig(f"{variable}: unknown setting; did you mean {close[0]}?", field=variable)


def _refusal(error: ValidationError) -> InvalidConfig:
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        key = ".".join(map(str, item["loc"])) or "Config"
        reason = "unknown setting" if item["type"] == "extra_forbidden" else item["msg"].removeprefix("Value error, ")
        lines.append(f"{key}: {reason}" if not reason.startswith("heartbeat_seconds:") else reason)
    first = str(lines[0].split(":", 1)[0])
    return InvalidConfig("\n".join(lines), field=first)
