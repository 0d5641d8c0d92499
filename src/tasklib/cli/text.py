"""Text from elsewhere, made safe to print: names, payloads and errors are hostile until proven otherwise."""

from __future__ import annotations

import unicodedata

from tasklib.core.redact import mask_text

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (bidi marks among them) and surrogate characters, and the line breaks nobody expects."""


def clean(text: str, *, lines: bool = False) -> str:
    """The text on one line, or with its `lines` kept; unsafe characters are shown escaped, secrets in it masked."""
    text = mask_text(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown_in_lines if lines else _shown, text))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _shown_in_lines(character: str) -> str:
    if character == "\t":
        return "    "
    return character if character == "\n" else _shown(character)
