"""What is around the pages: signing in, addresses, mounts, themes, keys, live updates."""

import re

import pytest
from playwright.async_api import BrowserContext, Page, Route, expect

from tests.ui.conftest import Axe, Serve
from tests.ui.console import Console
from tests.ui.looks import THEMES, in_both_themes, one_engine
from tests.ui.site import TOKEN, Site

pytestmark = one_engine

PAGES = [
    ("/tasks", "Tasks"),
    ("/stats", "Stats"),
    ("/workers", "Workers"),
    ("/types", "Types"),
    ("/schedules", "Schedules"),
    ("/flows", "Flows"),
]


def title(page: Page, text: str):
    return expect(page.get_by_role("heading", level=1, name=text))


# -- signing in -------------------------------------------------------------------------------------------------------


async def test_a_login_link_signs_in_and_leaves_no_trace(site: Site, page: Page):
    await page.goto(site.link())
    await page.wait_for_url(f"{site.url}/tasks")
    await title(page, "Tasks").to_be_visible()
    await page.go_back()
    assert TOKEN not in page.url


async def test_whoever_signs_in_gets_to_the_page_that_was_wanted(site: Site, page: Page):
    wanted = f"{site.url}/tasks?q=status%3Afailed+type%3Aa%26b"
    await page.goto(wanted)
    await expect(page).to_have_url(re.compile(r"/login\?next="))
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(wanted)
    await title(page, "Tasks").to_be_visible()


async def test_a_wrong_token_is_refused_with_the_reason(site: Site, page: Page, console: Console):
    console.expect("401")
    await page.goto(f"{site.url}/login")
    await page.get_by_label("Token").fill("not-a-token-of-anybody")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("this token is not known, or was revoked")
    await expect(page.get_by_label("Token")).to_be_focused()


ELSEWHERE = ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "/\\evil.example", "../other"]


async def test_after_signing_in_nobody_is_sent_elsewhere(serve: Serve, page: Page):
    site = serve(worker=False, mount="/ops/queue")
    for wanted in ELSEWHERE:
        await page.goto(f"{site.url}/login?next={wanted}#token={TOKEN}")
        await page.wait_for_url(f"{site.url}/tasks")


async def test_a_link_on_another_site_opens_the_page(site: Site, page: Page, context: BrowserContext):
    """Browsers hold back the session's cookie then: whoever is signed in must not have to do it again."""
    await site.sign_in(page)

    async def elsewhere(route: Route) -> None:
        await route.fulfill(content_type="text/html", body=f'<a href="{site.url}/stats">see this</a>')

    await context.route("http://chat.example/**", elsewhere)
    await page.goto("http://chat.example/")
    await page.get_by_text("see this").click()
    await page.wait_for_url(f"{site.url}/stats")
    await title(page, "Stats").to_be_visible()


async def test_a_session_that_ended_leads_to_the_login_and_back(
    site: Site, page: Page, context: BrowserContext, console: Console
):
    console.expect("401")
    await site.sign_in(page, path="/workers")
    await title(page, "Workers").to_be_visible()
    await context.clear_cookies()
    await page.keyboard.press("r")
    await expect(page).to_have_url(f"{site.url}/login?next=workers")
    await page.get_by_label("Token").fill(TOKEN)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{site.url}/workers")


async def test_signing_out(site: Site, page: Page):
    await site.sign_in(page)
    await page.get_by_role("button", name="Session and theme").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.wait_for_url(f"{site.url}/login")
    await page.goto(f"{site.url}/tasks")
    await expect(page).to_have_url(f"{site.url}/login?next=tasks")


async def test_who_may_only_look_sees_no_buttons_that_change(site: Site, page: Page):
    await site.sign_in(page, site.token("read-only"))
    await expect(page.get_by_label(re.compile("Live updates: Live"))).to_be_visible()
    await expect(page.get_by_role("button", name="Pause all")).to_have_count(0)
    await page.get_by_role("button", name="Session and theme").click()
    await expect(page.get_by_text("may look, not change")).to_be_visible()


# -- addresses --------------------------------------------------------------------------------------------------------


async def test_every_page_can_be_opened_and_loaded_again_by_its_address(site: Site, page: Page):
    task = site.submit("echo", {"value": 1})
    await site.sign_in(page)
    for path, name in [*PAGES, (f"/tasks/{task}", "echo")]:
        answer = await page.goto(f"{site.url}{path}")
        assert answer is not None
        assert answer.status == 200
        await title(page, name).to_be_visible()
        await page.reload()
        await title(page, name).to_be_visible()
        await expect(page).to_have_title(f"{name} - tasklib")


async def test_an_address_without_a_page_says_so(site: Site, page: Page, console: Console):
    console.expect("404")
    await site.sign_in(page)
    await page.goto(f"{site.url}/no/such/page")
    await title(page, "Nothing here").to_be_visible()
    await page.get_by_role("link", name="To the tasks").click()
    await title(page, "Tasks").to_be_visible()


async def test_a_task_that_is_not_there(site: Site, page: Page, console: Console):
    console.expect("404")
    await site.sign_in(page, path="/tasks/0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10")
    await expect(page.get_by_role("alert")).to_contain_text("It may have been deleted")


async def test_a_malformed_id_says_how_ids_look_and_asks_for_nothing(site: Site, page: Page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await site.sign_in(page, path="/tasks/4711")
    await expect(page.get_by_role("alert")).to_contain_text("IDs have 36 characters")
    await expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert not [url for url in asked if "4711" in url and "/api/" in url]


async def test_mounted_under_a_prefix(serve: Serve, page: Page):
    site = serve(mount="/ops/queue")
    assert site.url.endswith("/ops/queue")
    task = site.submit("echo", {"value": 1})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{site.url}/tasks/{task}")
    await expect(page).to_have_url(re.compile(r"/ops/queue/login\?next=tasks"))
    await page.get_by_label("Token").fill(TOKEN)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{site.url}/tasks/{task}")
    await title(page, "echo").to_be_visible()
    for path, name in PAGES:
        await page.get_by_role("link", name=name, exact=True).click()
        await page.wait_for_url(f"{site.url}{path}")
        await title(page, name).to_be_visible()
        await page.reload()
        await title(page, name).to_be_visible()
    await expect(page.get_by_label(re.compile("Live updates: Live"))).to_be_visible()
    assert len(asked) > 20
    assert not [url for url in asked if not url.startswith(site.url)]


# -- looks ------------------------------------------------------------------------------------------------------------


async def is_dark(page: Page) -> bool:
    dark: bool = await page.evaluate("document.documentElement.classList.contains('dark')")
    return dark


async def test_the_theme_follows_the_system_until_one_is_chosen(site: Site, page: Page):
    await page.emulate_media(color_scheme="dark")
    await site.sign_in(page)
    assert await is_dark(page)
    await page.emulate_media(color_scheme="light")
    await expect(page.locator("html:not(.dark)")).to_have_count(1)
    await page.get_by_role("button", name="Session and theme").click()
    await page.get_by_role("menuitemradio", name="Dark").click()
    await expect(page.locator("html.dark")).to_have_count(1)
    await page.add_init_script("""
        addEventListener("DOMContentLoaded", () => {
            window.darkAtFirst = document.documentElement.classList.contains("dark");
        });
    """)
    await page.reload()
    await title(page, "Tasks").to_be_visible()
    assert await page.evaluate("window.darkAtFirst"), "a light page would flash up"
    await page.goto(f"{site.url}/login")
    assert await is_dark(page)


async def test_on_a_phone_the_navigation_is_at_the_bottom(site: Site, page: Page, axe: Axe):
    await page.set_viewport_size({"width": 390, "height": 844})
    await site.sign_in(page)
    for path, name in PAGES:
        await page.get_by_role("link", name=name, exact=True).click()
        await page.wait_for_url(f"{site.url}{path}")
        await title(page, name).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path} is {wide} pixels too wide"
    await axe(page)


async def test_the_environment_is_shown(serve: Serve, page: Page):
    site = serve(worker=False, environment="<b>staging</b>\u202e")
    await site.sign_in(page)
    await expect(page.locator("[data-environment]")).to_have_text("<b>staging</b>\\u202e")
    await expect(page.locator("[data-environment]")).to_have_attribute("data-environment", "other")
    await expect(page).to_have_title("<b>staging</b>\\u202e: Tasks - tasklib")


async def test_production_has_its_own_colour(serve: Serve, page: Page, axe: Axe):
    site = serve(worker=False, environment="Production EU")
    await site.sign_in(page)
    badge = page.locator("[data-environment=production]")
    await expect(badge).to_have_text("Production EU")
    failed = await page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--failed')")
    assert await badge.evaluate(
        "(badge, failed) => { badge.style.outlineColor = failed;"
        "return getComputedStyle(badge).color === getComputedStyle(badge).outlineColor }",
        failed,
    )
    await in_both_themes(page, axe)


CUT = """async () => {
    const cut = () => [...document.querySelectorAll("main *")]
        .filter(each => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
        .filter(each => ["auto", "hidden"].includes(getComputedStyle(each).overflowX))
        .filter(each => !each.closest(".sr-only") && each.closest("table, section"))
        .map(each => `${each.tagName} ${each.ariaLabel ?? each.textContent.slice(0, 40)}`)
    let found
    // The page follows its new width in two frames; charts may take a few more.
    for (let frame = 0; frame < 2 || (frame < 60 && found.length > 0); frame++) {
        await new Promise(requestAnimationFrame)
        found = cut()
    }
    return found
}"""


async def test_no_table_is_cut_on_a_small_screen(site: Site, page: Page):
    for _ in range(2):
        site.submit("reports.monthly_totals")
    site.wait(site.submit("flaky"), "failed")
    await site.sign_in(page)
    for path, name in PAGES:
        await page.goto(f"{site.url}{path}")
        await title(page, name).to_be_visible()
        for width in (1160, 1100, 1000, 900, 800):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.wait_for_function("document.querySelectorAll('[aria-busy=true]').length === 0")
            await expect(page.locator("[data-row], [data-worker], [data-type], main svg").first).to_be_visible()
            assert await page.evaluate(CUT) == [], f"{path} at {width} px"


async def test_no_page_has_serious_faults_of_accessibility(site: Site, page: Page, axe: Axe):
    tasks = [site.submit("echo", {"value": [1, {"a": None}]}), site.submit("broken"), site.submit("flaky")]
    site.wait(tasks[1], "failed")
    for scheme in THEMES:
        await page.emulate_media(color_scheme=scheme)
        await page.goto(f"{site.url}/login")
        await axe(page)
    await site.sign_in(page)
    for path, name in [*PAGES, (f"/tasks/{tasks[0]}", "echo"), (f"/tasks/{tasks[1]}", "broken")]:
        await page.goto(f"{site.url}{path}")
        await title(page, name).to_be_visible()
        await page.wait_for_load_state("load")
        await in_both_themes(page, axe)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await in_both_themes(page, axe)


async def test_big_integers_are_exact(site: Site, page: Page):
    body = '{"type": "echo", "payload": {"value": {"id": 9007199254740993, "price": 1.50}}}'
    await site.sign_in(page)
    made = await page.evaluate(
        """async body => {
            const headers = {"Content-Type": "application/json"};
            return (await fetch("api/tasks", {method: "POST", headers, body})).json();
        }""",
        body,
    )
    site.wait(made["id"], "completed")
    await page.goto(f"{site.url}/tasks/{made['id']}")
    await expect(page.get_by_text("9007199254740993")).to_have_count(2)  # payload and result


# -- keys and focus ---------------------------------------------------------------------------------------------------


async def test_keys(site: Site, page: Page):
    await site.sign_in(page)
    await title(page, "Tasks").to_be_visible()
    async with page.expect_response(re.compile("/api/tasks")):
        await page.keyboard.press("r")
    await page.keyboard.press("?")
    help_dialog = page.get_by_role("dialog", name="Keyboard")
    await expect(help_dialog).to_contain_text("Search tasks")
    await page.keyboard.press("Escape")
    await expect(help_dialog).to_have_count(0)


async def test_the_keyboard_starts_at_the_new_page(site: Site, page: Page):
    await site.sign_in(page)
    await title(page, "Tasks").to_be_visible()
    await page.keyboard.press("Tab")
    skip = page.get_by_role("button", name="Skip to content")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    await page.get_by_role("link", name="Workers").click()
    await title(page, "Workers").to_be_visible()
    await expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_way_back_leads_to_the_row_that_was_left(site: Site, page: Page, width: int):
    await page.set_viewport_size({"width": width, "height": 800})
    tasks = [site.submit("echo", {"value": number}) for number in range(3)]
    await site.sign_in(page)
    await page.locator(f'main a[href$="/tasks/{tasks[1]}"]').first.click()
    await title(page, "echo").to_be_visible()
    await page.go_back()
    await expect(page.locator(f'[data-row="{tasks[1]}"]')).to_be_focused()
    await page.locator(f'main a[href$="/tasks/{tasks[2]}"]').first.click()
    await title(page, "echo").to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(f'[data-row="{tasks[2]}"]')).to_be_focused()


# -- live -------------------------------------------------------------------------------------------------------------


async def test_what_happens_shows_without_loading_again(site: Site, page: Page):
    await site.sign_in(page)
    await expect(page.get_by_text("No tasks yet")).to_be_visible()
    task = site.submit("echo", {"value": 1})
    row = page.get_by_role("row").filter(has_text=task[-12:])
    await expect(row).to_contain_text("Completed")


async def test_live_updates_can_be_paused(site: Site, page: Page):
    await site.sign_in(page)
    await expect(page.locator("[data-live=live]")).to_be_visible()
    await page.locator("[data-live]").click()
    await expect(page.locator("[data-live=paused]")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    site.wait(site.submit("echo", {"value": 1}), "completed")
    site.wait(site.submit("broken"), "failed")
    assert asked == []
    await page.locator("[data-live]").click()
    await expect(page.get_by_role("row")).to_have_count(3)


async def test_a_tab_that_nobody_sees_asks_for_nothing(site: Site, page: Page, context: BrowserContext):
    await site.sign_in(page)
    await expect(page.locator("[data-live=live]")).to_be_visible()
    await page.evaluate("""() => {
        Object.defineProperty(document, "hidden", {configurable: true, get: () => window.away === true});
        window.away = true;
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    await expect(page.locator("[data-live=hidden]")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    site.wait(site.submit("echo", {"value": 1}), "completed")
    assert asked == []
    await page.evaluate("""() => {
        window.away = false;
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    await expect(page.get_by_role("row")).to_have_count(2)
    await expect(page.locator("[data-live=live]")).to_be_visible()


async def test_pausing_everything_asks_first_and_shows_everywhere(site: Site, page: Page):
    await site.sign_in(page)
    await page.get_by_role("button", name="Pause all").click()
    dialog = page.get_by_role("dialog", name="Pause all task types?")
    await dialog.get_by_role("button", name="Pause all").click()
    await expect(page.get_by_text("All task types are paused: no worker starts a task.")).to_be_visible()
    await expect(dialog).to_have_count(0)
    assert site.api("GET", "/api/controls")["paused"]
    task = site.submit("echo", {"value": 1})
    await page.get_by_role("button", name="Resume all").click()
    await expect(page.get_by_text("All task types are paused: no worker starts a task.")).to_have_count(0)
    site.wait(task, "completed")


async def test_without_a_connection_the_dashboard_stays_and_says_so(
    site: Site, page: Page, context: BrowserContext, console: Console
):
    console.expect("ERR_INTERNET_DISCONNECTED")
    console.expect("newer dashboard")  # React logs every error that a page shows
    await site.sign_in(page)
    await expect(page.locator("[data-live=live]")).to_be_visible()
    await context.set_offline(True)
    await page.get_by_role("link", name="Types").click()
    await expect(page.get_by_role("alert")).to_contain_text("This page could not be loaded")
    await context.set_offline(False)
    await page.get_by_role("button", name="Try again").click()
    await title(page, "Types").to_be_visible()
    await expect(page.locator("[data-live=live]")).to_be_visible()


async def test_a_page_that_was_never_loaded_comes_when_the_server_is_back(site: Site, page: Page, console: Console):
    console.expect("ERR_FAILED")
    console.expect("newer dashboard")

    async def down(route: Route) -> None:
        await route.abort()

    await page.route("**/api/events", down)
    await site.sign_in(page)
    await title(page, "Tasks").to_be_visible()
    await page.route("**/assets/app/types-page*", down)
    await page.get_by_role("link", name="Types").click()
    await expect(page.get_by_role("alert")).to_contain_text("This page could not be loaded")
    await page.unroute("**/assets/app/types-page*")
    await page.unroute("**/api/events")
    await title(page, "Types").to_be_visible()  # by itself


async def test_a_seventh_window_works_too(site: Site, context: BrowserContext, console: Console):
    """A browser opens six connections to a server, for all of its windows."""
    pages = [await context.new_page() for _ in range(7)]
    await site.sign_in(pages[0])
    for page in pages:
        await page.goto(f"{site.url}/tasks")
        await expect(page.locator("[data-live=live], [data-live=polling]")).to_be_visible()
    task = site.submit("echo", {"value": 1})
    for page in pages:
        await expect(page.get_by_role("row").filter(has_text=task[-12:])).to_contain_text("Completed")
