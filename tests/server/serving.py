"""`tasklib serve` as a process of its own."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cli.running import background
from tests.waiting import eventually


@dataclass(frozen=True)
class Server:
    url: str
    login: str | None
    process: subprocess.Popen[str]


@contextmanager
def serving(folder: Path, *arguments: str, env: Mapping[str, str]) -> Iterator[Server]:
    """A server on a free port, once it answers. Its stdout goes to `stdout.txt`."""
    out = folder / "stdout.txt"
    with (
        out.open("w") as stdout,
        background(["serve", "--port", "0", "--json", *arguments], folder, env=env, stdout=stdout) as process,
    ):

        def told() -> str:
            assert process.poll() is None, (folder / "stderr.txt").read_text()
            return out.read_text()

        said = json.loads(eventually(told, timeout=30))

        def answers() -> bool:
            try:
                return httpx.get(httpx.URL(said["url"]).copy_with(path="/healthz")).status_code == 200
            except httpx.TransportError:
                return False

        eventually(answers, timeout=30)
        yield Server(said["url"], said["login"], process)
