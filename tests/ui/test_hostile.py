"""A queue in which every text is hostile, through every page: nothing runs, nothing opens, nothing invisible stays."""

from pathlib import Path
from urllib.parse import quote

from playwright.async_api import Dialog, Page, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.cli.running import run_process
from tests.conformance.builders import heartbeat_of
from tests.hostile import EVIL, MARKUP, PAYLOAD, STEERING, UNSAFE
from tests.ui.console import Console
from tests.ui.site import Site, start_site

MADE = "main img, main script, main iframe, main svg[onload], a[href^='javascript:' i], [onerror], [onload], [srcdoc]"


async def filled(site: Site) -> dict[str, str]:
    """One task in each state, by name."""
    engine = Engine(Config(database_url=site.env["TASKLIB_DATABASE_URL"]))
    await (await engine.store()).heartbeat(heartbeat_of(EVIL, names=[EVIL, "plain"]))
    await engine.close()
    options = {"tags": {EVIL: EVIL, "nested": {"a": [MARKUP]}}, "priority": 1}
    tasks = {}
    for outcome in ("complete", "fail", "running"):
        tasks[outcome] = site.submit(EVIL, PAYLOAD, idempotencyKey=f"{outcome}{EVIL}", maxAttempts=2, **options)
        worker = {"workerId": EVIL}
        site.api("POST", f"/api/claims/{tasks[outcome]}", worker)
        if outcome == "complete":
            site.api("POST", f"/api/claims/{tasks[outcome]}/complete", {**worker, "result": PAYLOAD})
        elif outcome == "fail":
            error = {**worker, "error": f"Traceback\n  {MARKUP}\n{EVIL}"}
            site.api("POST", f"/api/claims/{tasks[outcome]}/fail", error)
    tasks["waiting"] = site.submit(EVIL, PAYLOAD, **options)
    body = {"filter": {"error": EVIL[:200], "tags": {EVIL: EVIL}}, "dryRun": False}
    site.api("POST", "/api/tasks/bulk/cancel", body)
    site.api("PUT", f"/api/types/{quote(EVIL, safe='')}", {"paused": True, "rateLimit": 5})
    return tasks


def flow_of(site: Site) -> list[str]:
    """A schedule, and a flow of which one task has failed and others are cut off; their pages."""
    name = quote(EVIL, safe="")
    payload = {"type": EVIL, "payload": PAYLOAD}
    site.api("PUT", f"/api/schedules/{name}", {**payload, "every": 900, "options": {"tags": {EVIL: EVIL}}})
    site.api("POST", f"/api/schedules/{name}/trigger")
    parts = [
        {**payload, "ref": MARKUP[:20], "options": {"maxAttempts": 1}},
        {**payload, "ref": "b", "after": [MARKUP[:20]]},
        {"type": EVIL, "payload": {}, "ref": "c", "after": ["b"], "on": "end"},
    ]
    made = site.api("POST", "/api/flows", {"name": EVIL, "tasks": parts})
    ids = list(made["tasks"].values())
    site.api("POST", f"/api/claims/{ids[0]}", {"workerId": EVIL})
    site.api("POST", f"/api/claims/{ids[0]}/fail", {"workerId": EVIL, "error": EVIL})
    return ["/flows", f"/flows/{made['id']}", *(f"/tasks/{each}" for each in ids)]


async def test_nothing_runs_and_nothing_hides(sqlite_url: str, tmp_path: Path, page: Page, console: Console):
    console.expect("404.*nowhere")
    opened: list[str] = []

    async def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        await dialog.dismiss()

    page.on("dialog", note)
    with start_site(tmp_path, sqlite_url, worker=False, environment=MARKUP[:25] + STEERING[-5:]) as site:
        made = run_process(["token", "create", "--role", "admin", "--label", EVIL, "--json"], tmp_path, env=site.env)
        of_flow = flow_of(site)
        tasks = await filled(site)
        await site.sign_in(page, made.data["token"])

        async def look(path: str) -> None:
            await expect(page.get_by_text("<img src=x").filter(visible=True).first).to_be_visible()
            assert await page.evaluate("window.hit") is None, path
            assert await page.locator(MADE).count() == 0, path
            shown = await page.locator("body").inner_text() + await page.title()
            assert not set(shown) & UNSAFE, path

        of_tasks = [f"/tasks/{each}" for each in tasks.values()]
        name, word = quote(EVIL, safe=""), quote(MARKUP[:28], safe="")
        asked = ["/tasks", f"/tasks?q=error%3A{word}", f"/tasks?q=type%3A%22{word}", f"/tasks?q={word}"]
        named = [f"/types/{name}", f"/types/{name}?range={word}", f"/workers/{name}", f"/new?copyOf={tasks['fail']}"]
        asked += ["/audit", f"/audit?actor={name}", f"/new?type={name}", f"/api/docs?q={word}"]
        wide = ["/stats", "/workers", "/types", "/schedules", "/nowhere/<img src=x onerror=window.hit=8>"]
        for path in (*asked, *of_tasks, *of_flow, *named, *wide):
            await page.goto(f"{site.url}{path}")
            await look(path)
    assert opened == []
