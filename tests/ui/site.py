"""A dashboard that runs: the server, perhaps a worker, and ways to use them."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from playwright.async_api import Page

from tasklib import Config
from tasklib.api.sync import run_sync
from tasklib.engine.engine import Engine
from tasklib.server.tokens import Role, new_token
from tests.cli.running import background
from tests.cli.running import environment as environment_of
from tests.server.serving import serving
from tests.waiting import eventually

TOKEN = "an-admin-token-of-the-tests"
JOBS = Path(__file__).parent / "jobs.py"
MOUNTED = Path(__file__).parent / "mounted.py"


@dataclass(frozen=True)
class Site:
    url: str
    """Of the dashboard, its prefix included, without a slash at the end."""
    folder: Path
    """For the files of one test."""
    env: dict[str, str]

    @property
    def database_url(self) -> str:
        return self.env["TASKLIB_DATABASE_URL"]

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """A request with the admin's token; the answer's JSON. Errors are raised."""
        answer = httpx.request(
            method, f"{self.url}{path}", json=body, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def submit(self, name: str, payload: Any = None, **options: Any) -> str:
        """A task; its id. `options` are those of the API: maxAttempts, runAfter, tags, priority."""
        body = {"type": name, "payload": {} if payload is None else payload, "options": options}
        task_id: str = self.api("POST", "/api/tasks", body)["id"]
        return task_id

    def wait(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """The task, once its status is one of these."""
        found: dict[str, Any] = {}

        def reached() -> bool:
            found.update(self.api("GET", f"/api/tasks/{task_id}"))
            return found["status"] in statuses

        eventually(reached, timeout=30, interval=0.05)
        return found

    def token(self, role: str) -> str:
        """A new token with this role: read-only, operator, worker or admin."""
        text, kept = new_token(Role(role), role)

        async def add() -> None:
            engine = Engine(Config(database_url=self.database_url))
            try:
                await (await engine.store()).add_token(kept)
            finally:
                await engine.close()

        run_sync(add())
        return text

    def link(self, token: str = TOKEN) -> str:
        return f"{self.url}/login#token={token}"

    async def sign_in(self, page: Page, token: str = TOKEN, path: str = "/tasks") -> None:
        """Through the login link to a page."""
        login = f"{self.url}/login"
        await page.goto(f"{login}?next={quote(path.removeprefix('/'), safe='')}#token={token}")
        await page.wait_for_url(lambda url: not url.startswith(login))


@contextmanager
def start_site(
    folder: Path,
    database_url: str,
    *,
    worker: bool = True,
    mount: str = "",
    environment: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Site]:
    """With `mount` the server is a part of another application, under that prefix. `settings` are more variables."""
    env = {"TASKLIB_DATABASE_URL": database_url, "TASKLIB_TOKEN": TOKEN, **(settings or {})}
    if environment is not None:
        env["TASKLIB_ENVIRONMENT"] = environment
    for name in ("server", "worker"):
        (folder / name).mkdir(exist_ok=True)
    with ExitStack() as stack:
        if mount:
            url = stack.enter_context(_mounted(folder / "server", mount, env))
        else:
            url = stack.enter_context(serving(folder / "server", str(JOBS), env=env)).url
        site = Site(url, folder, env)
        if worker:
            command = ["worker", str(JOBS), "--concurrency", "2", "--poll-interval", "0.2"]
            stack.enter_context(background(command, folder / "worker", env={**env, "TASKLIB_TOKEN": ""}))
            eventually(lambda: any(each["live"] for each in site.api("GET", "/api/workers")["workers"]), timeout=30)
        yield site


@contextmanager
def _mounted(folder: Path, prefix: str, env: dict[str, str]) -> Iterator[str]:
    """The address, once it answers."""
    with (folder / "stderr.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(MOUNTED), prefix],
            env=environment_of(env),
            text=True,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    with process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, (folder / "stderr.txt").read_text()
            yield f"{url}{prefix}"
        finally:
            process.kill()
