"""How a page looks to those who do not see it as we do."""

from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.ui.conftest import Axe

one_engine = pytest.mark.parametrize("engine_name", ["sqlite"], indirect=True, scope="session")
"""For what the browser does alone. What a store answers is tested on each in `tests/server`, and one way through every
page is gone here on both."""

on_postgres = pytest.mark.parametrize("engine_name", ["postgres"], indirect=True, scope="session")
"""The same, where many at once are more likely to show something."""

THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")


async def in_both_themes(page: Page, axe: Axe) -> None:
    """No serious violation, dark or light."""
    for scheme in THEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await expect(page.locator("html.dark")).to_have_count(1 if scheme == "dark" else 0)
        # A colour on its way from one theme to the other has the contrast of neither.
        await page.evaluate("Promise.all(document.getAnimations().map(each => each.finished.catch(() => {})))")
        await axe(page)
