"""The keys of the bucket. Texts of people become part of a key as they are where NATS allows it, else encoded."""

from __future__ import annotations

import base64
import re
from uuid import UUID

TASK = "tasks.task."
IDEM = "tasks.idem."
UNIQUE = "tasks.unique."
CONTROL = "tasks.control."
WORKER = "tasks.worker."
TYPE = "tasks.type."
SCHEDULE = "tasks.schedule."
FLOW = "tasks.flow."
COUNT = "tasks.count."
ALERT = "tasks.alert."
TOKEN = "tasks.token."
AUDIT = "tasks.audit."
SCHEMA = "tasks.schema"
PROBE = "tasks.probe."

_LITERAL = re.compile(r"[A-Za-z0-9_-]+")


def token_of(text: str) -> str:
    """One token of a key. What is not literal begins with `=`, which no literal token contains, and the empty text is
    a lone `=`: so no two texts share a token."""
    if _LITERAL.fullmatch(text):
        return text
    return "=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def text_of(token: str) -> str:
    if not token.startswith("="):
        return token
    data = token[1:]
    return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode()


def task(task_id: UUID) -> str:
    return f"{TASK}{task_id}"


def idem(key: str) -> str:
    return IDEM + token_of(key)


def unique(name: str, key: str) -> str:
    return f"{UNIQUE}{token_of(name)}.{token_of(key)}"


def control(name: str) -> str:
    return CONTROL + token_of(name)


def worker(worker_id: str) -> str:
    return WORKER + token_of(worker_id)


def task_type(name: str) -> str:
    return TYPE + token_of(name)


def alert(name: str) -> str:
    return ALERT + token_of(name)


def schedule(name: str) -> str:
    return SCHEDULE + token_of(name)


def flow(flow_id: UUID) -> str:
    return f"{FLOW}{flow_id}"


def token(token_id: str) -> str:
    return TOKEN + token_of(token_id)
