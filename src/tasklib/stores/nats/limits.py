"""One entry of the controls, as the bucket keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from tasklib.stores import permits


@dataclass(frozen=True)
class Control(permits.Control[int]):
    """Its revision guards every claim under a limit, so limits are exact for the whole fleet. Instants are microseconds
    since 1970."""

    @classmethod
    def decode(cls, name: str, text: str | bytes) -> Control:
        fields = json.loads(text)
        fields.pop("name", None)
        return cls(name, **fields)

    def encode(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def tokens_at(self, now: int, /) -> float:
        return self.tokens_after(None if self.refilled is None else (now - self.refilled) / 1_000_000)
