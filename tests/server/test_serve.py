"""`tasklib serve` and `tasklib token`, as people use them."""

import getpass
import json
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tasklib.server.schema_file import FILE
from tests.cli.running import SHOP, background, environment, run_process
from tests.pages import ROOT, blocks
from tests.server.conftest import TOKEN
from tests.server.serving import serving
from tests.waiting import eventually

PAGE = ROOT / "docs" / "http.md"
TOUR = PAGE.with_name("tour.md")


@pytest.fixture
def env(sqlite_url: str) -> dict[str, str]:
    return {"TASKLIB_DATABASE_URL": sqlite_url}


def test_without_a_token_a_login_link_is_made(tmp_path: Path, env: dict[str, str]):
    with serving(tmp_path, env=env) as server:
        assert server.login is not None
        link, _, token = server.login.partition("#token=")
        assert httpx.get(link).status_code == 200
        assert httpx.get(f"{server.url}/api/tasks").status_code == 401
        answer = httpx.post(f"{server.url}/api/login", json={"token": token}, headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.json()["role"] == "admin"
        assert httpx.get(f"{server.url}/api/tasks", cookies=dict(answer.cookies)).json()["total"] == 0
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
    assert token not in (tmp_path / "stderr.txt").read_text()


def test_a_stop_ends_live_streams(tmp_path: Path, env: dict[str, str]):
    with serving(tmp_path, env={**env, "TASKLIB_TOKEN": TOKEN}) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.stream("GET", f"{server.url}/api/events", headers=headers, timeout=20) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry:")
            server.process.send_signal(signal.SIGINT)
            list(lines)
        assert server.process.wait(20) == 0


def test_tokens_from_the_command_line(tmp_path: Path, env: dict[str, str]):
    made = run_process(["token", "create", "--role", "operator", "--label", "ann", "--json"], tmp_path, env=env).data
    listed = run_process(["token", "list", "--json"], tmp_path, env=env)
    assert [(token["id"], token["role"], token["label"]) for token in listed.data] == [(made["id"], "operator", "ann")]
    assert made["token"] not in listed.out
    assert made["id"] in run_process(["token", "list"], tmp_path, env=env).out
    with serving(tmp_path, env=env) as server:
        assert server.login is None
        headers = {"Authorization": f"Bearer {made['token']}"}
        assert httpx.post(f"{server.url}/api/tasks/pause", headers=headers).json() == {"paused": True}
        assert httpx.post(f"{server.url}/api/tasks", json={}, headers=headers).status_code == 403
        actors = [entry["actor"] for entry in httpx.get(f"{server.url}/api/audit", headers=headers).json()["entries"]]
        assert actors == ["ann", f"{getpass.getuser()} (command line)"]
        assert run_process(["token", "revoke", made["id"]], tmp_path, env=env).code == 0
        eventually(lambda: httpx.get(f"{server.url}/api/tasks", headers=headers).status_code == 401)
    again = run_process(["token", "revoke", made["id"]], tmp_path, env=env)
    assert (again.code, "revoked before" in again.err) == (1, True)


@pytest.mark.parametrize(
    "arguments", [["--role", "king", "--label", "x"], ["--label", "x"], ["--role", "admin", "--label", ""]]
)
def test_token_create_refuses(tmp_path: Path, env: dict[str, str], arguments: list[str]):
    assert run_process(["token", "create", *arguments], tmp_path, env=env).code == 2


def test_other_addresses_need_a_token(tmp_path: Path, env: dict[str, str]):
    refused = run_process(["serve", "--host", "0.0.0.0", "--port", "0"], tmp_path, env=env)
    assert refused.code == 2
    assert "tasklib token create" in refused.err
    with serving(tmp_path, "--host", "0.0.0.0", env={**env, "TASKLIB_TOKEN": TOKEN}) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/api/tasks").status_code == 401


def test_no_authentication_is_said_aloud(tmp_path: Path, env: dict[str, str]):
    with serving(tmp_path, "--insecure-no-auth", env=env) as server:
        assert httpx.get(f"{server.url}/api/tasks").status_code == 200
    assert "authentication is off" in (tmp_path / "stderr.txt").read_text()


def test_a_taken_port_and_a_short_token(tmp_path: Path, env: dict[str, str]):
    with serving(tmp_path, env=env) as server:
        port = server.url.rpartition(":")[2]
        taken = run_process(["serve", "--port", port], tmp_path, env=env)
    assert taken.code == 2
    assert "cannot listen" in taken.err
    short = run_process(["serve", "--port", "0"], tmp_path, env={**env, "TASKLIB_TOKEN": "short"})
    assert (short.code, "at least 16" in short.err) == (2, True)


def test_behind_a_prefix(tmp_path: Path, env: dict[str, str]):
    """As a proxy that takes the prefix away passes requests on."""
    arguments = ["--root-path", "/queue/", "--allow-host", "queue.example"]
    with serving(tmp_path, *arguments, env={**env, "TASKLIB_TOKEN": TOKEN}) as server:
        assert server.url.endswith("/queue")
        url = server.url.removesuffix("/queue")
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "queue.example"}
        answer = httpx.post(f"{url}/api/tasks", json={"type": "t", "payload": 1}, headers=headers)
        assert answer.headers["location"].startswith("/queue/api/tasks/")
        assert httpx.get(f"{url}/api/tasks").status_code == 401


def test_types_of_an_application_are_checked(tmp_path: Path, env: dict[str, str]):
    (tmp_path / "shop.py").write_text("from tasklib import task\n@task\ndef add(a: int) -> int:\n    return a\n")
    with serving(tmp_path, "shop", env={**env, "TASKLIB_TOKEN": TOKEN}) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        wrong = httpx.post(f"{server.url}/api/tasks", json={"type": "add", "payload": {"a": "x"}}, headers=headers)
        assert (wrong.status_code, wrong.json()["field"]) == (400, "payload.a")
        right = httpx.post(f"{server.url}/api/tasks", json={"type": "add", "payload": {"a": 1}}, headers=headers)
        assert right.status_code == 201


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_pause_holds_for_a_worker_in_another_process(tmp_path: Path, backend: str, request: pytest.FixtureRequest):
    (tmp_path / "shop.py").write_text(SHOP)
    env = {"TASKLIB_DATABASE_URL": request.getfixturevalue(f"{backend}_url"), "TASKLIB_TOKEN": TOKEN}
    worker_folder = tmp_path / "worker"
    worker_folder.mkdir()
    with (
        serving(tmp_path, env=env) as server,
        background(["worker", str(tmp_path / "shop.py")], worker_folder, env=env),
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}) as api,
    ):

        def submit(name: str, **payload: object) -> str:
            made = api.post("/api/tasks", json={"type": name, "payload": payload})
            task_id: str = made.json()["id"]
            return task_id

        def status(task_id: str) -> str:
            found: str = api.get(f"/api/tasks/{task_id}").json()["status"]
            return found

        begun = submit("note_pid", folder=str(tmp_path), wait=True)
        eventually(lambda: list(tmp_path.glob("*.pid")), timeout=30)
        api.post("/api/tasks/pause")
        kept = submit("add", a=1)  # the pause is committed: not one claim can come after it
        with pytest.raises(AssertionError, match="still not true"):
            eventually(lambda: status(kept) != "pending", timeout=1.5, interval=0.05)
        assert status(begun) == "processing"
        (tmp_path / "go").touch()  # what ran when the pause came may finish
        eventually(lambda: status(begun) == "completed")
        assert status(kept) == "pending"
        api.post("/api/tasks/resume")
        eventually(lambda: status(kept) == "completed")


@pytest.mark.parametrize(("page", "count"), [(PAGE, 10), (TOUR, 3)], ids=["http.md", "tour.md"])
def test_the_examples_of_the_page_run(tmp_path: Path, env: dict[str, str], page: Path, count: int):
    (block,) = [block for block in blocks(page) if block.language == "bash" and "curl" in block.text]
    with serving(tmp_path, env={**env, "TASKLIB_TOKEN": TOKEN}) as server:
        script = block.text.replace("http://127.0.0.1:8700", server.url)
        commands = [line for line in re.sub(r"\\\n", " ", script).splitlines() if line.startswith("curl")]
        assert len(commands) == count
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", f"{command} --fail-with-body"],
                capture_output=True,
                text=True,
                timeout=30,
                env=environment({"TASKLIB_TOKEN": TOKEN}),
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            assert json.loads(done.stdout) is not None


def test_the_page_names_every_endpoint():
    said = PAGE.read_text()
    for path in json.loads(FILE.read_text())["paths"]:
        short = path.replace("{task_id}", "{id}").replace("{flow_id}", "{id}").replace("/{action}", "/retry")
        assert short in said or short.rpartition("/")[2] in said, path
