"""The list of tasks: search, filters, pages, selection, actions, live updates."""

import asyncio
import re
from urllib.parse import parse_qs, urlsplit

import httpx
from playwright.async_api import Locator, Page, Route, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.conformance.builders import submit_several
from tests.ui.conftest import Axe
from tests.ui.console import Console
from tests.ui.looks import on_postgres, one_engine
from tests.ui.site import TOKEN, Site


def row(page: Page, task: str) -> Locator:
    return page.locator(f"[data-row='{task}']")


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search tasks")


def searched(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("q", [""])[0]


async def search(page: Page, text: str) -> None:
    await field(page).fill(text)
    await field(page).press("Enter")
    await expect(page).to_have_url(re.compile(r"q=|/tasks$"))


async def shows(page: Page, *tasks: str) -> None:
    """These and no others, in this order."""
    await expect(page.locator("[data-row]")).to_have_count(len(tasks))
    for at, task in enumerate(tasks):
        await expect(page.locator("[data-row]").nth(at)).to_have_attribute("data-row", task)


async def choose(page: Page, task: str, action: str) -> None:
    await row(page, task).get_by_role("button", name="Actions for task").click()
    await page.get_by_role("menuitem", name=action).click()


async def test_a_failed_task_is_found_retried_and_seen_to_complete(site: Site, page: Page, axe: Axe):
    task = site.submit("fixable", {"folder": str(site.folder)})
    other = site.submit("echo", {"value": 1})
    site.wait(task, "failed")
    site.wait(other, "completed")
    await site.sign_in(page)
    await shows(page, other, task)
    await page.keyboard.press("/")
    await expect(field(page)).to_be_focused()
    await field(page).type("error:")
    await expect(page.get_by_text("error: text in the error")).to_be_visible()
    await field(page).fill("fixa")
    await expect(field(page)).to_have_attribute("aria-expanded", "true")
    await page.keyboard.press("ArrowDown")
    chosen = page.get_by_role("option", name="type:fixable")
    await expect(chosen).to_have_attribute("aria-selected", "true")
    await expect(field(page)).to_have_attribute("aria-activedescendant", await chosen.get_attribute("id") or "")
    await axe(page)
    await page.keyboard.press("Enter")
    await shows(page, task)
    assert searched(page) == "type:fixable"
    await expect(row(page, task)).to_contain_text("Failed")
    await expect(row(page, task)).to_contain_text("1/1")
    pointed_at = asyncio.Event()

    async def late(route: Route) -> None:
        await pointed_at.wait()
        await route.continue_()

    # Whoever is at the row before the list has answered works with it all the same.
    await page.route(re.compile(r"/api/tasks\?.*status=failed"), late)
    await search(page, "type:fixable status:failed")
    await row(page, task).hover()
    pointed_at.set()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    (site.folder / "fixed").touch()
    await choose(page, task, "Retry now")
    await expect(page.get_by_text(f"Task {task[-12:]} is due again.")).to_be_visible()
    # It no longer matches, but stays where it is as long as somebody is working with it.
    await expect(row(page, task)).to_contain_text("Completed")
    await row(page, task).get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("fixable")
    await page.go_back()
    await expect(page.get_by_text("No task matches")).to_be_visible()
    await page.get_by_role("button", name="Clear the filter").click()
    await shows(page, other, task)


@on_postgres
async def test_filters_and_search_and_address_say_the_same(site: Site, page: Page, axe: Axe):
    failed = site.submit("broken", {"text": "the printer is on fire"}, tags={"team": "red one"})
    done = site.submit("echo", {"value": 1}, tags={"team": "blue"})
    late = site.submit("echo", {"value": 2}, runAfter="2090-01-01T00:00:00Z")
    slow = site.submit("slow", {"folder": str(site.folder)})
    site.wait(failed, "failed")
    site.wait(done, "completed")
    worker = site.wait(slow, "processing")["workerId"]
    await site.sign_in(page)
    await shows(page, slow, late, done, failed)
    await page.get_by_label("Type", exact=True).select_option("echo")
    await shows(page, late, done)
    await expect(page.locator("[data-count=completed]")).to_have_text("1")
    await page.get_by_role("checkbox", name="completed").check()
    await shows(page, done)
    await expect(field(page)).to_have_value("type:echo status:completed")
    await page.get_by_role("checkbox", name="pending").check()
    await shows(page, late, done)
    await page.get_by_label("Created", exact=True).select_option("Last hour")
    await expect(field(page)).to_have_value("type:echo status:pending,completed last:1h")
    await shows(page, late, done)
    assert searched(page) == "type:echo status:pending,completed last:1h"
    await page.reload()
    await shows(page, late, done)
    await expect(page.get_by_label("Created", exact=True)).to_have_value("1h")
    await expect(page.get_by_role("checkbox", name="pending")).to_be_checked()
    await page.go_back()
    await page.go_back()
    await shows(page, done)
    await expect(field(page)).to_have_value("type:echo status:completed")
    await expect(page.get_by_role("checkbox", name="pending")).not_to_be_checked()

    for text, found in [
        ('error:"PRINTER is"', [failed]),
        ('tag:team="red one"', [failed]),
        ("tag:team:blue", [done]),
        (f"id:{late}", [late]),
        (late.upper(), [late]),
        (f"worker:{worker}", [slow]),
        ("type:ech*", [late, done]),
        ("type:echo type:slow", [slow, late, done]),
        ("after:2020-01-01 before:2090-01-01T00:00:00Z status:failed", [failed]),
        ("finished:no", [slow, late]),
        ("before:2020-01-01", []),
    ]:
        await search(page, text)
        await shows(page, *found)
    await expect(page.get_by_text("No task matches")).to_be_visible()
    await axe(page)

    for text, said in [
        ("colour:red", "There is no colour: to search by. Known are: type:, status:"),
        ("status:done", "There is no status “done”. Known are: pending, processing"),
        ("id:123", "is not an ID"),
        ('error:"x', "A quote is not closed"),
        ("type:nobody", "No task type is called “nobody”."),
        ("worker:nobody", "No live worker is called “nobody”."),
    ]:
        await search(page, text)
        await expect(page.get_by_text(said)).to_be_visible()
        await expect(page.locator("[data-row]")).to_have_count(0)
    await search(page, "team:blue")
    await page.get_by_role("button", name="tag:team=blue").click()
    await shows(page, done)
    await search(page, "error:printer")
    await shows(page, failed)

    await page.get_by_label("Created", exact=True).select_option("From … to …")
    await shows(page, failed)
    await page.get_by_label("From", exact=True).fill("2019-01-01T00:00")
    await page.get_by_label("From", exact=True).press("Enter")
    await page.get_by_label("To", exact=True).fill("2020-01-01T00:00")
    await page.get_by_label("To", exact=True).press("Enter")
    await expect(page.get_by_text("No task matches")).to_be_visible()
    await page.get_by_label("To", exact=True).fill("2090-01-01T00:00")
    await page.get_by_label("To", exact=True).press("Enter")
    await shows(page, failed)
    assert re.fullmatch(r"error:printer after:201[89]-\S+ before:20(89|90)-\S+", searched(page))
    (site.folder / "go").touch()


@on_postgres
async def test_everything_that_matches_is_counted_confirmed_and_done(site: Site, page: Page, axe: Axe):
    broken = [site.submit("broken") for _ in range(5)]
    kept = site.submit("broken", {"text": "another"})
    for task in [*broken, kept]:
        site.wait(task, "failed")
    (site.folder / "fixed").touch()
    await site.sign_in(page)
    await search(page, 'error:"it broke"')
    await shows(page, *reversed(broken))
    await page.get_by_role("button", name="All 5 that match").click()
    await page.get_by_role("menuitem", name="Delete the finished…").click()
    dialog = page.get_by_role("dialog", name="Delete all tasks that match?")
    await expect(dialog).to_contain_text("This concerns 5 tasks")
    await expect(dialog).to_contain_text('error:"it broke"')
    await axe(page)
    await dialog.get_by_role("button", name="Keep as it is").click()
    assert site.api("GET", "/api/tasks")["total"] == 6

    # Selected ones: rows, all on the page.
    first, second = (row(page, task).get_by_role("checkbox") for task in broken[:2])
    await first.check()
    await second.check()
    bar = page.get_by_role("group", name="Selected tasks")
    await expect(bar).to_contain_text("2 selected")
    await expect(bar.get_by_role("button", name="Cancel…")).to_have_attribute("aria-disabled", "true")
    await bar.get_by_role("button", name="Cancel…").hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("there is nothing to cancel")
    await bar.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete the selected tasks?")
    await dialog.get_by_role("button", name="Delete 2 tasks").click()
    await expect(page.get_by_text("Deleted 2 tasks.")).to_be_visible()
    await shows(page, *reversed(broken[2:]))
    await expect(bar).to_have_count(0)
    await page.get_by_label("Select all on this page").check()
    await expect(bar).to_contain_text("3 selected")
    await bar.get_by_role("button", name="Clear the selection").click()

    await page.get_by_role("button", name="All 3 that match").click()
    await page.get_by_role("menuitem", name="Retry the failed…").click()
    dialog = page.get_by_role("dialog", name="Retry all tasks that match?")
    await dialog.get_by_role("button", name="Retry 3 tasks").click()
    await expect(page.get_by_text("Retried 3 tasks.")).to_be_visible()
    retried = [entry["taskId"] for entry in site.api("GET", "/api/audit")["entries"] if entry["action"] == "retry"]
    assert sorted(retried) == sorted(broken[2:])


@one_engine
async def test_rules_of_the_status_and_keys_and_a_phone(site: Site, page: Page, axe: Axe):
    await site.sign_in(page)
    await expect(page.get_by_text("tasklib submit greet name=Ada")).to_be_visible()
    await expect(page.get_by_text('greet.submit("Ada")')).to_be_visible()

    task = site.submit("nobody's")
    await row(page, task).get_by_role("button", name="Actions for task").click()
    for name, reason in [
        ("Retry now", "Only failed tasks can be retried; this one is pending."),
        ("Delete…", "Only finished tasks can be deleted. Cancel it first."),
    ]:
        item = page.get_by_role("menuitem", name=name)
        await expect(item).to_have_attribute("aria-disabled", "true")
        await expect(item).to_contain_text(reason)
    await page.get_by_role("menuitem", name="Cancel…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel task").click()
    await expect(row(page, task)).to_contain_text("Cancelled")
    await choose(page, task, "Delete…")
    await page.get_by_role("dialog").get_by_role("button", name="Delete task").click()
    await expect(page.get_by_text(f"Task {task[-12:]} is deleted.")).to_be_visible()
    await expect(page.get_by_text("No tasks yet")).to_be_visible()

    older, newer = site.submit("a_long_name_of_a_task_type_that_goes_on" * 3), site.submit("other")
    await shows(page, newer, older)
    await page.keyboard.press("j")
    await expect(row(page, newer)).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(row(page, older)).to_be_focused()
    await page.keyboard.press("x")
    await expect(row(page, older).get_by_role("checkbox")).to_be_checked()
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{site.url}/tasks/{newer}")

    await page.set_viewport_size({"width": 390, "height": 844})
    await page.go_back()
    await shows(page, newer, older)
    await expect(page.get_by_role("table")).to_have_count(0)
    await row(page, older).get_by_role("checkbox").check()
    await expect(page.get_by_role("group", name="Selected tasks")).to_contain_text("1 selected")
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await axe(page)


def submit_many(site: Site, number: int) -> list[str]:
    with httpx.Client(base_url=site.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        return [client.post("/api/tasks", json={"type": "nobody's", "payload": {}}).json()["id"] for _ in range(number)]


@on_postgres
async def test_pages_without_gaps(site: Site, page: Page):
    newest_first = submit_many(site, 120)[::-1]
    await site.sign_in(page)
    shown = page.locator("[data-range]")
    seen: list[str] = []
    for at, text in enumerate(["1\u201350 of 120", "51\u2013100 of 120", "101\u2013120 of 120"]):
        await expect(shown).to_have_text(f"{text}, newest first")
        await expect(row(page, newest_first[at * 50])).to_be_visible()
        seen += await page.locator("[data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")
        if at < 2:
            await page.get_by_role("button", name="Next page").click()
    assert seen == newest_first
    await expect(page.get_by_role("button", name="Next page")).to_have_attribute("aria-disabled", "true")
    await page.reload()
    await expect(shown).to_have_text("101\u2013120 of 120, newest first")
    await page.get_by_role("button", name="Previous page").click()
    await expect(shown).to_have_text("51\u2013100 of 120, newest first")
    await page.go_back()
    await expect(shown).to_have_text("101\u2013120 of 120, newest first")
    await page.go_back()
    await expect(row(page, newest_first[50])).to_be_visible()

    # A task that comes now is told of, and nothing moves.
    await expect(page.locator("[data-live=live]")).to_be_visible()
    new = site.submit("nobody's")
    await page.get_by_role("button", name="1 new task").click()
    await expect(row(page, new)).to_be_visible()
    await expect(shown).to_have_text("1\u201350 of 121, newest first")

    # All that match, from the selection.
    await page.get_by_label("Select all on this page").check()
    await page.get_by_role("button", name="Select all 121 that match").click()
    await page.get_by_role("group", name="Selected tasks").get_by_role("button", name="Cancel…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel 121 tasks").click()
    await expect(page.get_by_text("Cancelled 121 tasks.")).to_be_visible()
    await page.get_by_label("Tasks on a page").select_option("100")
    await expect(page.locator("[data-row] [data-status=cancelled]")).to_have_count(100)
    await page.goto(f"{site.url}/tasks?cursor={newest_first[99]}")
    await expect(shown).to_have_text("20 of 121, newest first")
    await expect(page.get_by_role("button", name="Previous page")).to_have_attribute("aria-disabled", "true")


@one_engine
async def test_who_may_only_look_sees_no_actions_and_hostile_text_stays_text(site: Site, page: Page, console: Console):
    hostile = '<img src=x onerror=window.hit=1>"\\ \u202e'
    task = site.submit(hostile, {"<b>": hostile}, tags={"k": hostile})
    failed = site.submit("broken", {"text": hostile})
    site.wait(failed, "failed")
    token = site.token("read-only")
    await site.sign_in(page, token)
    await shows(page, failed, task)
    main = page.get_by_role("main")
    await expect(main.get_by_role("checkbox", name=re.compile("Select"))).to_have_count(0)
    await expect(main.get_by_role("button", name=re.compile("Actions|that match"))).to_have_count(0)
    refused = await page.evaluate(f"fetch('api/tasks/{failed}/retry', {{method: 'POST'}}).then(a => a.status)")
    console.expect("403")
    assert refused == 403

    await page.get_by_label("Type", exact=True).select_option(index=list_index(site, hostile))
    await shows(page, task)
    await expect(field(page)).to_have_value('type:"<img src=x onerror=window.hit=1>\\"\\\\ \\u202e"')
    await page.reload()
    await shows(page, task)
    await field(page).fill("tag:k=")
    await page.get_by_role("option", name=re.compile("^tag:")).click()
    await shows(page, task)
    assert await page.locator("main img").count() == 0
    assert await page.evaluate("window.hit") is None
    assert "\u202e" not in await page.locator("body").inner_text()


def list_index(site: Site, name: str) -> int:
    """Where the drop-down has it: after "All types", in order."""
    return 1 + sorted(each["type"] for each in site.api("GET", "/api/types")["types"]).index(name)


@on_postgres
async def test_rows_follow_the_queue_stand_still_under_the_pointer_and_when_paused(site: Site, page: Page):
    first = site.submit("echo", {"value": 1})
    site.wait(first, "completed")
    await site.sign_in(page)
    await shows(page, first)
    await expect(page.locator("[data-live=live]")).to_be_visible()
    second = site.submit("slow", {"folder": str(site.folder)})
    await shows(page, second, first)
    await expect(row(page, second)).to_contain_text("Processing")

    await row(page, second).hover()
    third = site.submit("echo", {"value": 3})
    hint = page.get_by_role("button", name="1 new task")
    await expect(hint).to_be_visible()
    await shows(page, second, first)
    (site.folder / "go").touch()
    await expect(row(page, second)).to_contain_text("Completed")
    await hint.click()
    await shows(page, third, second, first)

    await page.locator("[data-live]").click()
    await expect(page.locator("[data-live=paused]")).to_be_visible()
    fourth = site.submit("echo", {"value": 4})
    site.wait(fourth, "completed")
    await row(page, first).hover()
    await shows(page, third, second, first)
    await page.locator("[data-live]").click()
    await shows(page, fourth, third, second, first)


@on_postgres
async def test_a_hundred_rows_stay_while_thousands_of_tasks_finish(site: Site, page: Page):
    first = [site.submit("echo", {"value": at}) for at in range(3)]
    site.wait(first[-1], "completed")
    await site.sign_in(page, path="/tasks?limit=100")
    await shows(page, *reversed(first))
    await expect(page.locator("[data-live=live]")).to_be_visible()
    await page.evaluate("""() => {
        window.fewest = Infinity;
        const look = () => { window.fewest = Math.min(window.fewest, document.querySelectorAll("[data-row]").length); };
        new MutationObserver(look).observe(document.querySelector("main"), {childList: true, subtree: true});
    }""")
    engine = Engine(Config(database_url=site.database_url))
    try:
        store = await engine.store()
        await submit_several(store, 1000, "echo")
        await expect(page.locator("[data-row]")).to_have_count(100)
        await page.evaluate("window.fewest = 100")
        # From now on the pointer is there: the same elements in the same places, whatever comes.
        await page.locator("[data-row]").nth(1).hover()
        held = await page.locator("[data-row]").evaluate_all("rows => (window.held = rows).map(row => row.dataset.row)")
        await submit_several(store, 1000, "echo")
    finally:
        await engine.close()
    await expect(page.get_by_role("button", name="100+ new tasks")).to_be_visible()
    await expect(page.locator("[data-row] [data-status=completed]")).to_have_count(100)
    now = await page.locator("[data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")
    assert now == held
    assert await page.evaluate("window.held.every(row => row.isConnected)")
    assert await page.evaluate("window.fewest") == 100
