"""Installs what the faults need beyond wheels: `python -m tests.faults.packages`, as root on Debian and its kin."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARIES = (Path("/usr/lib"), Path("/usr/local/lib"))


def faketime() -> Path | None:
    return next((found for folder in LIBRARIES for found in sorted(folder.glob("**/faketime/libfaketime.so.1"))), None)


def missing() -> list[str]:
    wanted = {
        "pgbouncer": shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin"),
        "libfaketime": faketime(),
    }
    return [name for name, found in wanted.items() if found is None]


def main() -> int:
    names = missing()
    if not names:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.stderr.write(f"install these first: {' '.join(names)}\n")
        return 1
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=False, env=environment, stdout=subprocess.DEVNULL)
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *names]
    return subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
