"""An operator's jobs in the list: find what somebody calls about, act on exactly what one trouble broke. And the list
as people like it: columns, order, saved searches, files."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Page, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.conformance.builders import apply, claim_one, completed, failed, submit
from tests.ui.conftest import Axe
from tests.ui.looks import in_both_themes, on_postgres, one_engine
from tests.ui.site import Site
from tests.ui.test_tasks_page import field, row, search, searched, shows


async def test_find_a_customers_order_by_its_number(site: Site, page: Page, axe: Axe):
    """A customer is on the phone: what became of order 4711?"""
    charge = site.submit("echo", {"value": {"order_id": 4711, "card": "hunter2"}}, tags={"customer": 812})
    mail = site.submit("broken", {"text": "mailbox of order 4711 is full"})
    ship = site.submit("echo", {"value": "later"}, idempotencyKey="ship-4711", runAfter="2090-01-01T00:00:00Z")
    other = site.submit("echo", {"value": {"order_id": 4712}}, tags={"customer": 812})
    site.wait(charge, "completed")
    site.wait(mail, "failed")
    site.wait(other, "completed")
    await site.sign_in(page)
    await page.keyboard.press("/")
    await field(page).fill("4711")
    await expect(page.get_by_text("Enter looks for the word in type, tags")).to_be_visible()
    await page.keyboard.press("Enter")
    await shows(page, ship, mail, charge)
    await expect(page.get_by_text("Payloads of more than 10,000 bytes")).to_be_visible()
    await expect(row(page, charge)).to_contain_text('"order_id":4711')
    await expect(row(page, charge)).to_contain_text('"card":"***"')
    await axe(page)

    for text, found in [
        ("payload:value.order_id=4711", [charge]),
        ("tag:customer=812", [other, charge]),
        ("idempotency:ship-4711", [ship]),
        (f"id:{mail[-12:]}", [mail]),
        (mail[-12:], [mail]),
        ("4711 mailbox", [mail]),
        ("hunter2", []),
    ]:
        await search(page, text)
        await shows(page, *found)
    await search(page, "4711 status:completed")
    await row(page, charge).click()  # anywhere on it
    await expect(page).to_have_url(f"{site.url}/tasks/{charge}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("echo")
    await page.go_back()
    await shows(page, charge)


async def broke(site: Site) -> dict[str, list[str]]:
    """Payments that failed: three of this hour with one error, one of it with another, one of long ago."""
    engine = Engine(Config(database_url=site.database_url), clock_offset=-7200.0)
    ids: dict[str, list[str]] = {"old": [], "funds": [], "other": []}

    async def fail(error: str) -> str:
        await submit(store, "pay")
        running = await claim_one(store, "pay")
        await apply(store, failed(running, f"Traceback (most recent call last):\n  ...\nPayError: {error}", final=True))
        return str(running.id)

    try:
        store = await engine.store()
        ids["old"].append(await fail("insufficient funds"))
        store.clock_offset = 0.0
        ids["funds"] = [await fail("insufficient funds") for _ in range(3)]
        ids["other"].append(await fail("card expired"))
    finally:
        await engine.close()
    return ids


async def test_retry_exactly_the_failures_of_the_last_hour_with_one_error(site: Site, page: Page):
    """The bank was down for an hour. What failed for another reason, or earlier, is left alone."""
    ids = await broke(site)
    await site.sign_in(page)
    await search(page, "failed:1h")
    await shows(page, ids["other"][0], *reversed(ids["funds"]))
    await page.get_by_role("button", name="Columns").click()
    await page.get_by_role("menuitemcheckbox", name="Error").click()
    await page.keyboard.press("Escape")
    await expect(row(page, ids["funds"][0])).to_contain_text("PayError: insufficient funds")
    await search(page, 'failed:1h error:"insufficient funds"')
    await shows(page, *reversed(ids["funds"]))
    await page.get_by_role("button", name="All 3 that match").click()
    await page.get_by_role("menuitem", name="Retry the failed…").click()
    dialog = page.get_by_role("dialog", name="Retry all tasks that match?")
    await expect(dialog).to_contain_text("This concerns 3 tasks.")
    await dialog.get_by_role("button", name="Retry 3 tasks").click()
    await expect(page.get_by_text("Retried 3 tasks.")).to_be_visible()
    statuses = {task: site.api("GET", f"/api/tasks/{task}")["status"] for each in ids.values() for task in each}
    assert statuses == {
        **dict.fromkeys(ids["funds"], "pending"),
        **dict.fromkeys([*ids["old"], *ids["other"]], "failed"),
    }


async def ran(site: Site, *milliseconds: int) -> list[str]:
    engine = Engine(Config(database_url=site.database_url))
    try:
        store = await engine.store()
        ids = []
        for each in milliseconds:
            await submit(store, "work", tags={"size": each}, priority=each % 7)
            running = await claim_one(store, "work")
            await apply(store, completed(running, run_ms=each))
            ids.append(str(running.id))
        return ids
    finally:
        await engine.close()


@one_engine
async def test_columns_and_order_are_in_the_address_and_remembered(
    site: Site, page: Page, context: BrowserContext, axe: Axe
):
    quick, long, middle = await ran(site, 5, 60_000, 700)
    broken = site.submit("broken")
    site.wait(broken, "failed")
    await site.sign_in(page)
    await shows(page, broken, middle, long, quick)
    await expect(row(page, long)).to_contain_text("1m")
    await page.get_by_role("button", name="Columns").click()
    for name in ("Tags", "Priority", "Ended"):
        await page.get_by_role("menuitemcheckbox", name=name).click()
    await page.get_by_role("menuitemcheckbox", name="Attempts").click()
    await axe(page)
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(re.compile("cols=arguments%2Ctags%2Cpriority%2Ccreated%2Cended%2Cduration"))
    await expect(row(page, long)).to_contain_text("size=60000")
    await expect(page.get_by_role("columnheader", name="Attempts")).to_have_count(0)
    await in_both_themes(page, axe)

    await page.get_by_role("button", name="Duration").click()
    await shows(page, long, middle, quick, broken)
    await expect(page.locator("[data-range]")).to_have_text("The longest 4 of 4")
    await expect(page.get_by_role("columnheader", name="Duration")).to_have_attribute("aria-sort", "descending")
    ended = page.get_by_role("button", name="Ended")
    await expect(ended).to_have_attribute("aria-disabled", "true")
    await ended.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("only failed and cancelled tasks can be sorted")
    await page.get_by_role("checkbox", name="failed").check()
    await page.get_by_label("Order", exact=True).select_option("Latest end first")
    await expect(page.locator("[data-range]")).to_have_text("1\u20131 of 1, latest end first")
    assert "sort=ended" in page.url

    await page.get_by_role("button", name="Saved").click()
    await page.get_by_label("Save this search as").fill("What broke <b>")
    await page.keyboard.press("Enter")
    await axe(page)
    await page.keyboard.press("Escape")
    another = await context.new_page()
    await another.goto(f"{site.url}/tasks")
    await shows(another, broken, middle, long, quick)
    await expect(another.get_by_role("columnheader", name="Priority")).to_be_visible()
    await another.get_by_role("button", name="Saved").click()
    await another.get_by_role("button", name="What broke").first.click()
    await shows(another, broken)
    assert searched(another) == "status:failed"
    assert "sort=ended" in another.url
    await another.get_by_role("button", name="Saved").click()
    await another.get_by_role("button", name="Forget What broke").click()
    await expect(another.get_by_text("There are none yet.")).to_be_visible()
    await another.keyboard.press("Escape")
    await another.get_by_role("button", name="Columns").click()
    await another.get_by_role("menuitem", name="The usual columns").click()
    await expect(another.get_by_role("columnheader", name="Priority")).to_have_count(0)
    assert "cols=" not in another.url

    # A new tab by the middle button; what is in a row keeps its meaning.
    await another.get_by_role("checkbox", name="failed").uncheck()
    async with context.expect_page() as opened:
        await row(another, long).get_by_text("work").click(button="middle")
    await expect(await opened.value).to_have_url(f"{site.url}/tasks/{long}")
    await row(another, long).get_by_role("checkbox").check()
    await expect(another).to_have_url(re.compile("/tasks\\?"))

    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(row(page, broken)).to_contain_text("Ended")
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await axe(page)


@on_postgres
async def test_what_matches_is_written_to_a_file(site: Site, page: Page, tmp_path: Path):
    wanted = site.submit("nobody's", {"order": 4711, "note": "=1+1", "password": "hunter2"}, tags={"n": "@x"})
    site.submit("nobody's", {"order": 4712})
    await site.sign_in(page)
    await search(page, "4711")
    await shows(page, wanted)
    texts: dict[str, Any] = {}
    for name, kind in (("CSV, for a spreadsheet", "csv"), ("JSON", "json")):
        await page.get_by_role("button", name="Export").click()
        async with page.expect_download() as download:
            await page.get_by_role("menuitem", name=name, exact=True).click()
        file = await download.value
        assert file.suggested_filename == f"tasks.{kind}"
        await file.save_as(tmp_path / kind)
        texts[kind] = (tmp_path / kind).read_text()
    [line] = csv.DictReader(io.StringIO(texts["csv"]))
    [task] = json.loads(texts["json"])["tasks"]
    assert line["id"] == task["id"] == wanted
    assert json.loads(line["payload"]) == task["payload"] == {"order": 4711, "note": "=1+1", "password": "***"}
