"""The code of schema version 1, from the history of this repository."""

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMIT = "e91070f"
"""The last one whose tables are of version 1."""


class NotInThisClone(Exception):
    def __str__(self) -> str:
        return (
            f"the code of schema version 1, commit {COMMIT}, is not in this checkout: it has no history, or a part of "
            "it only. In a shallow clone run: git fetch --unshallow"
        )


def old_source(folder: Path) -> Path:
    """What is put before PYTHONPATH to run it."""
    command = ["git", "archive", "--format=tar", COMMIT, "src"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotInThisClone from error
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"
