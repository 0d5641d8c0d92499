"""Other processes on the SQLite file of a test. They are real ones; each runs a script that the test gives."""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
HEAD = """
import asyncio, os, sys
from tasklib.core.errors import StoreClosed
from tasklib.stores.values import Filter
from tasklib.stores.sql.sqlite import SqliteStore
from tests.conformance.builders import *

url, *arguments = sys.argv[1:]

def tell(what):
    print(what, flush=True)

def wait_for_word():
    return sys.stdin.readline().strip()
"""


class Script:
    """A process that runs a script, and talks by lines."""

    def __init__(self, body: str, url: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "error", "-c", HEAD + body, url, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout

    def hear(self) -> str:
        return self._stdout.readline().strip()

    async def hear_async(self) -> str:
        """Without holding up the loop, in which something else is to happen meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, self.hear)

    def say(self, word: str = "go") -> None:
        self._stdin.write(word + "\n")
        self._stdin.flush()

    def end(self) -> int:
        """Its exit status."""
        self._stdin.close()
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """What is left of it, whether or not it has ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=60)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()


class Run:
    def __init__(self, url: str) -> None:
        self._url = url
        self.scripts: list[Script] = []

    def __call__(self, body: str, *arguments: str) -> Script:
        script = Script(body, self._url, *arguments)
        self.scripts.append(script)
        return script
