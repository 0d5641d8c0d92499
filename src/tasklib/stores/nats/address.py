"""Where a queue lives: `nats://host:4222,host:4222?bucket=tasklib&replicas=3`, with the options a URL may carry."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tasklib.core.errors import InvalidConfig

_PORT = 4222
_BUCKET = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SWITCHES = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}
_OPTIONS = ("bucket", "replicas", "max_bytes", "tls", "tls_ca", "tls_cert", "tls_key", "credentials", "token")


@dataclass(frozen=True, slots=True)
class Address:
    servers: tuple[str, ...]
    """`nats://host:port`, without secrets."""
    bucket: str = "tasklib"
    replicas: int | None = None
    """None: one for a new bucket, whatever it has for an existing one."""
    max_bytes: int | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def stream(self) -> str:
        return f"KV_{self.bucket}"

    @property
    def prefix(self) -> str:
        """What the bucket's keys become subjects with."""
        return f"$KV.{self.bucket}."

    def __str__(self) -> str:
        return f"{','.join(self.servers)} (bucket {self.bucket})"

    def context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
            if self.tls_cert is not None:
                context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidConfig(f"the certificates of the NATS URL cannot be used: {error}", field="tls_ca") from None
        return context


def parse(url: str) -> Address:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refused(f"not a NATS URL: {error}") from None
    if parts.scheme != "nats":
        raise _refused(f"a NATS URL starts with nats://, got {parts.scheme}://")
    if parts.path.strip("/") or parts.fragment:
        raise _refused("a NATS URL names servers only: nats://host:4222?bucket=name")
    userinfo, _, hosts = parts.netloc.rpartition("@")
    user, colon, password = userinfo.partition(":")
    options = _options(parts.query)
    token = options.pop("token", None)
    if user and not colon:  # as NATS has it: a lone word before the @ is a token
        token, user = unquote(user), ""
    tls = _switch("tls", options.pop("tls", "false")) or any(name.startswith("tls_") for name in options)
    if "tls_key" in options and "tls_cert" not in options:
        raise InvalidConfig("tls_key needs tls_cert", field="tls_key")
    for name in ("tls_ca", "tls_cert", "tls_key", "credentials"):
        if name in options and not Path(options[name]).is_file():
            raise InvalidConfig(f"{name}: no file {options[name]!r:.200}", field=name)
    bucket = options.pop("bucket", "tasklib")
    if not _BUCKET.fullmatch(bucket):
        raise InvalidConfig(f"bucket: letters, digits, - and _, at most 128; got {bucket!r:.80}", field="bucket")
    return Address(
        servers=_servers(hosts),
        bucket=bucket,
        replicas=_number("replicas", options.pop("replicas", None), 1, 5),
        max_bytes=_number("max_bytes", options.pop("max_bytes", None), 1, 2**62),
        user=unquote(user) or None,
        password=unquote(password) if colon else None,
        token=token,
        tls=tls,
        **options,
    )


def _servers(hosts: str) -> tuple[str, ...]:
    servers = []
    for host in unquote(hosts).split(","):
        name, _, port = host.strip().rpartition(":") if re.search(r":\d*$", host.strip()) else (host.strip(), "", "")
        if (port and not 0 < int(port) < 65536) or re.search(r"[\s/@]", name):
            raise _refused(f"not a server of a NATS URL: {host!r:.80}")
        servers.append(f"nats://{name or 'localhost'}:{port or _PORT}")
    return tuple(servers)


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key == "sync":
            message = (
                "sync: a NATS server does not tell its clients how often it flushes to disk, so nothing could be "
                "checked; set sync_interval: always in the configuration of the servers"
            )
            raise InvalidConfig(message, field=key)
        if key not in _OPTIONS:
            raise InvalidConfig(f"unknown option {key!r} in a NATS URL; there are: {', '.join(_OPTIONS)}", field=key)
        options[key] = value
    return options


def _switch(name: str, text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise InvalidConfig(f"{name} must be true or false, got {text!r:.80}", field=name)
    return _SWITCHES[text.lower()]


def _number(name: str, text: str | None, least: int, most: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise InvalidConfig(f"{name} must be a whole number from {least} to {most:,}, got {text!r:.80}", field=name)
    return int(text)


def _refused(message: str) -> InvalidConfig:
    return InvalidConfig(message, field="database_url")
