"""What an operator does in the night: who paused it, back with what was cancelled by mistake, one worker less."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from tests.cli.running import background
from tests.ui.conftest import Axe, Serve
from tests.ui.looks import in_both_themes, one_engine
from tests.ui.site import JOBS, Site


def lines(page: Page) -> Locator:
    return page.get_by_role("list", name="Actions, newest first").get_by_role("listitem")


def timeline(page: Page) -> Locator:
    return page.get_by_role("list", name="Timeline, newest first").get_by_role("listitem")


async def confirm(page: Page, verb: str | re.Pattern[str]) -> None:
    await page.get_by_role("dialog").get_by_role("button", name=verb).click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def fits_a_phone(page: Page, axe: Axe) -> None:
    await in_both_themes(page, axe)
    for width in (900, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await axe(page)
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_who_paused_it(site: Site, page: Page, axe: Axe):
    """Somebody paused everything. Who, and since when?"""
    await site.sign_in(page, site.token("operator"), path="/types")
    await page.get_by_role("switch", name="Pause echo").click()
    await page.get_by_role("button", name="Pause all").click()
    await confirm(page, "Pause all")

    await site.sign_in(page, site.token("read-only"))
    banner = page.get_by_role("status").filter(has_text="All task types are paused: no worker starts a task.")
    await expect(banner.locator("[data-paused-by]")).to_have_text(re.compile(r"by operator (just now|\d+s ago)"))
    await page.get_by_role("link", name="Types").first.click()
    row = page.locator("[data-type=echo]")
    await expect(row.locator("[data-paused-by]")).to_have_text(re.compile(r"by operator (just now|\d+s ago)"))

    await page.get_by_role("link", name="Audit").first.click()
    await expect(lines(page)).to_have_text(
        [re.compile(r"operator\s*paused all task types"), re.compile(r"operator\s*paused the type echo")]
    )
    await page.get_by_label("Type", exact=True).select_option("echo")
    await expect(lines(page)).to_have_count(1)
    await page.get_by_label("Action", exact=True).select_option("Pause all")
    await expect(page.get_by_text("Nothing matches")).to_be_visible()
    await page.get_by_label("Type", exact=True).select_option("All types")
    await expect(lines(page)).to_have_text([re.compile("paused all task types")])
    await expect(page).to_have_url(re.compile(r"/audit\?action=pause$"))
    await page.get_by_label("Person").fill("somebody else")
    await page.get_by_label("Person").press("Enter")
    await expect(page.get_by_text("Nothing matches")).to_be_visible()
    await page.get_by_role("button", name="Show everything").click()
    await expect(lines(page)).to_have_count(2)
    await fits_a_phone(page, axe)


async def test_revive_what_was_cancelled_by_mistake(site: Site, page: Page, axe: Axe):
    """A filter was too wide: three tasks for tomorrow were cancelled. They come back, for tomorrow."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    ids = [site.submit("echo", {"value": number}, runAfter=tomorrow) for number in range(3)]
    await site.sign_in(page, site.token("operator"), path="/tasks?q=type:echo")
    await page.get_by_role("button", name="All 3 that match").click()
    await page.get_by_role("menuitem", name="Cancel the unfinished…").click()
    await confirm(page, "Cancel 3 tasks")
    assert {site.wait(task, "cancelled")["status"] for task in ids} == {"cancelled"}

    await page.get_by_role("link", name="Audit").first.click()
    await expect(lines(page)).to_have_text([re.compile(r"operator\s*cancelled 3 tasks echo\s*type: echo")])
    await page.goto(f"{site.url}/tasks?q=type:echo+status:cancelled")
    await page.get_by_role("button", name="All 3 that match").click()
    await page.get_by_role("menuitem", name="Revive the cancelled…").click()
    await confirm(page, "Revive 3 tasks")
    for task in ids:
        back = site.wait(task, "pending")
        assert back["runAfter"].startswith(tomorrow[:19])

    await page.goto(f"{site.url}/tasks/{ids[0]}")
    await expect(timeline(page)).to_have_text(
        [
            re.compile("Attempt 1"),
            re.compile(r"operator revived it.*together with others"),
            re.compile(r"operator cancelled it.*together with others"),
            re.compile("Submitted"),
        ]
    )
    await timeline(page).nth(2).get_by_role("link", name="together with others").click()
    await expect(lines(page)).to_have_text([re.compile("cancelled 3 tasks")])
    await page.go_back()
    await page.get_by_role("button", name="Run now").click()
    await confirm(page, "Run task now")
    await expect(page.locator("header [data-status]")).to_have_text("Completed")
    await expect(timeline(page).filter(has_text="operator let it run now")).to_have_count(1)

    await page.get_by_role("link", name="Run again…").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Run again"
    )  # until then, labels are the old page's
    await expect(page.get_by_label("value")).to_have_value("0")
    await page.get_by_label("value").fill('{"n": 18446744073709551617}')
    await fits_a_phone(page, axe)
    await page.get_by_role("button", name="Run again").click()
    await expect(page.get_by_role("region", name="Payload")).to_contain_text("18446744073709551617")
    copy = page.url.rpartition("/")[2]
    assert site.wait(copy, "completed")["copyOf"] == ids[0]
    await page.get_by_role("region", name="Details").get_by_role("link", name=ids[0]).click()
    await expect(timeline(page).filter(has_text="operator ran it again as a copy").get_by_role("link")).to_have_text(
        copy
    )


@one_engine
async def test_a_new_task_by_the_form_that_its_type_describes(site: Site, page: Page, axe: Axe):
    await site.sign_in(page)
    await page.get_by_role("link", name="New task").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("New task")  # until then, labels are the old page's
    await page.get_by_label("Type").select_option("slow")
    await page.get_by_role("button", name="Submit task").click()
    await expect(page.get_by_text("It has no value of its own: fill it in.")).to_be_visible()
    await page.get_by_label("folder").fill(str(site.folder))
    await page.get_by_text("JSON", exact=True).click()
    await expect(page.get_by_label("Payload as JSON")).to_have_value(f'{{\n  "folder": "{site.folder}"\n}}')
    await fits_a_phone(page, axe)
    (site.folder / "go").touch()
    await page.get_by_role("button", name="Submit task").click()
    await expect(page.locator("header [data-status]")).to_have_text("Completed")
    await expect(timeline(page).filter(has_text="submitted it")).to_have_count(1)


@one_engine
async def test_a_worker_is_drained_from_its_page(serve: Serve, page: Page, tmp_path: Path, axe: Axe):
    site = serve(worker=False, settings={"TASKLIB_HEARTBEAT_SECONDS": "2"})
    (tmp_path / "own").mkdir()
    env = {**site.env, "TASKLIB_TOKEN": "", "TASKLIB_WORKER_ID": "night/shift"}
    with background(["worker", str(JOBS), "--concurrency", "2"], tmp_path / "own", env=env) as process:
        task = site.submit("slow", {"folder": str(site.folder)})
        site.wait(task, "processing")
        await site.sign_in(page, site.token("operator"), path="/workers")
        await page.get_by_role("link", name="night/shift").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("night/shift")
        runs = page.get_by_role("list", name="Tasks it runs").get_by_role("listitem")
        await expect(runs).to_have_text([re.compile(rf"slow.*attempt 1 of 4 · for \d+.*{task}", re.DOTALL)])
        await expect(page.get_by_role("region", name="Details")).to_contain_text("Restarts0 in the last day")
        await page.reload()
        await expect(runs).to_have_count(1)
        await fits_a_phone(page, axe)
        await page.get_by_role("button", name="Drain", exact=True).click()
        await confirm(page, "Drain worker")
        await expect(page.get_by_text("operator asked it to drain")).to_be_visible()
        await expect(page.locator("header [data-worker-state]")).to_have_text("Stopping")
        (site.folder / "go").touch()
        await expect(page.locator("header [data-worker-state]")).to_have_text("Stopped")
        assert process.wait(30) == 0
    assert site.wait(task, "completed")["attempts"] == 1
    logged = "".join(path.read_text() for path in (tmp_path / "own").glob("*.txt"))
    assert "drains: operator asked for it" in logged
