"""The page Schedules: what is due when, how the latest runs went, and what can be done about it."""

from playwright.async_api import Locator, Page, expect

from tests.ui.conftest import Axe
from tests.ui.console import Console
from tests.ui.looks import in_both_themes, one_engine
from tests.ui.site import Site

EVIL = "<img src=x onerror=window.hit=1>"
NIGHTLY = {"type": "echo", "payload": {"value": 1}, "cron": "30 3 * * 1-5", "timezone": "Europe/Berlin"}


def item(page: Page, name: str) -> Locator:
    return page.locator("[data-schedule]").filter(has=page.get_by_role("link", name=name, exact=True))


@one_engine
async def test_a_schedule_is_seen_run_edited_paused_and_deleted(site: Site, page: Page, axe: Axe, console: Console):
    await site.sign_in(page, path="/schedules")
    await expect(page.get_by_text("Nothing is scheduled")).to_be_visible()
    site.api("PUT", "/api/schedules/nightly", NIGHTLY)
    site.api(
        "PUT", "/api/schedules/bad", {"type": "broken", "payload": {}, "every": 3600, "options": {"maxAttempts": 1}}
    )
    site.api("PUT", "/api/schedules/%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E", NIGHTLY)
    await page.reload()
    nightly, bad = item(page, "nightly"), item(page, "bad")
    await expect(nightly).to_contain_text("at 03:30 on weekdays, Europe/Berlin")
    await expect(nightly.locator("[data-figure=next]")).to_contain_text("in ")
    await expect(nightly.locator("[data-figure=last]")).to_have_text("not yet")
    await expect(page.get_by_text(EVIL)).to_be_visible()
    assert await page.evaluate("window.hit") is None

    await nightly.get_by_role("button", name="Run now: nightly").click()
    await expect(page.get_by_text("A task of nightly was submitted.")).to_be_visible()
    await expect(nightly.locator("[data-run=completed]")).to_have_count(1)
    await bad.get_by_role("button", name="Run now: bad").click()
    await expect(bad.get_by_text("The last run failed.")).to_be_visible()
    await expect(page.get_by_text("the last run of 1 failed")).to_be_visible()

    await nightly.get_by_role("button", name="Edit nightly").press("Enter")
    dialog = page.get_by_role("dialog", name="Times of nightly")
    await expect(dialog.locator("[data-preview] li")).to_have_count(10)
    console.expect(r"400 \(Bad Request\)")
    await dialog.get_by_label("Expression").fill("61 * * * *")
    await expect(dialog.locator("[data-preview]")).to_contain_text("'61' is not a minute")
    await dialog.get_by_label("Expression").fill("0 8 * * 1")
    await dialog.get_by_label("Time zone").fill("Asia/Tokyo")
    await expect(dialog.locator("[data-preview]")).to_contain_text("at 08:00 on Monday, Asia/Tokyo")
    await expect(dialog.locator("[data-preview] li").first).to_contain_text("08:00:00+09:00")
    await axe(page)
    await dialog.get_by_label("While an earlier one is not over").select_option("skip")
    await dialog.get_by_role("button", name="Save").click()
    await expect(nightly).to_contain_text("at 08:00 on Monday, Asia/Tokyo")
    kept = site.api("GET", "/api/schedules/nightly")
    assert (kept["overlap"], kept["payload"]) == ("skip", {"value": 1})

    pause = nightly.get_by_role("switch", name="Pause nightly")
    await expect(pause).to_have_text("Pause")  # a switch that is off looks as if the schedule were off
    await pause.click()
    await expect(nightly.get_by_text("Paused")).to_be_visible()
    assert site.api("GET", "/api/schedules/nightly")["paused"]
    await in_both_themes(page, axe)
    for width in (900, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await axe(page)
    await nightly.get_by_role("button", name="Delete nightly").click()
    await page.get_by_role("dialog", name="Delete nightly?").get_by_role("button", name="Delete").click()
    await expect(page.locator("[data-schedule]")).to_have_count(2)


@one_engine
async def test_who_may_only_read_sees_no_buttons(site: Site, page: Page):
    site.api("PUT", "/api/schedules/nightly", NIGHTLY)
    await site.sign_in(page, site.token("read-only"), path="/schedules")
    await expect(item(page, "nightly")).to_contain_text("at 03:30 on weekdays")
    await expect(item(page, "nightly").get_by_role("button")).to_have_count(0)
    await expect(item(page, "nightly").get_by_role("switch")).to_have_count(0)
