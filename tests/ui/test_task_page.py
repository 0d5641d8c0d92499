"""The page of one task: why it waits, why it failed, what was done about it, and what it carries."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.ui.conftest import Axe
from tests.ui.console import Console
from tests.ui.looks import in_both_themes, on_postgres, one_engine
from tests.ui.site import Site
from tests.waiting import eventually

HOSTILE = "<img src=x onerror=window.hit=1><script>window.hit=2</script>\u202egnp.exe"
SHOWN = "<img src=x onerror=window.hit=1><script>window.hit=2</script>\\u202egnp.exe"


async def open_task(site: Site, page: Page, task_id: str) -> None:
    await page.goto(f"{site.url}/tasks/{task_id}")
    await expect(page.get_by_text(task_id, exact=True)).to_be_visible()


def badge(page: Page) -> Locator:
    return page.locator("header [data-status]")


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def timeline(page: Page) -> Locator:
    return page.get_by_role("list", name="Timeline, newest first").get_by_role("listitem")


async def confirm(page: Page, button: str, verb: str) -> None:
    await page.get_by_role("button", name=button, exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name=verb).click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def copied(context: BrowserContext, page: Page, button: Locator) -> str:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.evaluate("navigator.clipboard.writeText('nothing was copied')")
    await button.click()
    await page.wait_for_function("async () => await navigator.clipboard.readText() !== 'nothing was copied'")
    text: str = await page.evaluate("navigator.clipboard.readText()")
    return text


async def test_a_failed_task_is_found_understood_and_retried(
    site: Site, page: Page, context: BrowserContext, tmp_path: Path
):
    task = site.submit("fixable", {"folder": str(tmp_path)})
    worker = site.wait(task, "failed")["history"][0]["worker"]
    await site.sign_in(page, site.token("operator"), path="/tasks?q=status:failed")
    await page.locator(f'main a[href$="/tasks/{task}"]').first.click()
    await expect(badge(page)).to_have_text("Failed")

    error = card(page, "Error")
    await expect(error.get_by_text("ValueError: it is not fixed yet").first).to_be_visible()
    traceback = error.get_by_role("region", name="Traceback")
    await expect(traceback).to_contain_text('raise ValueError("it is not fixed yet")')
    wrap = error.get_by_role("button", name="Wrap lines")
    await expect(traceback.locator("pre")).to_have_css("white-space", "pre")
    await wrap.click()
    await expect(wrap).to_have_attribute("aria-pressed", "true")
    await expect(traceback.locator("pre")).to_have_css("white-space", "pre-wrap")
    whole = await copied(context, page, error.get_by_role("button", name="Copy error"))
    assert whole == site.wait(task, "failed")["error"]
    assert whole.startswith("Traceback (most recent call last):")

    await expect(timeline(page)).to_have_text([re.compile("Attempt 1 of 1: failed"), re.compile("Submitted")])
    attempt = timeline(page).first
    await expect(attempt).to_contain_text(worker)
    await attempt.locator("summary").click()
    await expect(attempt.get_by_role("region")).to_contain_text("in fixable")

    (tmp_path / "fixed").touch()
    await confirm(page, "Retry", "Retry task")
    await expect(badge(page)).to_have_text("Completed")
    await expect(card(page, "Error")).to_have_count(0)
    await expect(card(page, "Result")).to_contain_text('"fixed"')
    events = ["Attempt 1 of 1: completed", "operator retried it", "Attempt 1 of 1: failed", "Submitted"]
    await expect(timeline(page)).to_have_text([re.compile(each) for each in events])

    await page.get_by_role("link", name="All tasks").click()
    await expect(page).to_have_url(re.compile(r"/tasks\?q=status%3Afailed"))


@one_engine
async def test_why_a_task_waits(site: Site, page: Page, tmp_path: Path):
    site.api("PUT", "/api/types/echo", {"paused": True})
    site.api("PUT", "/api/types/slow", {"concurrency": 1})
    first, second = (site.submit("slow", {"folder": str(tmp_path)}) for _ in range(2))
    flaky, paused, unknown = site.submit("flaky"), site.submit("echo", {"value": 1}), site.submit("mail.send")
    due = datetime.now(UTC) + timedelta(hours=1)
    scheduled = site.submit("broken", runAfter=due.isoformat())
    site.wait(flaky, "failed")
    running = eventually(lambda: [each for each in (first, second) if _status(site, each) == "processing"])[0]
    waiting = ({first, second} - {running}).pop()
    await site.sign_in(page)
    why = card(page, "Why is it waiting?")

    await open_task(site, page, unknown)
    await expect(why).to_contain_text("The only live worker does not handle the type mail.send.")
    await expect(why.get_by_text("tasklib worker app.tasks")).to_be_visible()

    await open_task(site, page, scheduled)
    await expect(why.locator("[data-cause=scheduled]")).to_contain_text(re.compile(r"in 59m \d+s"))
    left = await why.get_by_role("time").first.inner_text()
    await expect(why.get_by_role("time").first).not_to_have_text(left)  # it counts down
    await expect(timeline(page).first).to_contain_text(re.compile(r"Attempt 1 of 1\s*Starts in 59m"))

    await open_task(site, page, flaky)
    await expect(badge(page)).to_have_text("Failed · retry waiting")
    await expect(why.locator("[data-cause=retry]")).to_contain_text(re.compile(r"Its retry is not due yet: in \d+s"))
    await expect(timeline(page).first).to_contain_text(re.compile(r"Attempt \d of 6\s*Retries in \d+s"))

    await open_task(site, page, waiting)
    await expect(why).to_contain_text("1 task of the type slow is running, and no more than 1 may.")
    (tmp_path / "go").touch()
    await expect(badge(page)).to_have_text("Completed")  # by itself: nothing is loaded again
    await expect(why).to_have_count(0)

    await open_task(site, page, paused)
    await expect(why).to_contain_text("The type echo is paused.")
    await expect(why.get_by_role("link", name="See what is paused")).to_have_attribute("href", re.compile("/types$"))
    site.api("PUT", "/api/types/echo", {"paused": False})
    await expect(badge(page)).to_have_text("Completed")


def _status(site: Site, task_id: str) -> str:
    status: str = site.api("GET", f"/api/tasks/{task_id}")["status"]
    return status


@on_postgres
async def test_a_running_task_is_asked_to_stop(site: Site, page: Page, tmp_path: Path):
    task = site.submit("slow", {"folder": str(tmp_path)})
    worker = site.wait(task, "processing")["workerId"]
    await site.sign_in(page, site.token("operator"))
    await open_task(site, page, task)
    await expect(badge(page)).to_have_text("Processing")
    details = card(page, "Details")
    await expect(details.get_by_role("link", name=worker)).to_be_visible()
    await expect(details).to_contain_text("Lease until")
    await expect(timeline(page).first).to_contain_text("Attempt 1 of 4: running")
    await confirm(page, "Cancel", "Ask to stop")
    await expect(badge(page)).to_have_text("Cancelled")
    events = ["Attempt 1 of 4: stopped as asked", "operator asked it to stop", "Submitted"]
    await expect(timeline(page)).to_have_text([re.compile(each) for each in events])


@one_engine
async def test_what_does_not_stop_at_once_says_that_it_was_asked(site: Site, page: Page):
    """Claimed by hand: nobody stops it before its holder asks."""
    task = site.submit("by hand", {})
    site.api("POST", f"/api/claims/{task}", {"workerId": "agent"})
    await site.sign_in(page, site.token("operator"))
    await open_task(site, page, task)
    await confirm(page, "Cancel", "Ask to stop")
    notice = card(page, "Asked to stop")
    await expect(notice).to_contain_text("Its worker has been told")
    site.api("POST", f"/api/claims/{task}/release", {"workerId": "agent"})
    await expect(badge(page)).to_have_text("Cancelled")
    await expect(notice).to_have_count(0)


@one_engine
async def test_what_is_not_allowed_says_why_and_what_is_deleted_is_gone(site: Site, page: Page, console: Console):
    console.expect("404")
    task = site.submit("echo", {"value": 1})
    site.wait(task, "completed")
    await site.sign_in(page, site.token("operator"), path="/tasks?q=type:echo")
    await page.locator(f'main a[href$="/tasks/{task}"]').first.click()
    retry = page.get_by_role("button", name="Retry", exact=True)
    await expect(retry).to_have_attribute("aria-disabled", "true")
    await expect(retry).to_have_accessible_description(re.compile("Only failed tasks can be retried"))
    await retry.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("Only failed tasks can be retried")
    await retry.click(force=True)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await confirm(page, "Delete", "Delete task")
    await expect(page).to_have_url(re.compile(r"/tasks\?q=type%3Aecho"))
    await expect(page.get_by_text("The task is deleted.")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("alert")).to_contain_text(
        re.compile("operator deleted it .* It was of the type echo")
    )
    await page.get_by_role("link", name="Back to the tasks").click()
    await expect(page).to_have_url(re.compile(r"/tasks\?q=type%3Aecho"))

    other = site.submit("echo", {"value": 2})
    site.wait(other, "completed")
    await site.sign_in(page, site.token("read-only"))
    await open_task(site, page, other)
    await expect(badge(page)).to_have_text("Completed")
    for name in ("Retry", "Cancel", "Delete"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    site.api("DELETE", f"/api/tasks/{other}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("No such task")  # by itself


NUMBERS: dict[str, Any] = {"big": 2**80, "tenth": 0.1, "tiny": 1e-9, "max": 2**53 + 1}


@one_engine
async def test_json_is_exact_and_can_be_explored(site: Site, page: Page, context: BrowserContext):
    value = {**NUMBERS, "deep": {"deeper": {"deepest": ["found"]}}, "many": list(range(250))}
    task = site.submit("echo", {"value": value}, tags={"customer": "ada lovelace"}, priority=7, idempotencyKey="key-1")
    site.wait(task, "completed")
    await site.sign_in(page)
    await open_task(site, page, task)
    payload, result = card(page, "Payload"), card(page, "Result")
    for shown in (payload, result):
        for number in ("1208925819614629174706176", "0.1", "1e-9", "9007199254740993"):
            await expect(shown.get_by_text(number, exact=True)).to_be_visible()
    assert json.loads(await copied(context, page, payload.get_by_role("button", name="Copy payload"))) == {
        "value": value
    }
    assert json.loads(await copied(context, page, result.get_by_role("button", name="Copy result"))) == value

    await expect(result.get_by_text('"found"')).to_have_count(0)
    deep = result.get_by_role("button", name='"deeper"')
    await deep.click()
    await expect(deep).to_have_attribute("aria-expanded", "true")
    await result.get_by_role("button", name="Expand all of result").click()
    await expect(result.get_by_text('"found"')).to_be_visible()
    await expect(result.get_by_text("99:", exact=True)).to_have_count(1)
    await expect(result.get_by_text("100:", exact=True)).to_have_count(0)
    await result.get_by_role("button", name="Show 100 more of 250").click()
    await expect(result.get_by_text("199:", exact=True)).to_have_count(1)
    line = result.locator("li").filter(has_text='"big"').last
    await line.hover()
    assert await copied(context, page, line.get_by_role("button", name="Copy value")) == str(2**80)
    await result.get_by_role("button", name="Collapse result").click()
    await expect(result.get_by_text("1208925819614629174706176")).to_have_count(0)
    await result.get_by_role("button", name="Raw result").click()
    assert json.loads(await result.locator("pre").inner_text()) == value

    details = card(page, "Details")
    for text in ("7", "key-1", "customer=ada lovelace"):
        await expect(details.get_by_text(text, exact=True)).to_be_visible()
    await page.locator("main").click(position={"x": 2, "y": 2})
    await page.keyboard.press("c")
    await expect(page.get_by_text("The task's ID is copied.")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == task
    await details.get_by_role("link", name="customer=ada lovelace").click()
    await expect(page).to_have_url(re.compile(r"/tasks\?q=tag%3A%22customer%3Dada\+lovelace%22"))
    await page.go_back()
    await expect(page.get_by_text(task, exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(re.compile(r"/tasks(\?.*)?$"))


@one_engine
async def test_other_peoples_text_stays_text(site: Site, page: Page, axe: Axe):
    strange = site.submit(HOSTILE, {HOSTILE: HOSTILE}, tags={HOSTILE: HOSTILE}, idempotencyKey=HOSTILE)
    failed = site.submit("broken", {"text": HOSTILE})
    site.wait(failed, "failed")
    await site.sign_in(page)
    for task, heading in ((strange, SHOWN), (failed, "broken")):
        await open_task(site, page, task)
        await expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        await expect(card(page, "Payload")).to_contain_text(SHOWN)
        if task == failed:
            await timeline(page).first.locator("summary").click()
            await expect(timeline(page).first.get_by_role("region")).to_contain_text(SHOWN)
            await expect(card(page, "Error").get_by_role("region")).to_contain_text(SHOWN)
        assert await page.locator("main img, main script").count() == 0
        assert await page.evaluate("window.hit") is None
        assert "\u202e" not in await page.locator("body").inner_text()
        assert "\u202e" not in await page.title()
        await in_both_themes(page, axe)
        await page.set_viewport_size({"width": 390, "height": 844})
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels too wide"
        await axe(page)
        await page.set_viewport_size({"width": 1280, "height": 800})
