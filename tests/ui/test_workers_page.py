"""The page Workers: who works, on what, and who was lost."""

import re
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from tests.cli.running import background
from tests.ui.conftest import Axe, Serve
from tests.ui.looks import in_both_themes, one_engine
from tests.ui.site import Site
from tests.waiting import eventually

JOBS = """
from tasklib import task

@task(name="<img src=x onerror=window.hit=1>", queue="<b>parcels</b>")
def hostile() -> None: ...

for number in range(5):
    @task(name=f"mail/{number} and more")
    def mail() -> None: ...
"""
SHORT = {"TASKLIB_DEAD_AFTER_SECONDS": "2", "TASKLIB_HEARTBEAT_SECONDS": "0.5", "TASKLIB_LOCK_TIMEOUT_SECONDS": "5"}


def row(page: Page, state: str) -> Locator:
    return page.locator("[data-worker]").filter(has=page.locator(f"[data-worker-state={state}]"))


def live_worker(site: Site) -> str:
    def found() -> str | None:
        workers = site.api("GET", "/api/workers")["workers"]
        return next((each["id"] for each in workers if each["live"]), None)

    return eventually(found, timeout=30) or ""


async def test_a_worker_shows_what_it_runs_and_leads_there(site: Site, page: Page):
    task = site.submit("slow", {"folder": str(site.folder)})
    site.wait(task, "processing")
    worker = site.api("GET", "/api/workers")["workers"][0]
    await site.sign_in(page, path="/workers")
    shown = row(page, "live")
    await expect(shown).to_contain_text(worker["id"])
    await expect(shown).to_contain_text(f"{worker['hostname']} · pid {worker['pid']}")
    await expect(page.get_by_text("1 live · 1 of 2 slots busy")).to_be_visible()
    await expect(shown.get_by_text("broken")).to_be_visible()
    await expect(shown.get_by_text("slow")).to_have_count(0)
    await shown.get_by_role("button", name="2 more").click()
    await expect(shown.get_by_text("slow")).to_be_visible()
    await shown.get_by_role("link", name="1 of 2").click()
    await expect(page).to_have_url(re.compile(rf"q=worker%3A{re.escape(worker['id'])}\+status%3Aprocessing"))
    await expect(page.get_by_role("row").filter(has_text="Processing")).to_have_count(1)
    (site.folder / "go").touch()
    site.wait(task, "completed")


@one_engine
async def test_a_worker_that_was_killed_is_seen_as_lost(serve: Serve, page: Page, tmp_path: Path, axe: Axe):
    site = serve(worker=False, settings=SHORT)
    await site.sign_in(page, path="/workers")
    await expect(page.get_by_text("No worker is running")).to_be_visible()
    await expect(page.get_by_text("tasklib worker app.tasks")).to_be_visible()
    (tmp_path / "jobs.py").write_text(JOBS)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    command, env = ["worker", str(tmp_path / "jobs.py")], {**site.env, "TASKLIB_TOKEN": ""}
    with background(command, first, env=env) as killed:
        lost = live_worker(site)
        await expect(row(page, "live")).to_contain_text(lost)
        killed.kill()
        await expect(row(page, "lost")).to_contain_text(lost)
        await expect(row(page, "lost")).to_contain_text(re.compile(r"last heard \d+s ago"))
    with background(command, second, env=env) as stopped:
        worker = live_worker(site)
        await page.reload()  # that changes show by themselves was seen: the page asks every five seconds
        await expect(row(page, "live")).to_contain_text(worker)
        await expect(row(page, "live")).to_contain_text("<img src=x onerror=window.hit=1>")
        await expect(row(page, "live")).to_contain_text("<b>parcels</b>")
        await expect(page.get_by_text("1 live, 1 lost")).to_be_visible()
        await in_both_themes(page, axe)
        stopped.terminate()
        stopped.wait(30)
    await page.reload()
    await expect(page.locator("[data-worker]")).to_have_count(1)
    await expect(row(page, "lost")).to_be_visible()
    await page.get_by_label("Show stopped").check()
    await expect(row(page, "stopped")).to_contain_text(worker)
    await expect(row(page, "stopped")).to_contain_text("stopped")
    await expect(page.locator("[data-worker]").first).to_contain_text(lost)
    assert await page.evaluate("window.hit") is None
    await page.set_viewport_size({"width": 390, "height": 844})
    await axe(page)
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
