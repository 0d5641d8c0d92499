"""The code of another revision, beside which this one is measured: `make bench BEFORE=v0.1`."""

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def take_out(revision: str, folder: Path) -> Path:
    """The repository as it was then, in this folder. Its sources are in `src`."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder
