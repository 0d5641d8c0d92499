"""Keeps secrets out of what people read."""

from __future__ import annotations

import re

MASK = "***"
_URL_PASSWORD = re.compile(r"(?P<head>[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*):[^\s/@]*@")
_QUERY_PASSWORD = re.compile(r"(?P<head>[?&](?:password|passwd|pwd|secret|token)=)[^&\s'\"]*", re.IGNORECASE)


def mask_urls(text: str) -> str:
    """The text with passwords in URLs masked."""
    return _QUERY_PASSWORD.sub(rf"\g<head>{MASK}", _URL_PASSWORD.sub(rf"\g<head>:{MASK}@", text))
