"""A Chromium to test with: Playwright's own, one on PATH, or one that is installed now."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_SECONDS = 600


def find_or_install(playwrights: Path) -> Path:
    """Never skips: without a browser the tests of the dashboard fail, and say why."""
    # Several test processes want it at once; one installs, the others wait and find it.
    with (Path(tempfile.gettempdir()) / f"tasklib-chromium-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _find(playwrights)
        if found is not None:
            return found
        reasons = [_run([sys.executable, "-m", "playwright", "install", "chromium"])]
        if _find(playwrights) is None:
            reasons.append(_install_package())
        found = _find(playwrights)
    if found is None:
        pytest.fail("no Chromium, and none could be installed:\n" + "\n".join(reasons), pytrace=False)
    return found


def _find(playwrights: Path) -> Path | None:
    if playwrights.exists():
        return playwrights
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)


def _install_package() -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "apt-get install chromium: needs root and apt-get"
    subprocess.run(["apt-get", "update", "-q"], capture_output=True, timeout=INSTALL_SECONDS, check=False)
    return _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: not done after {INSTALL_SECONDS} s"
    last = (done.stderr or done.stdout).strip().splitlines()[-5:]
    return f"{' '.join(command)}: exit code {done.returncode}\n" + "\n".join(f"    {line}" for line in last)
