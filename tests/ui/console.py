"""What a browser complained of during a test."""

import re

from playwright.async_api import ConsoleMessage, WebError


class Console:
    def __init__(self) -> None:
        self._heard: list[str] = []
        self._expected: list[str] = []

    def expect(self, pattern: str) -> None:
        """Messages like this belong to the test: browsers log every answer of 400 and above."""
        self._expected.append(pattern)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            self._heard.append(f"{message.type}: {message.text} ({where})")

    def hear_error(self, error: WebError) -> None:
        self._heard.append(f"uncaught: {error.error}")

    def explain_miss(self) -> None:
        unexpected = [said for said in self._heard if not any(re.search(each, said) for each in self._expected)]
        assert not unexpected, "the browser complained:\n" + "\n".join(unexpected)
        unheard = [each for each in self._expected if not any(re.search(each, said) for said in self._heard)]
        assert not unheard, f"expected in the console, but never said: {unheard}"
