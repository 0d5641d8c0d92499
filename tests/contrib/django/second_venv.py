"""A virtualenv with Django 6 beside `.venv`, which has 5.2 where its Python is older than 3.12: `make django6`.

It is made where a newer Python is found, on PATH or among pyenv's. `python -m tests.contrib.django.second_venv`.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests import pythons

ROOT = Path(__file__).parents[3]
VENV = ROOT / ".venv-django6"
PYTHON = VENV / "bin" / "python"
_STAMP = VENV / ".installed"
_NEEDED = (3, 12)


def is_there() -> bool:
    return _STAMP.exists() and _STAMP.stat().st_mtime >= (ROOT / "pyproject.toml").stat().st_mtime


def found_pythons() -> dict[str, Path]:
    """With which the tests run a project. Here is Django 5.2, or a later one where Python is 3.12 or newer."""
    return {"here": Path(sys.executable), **({"django6": PYTHON} if is_there() else {})}


def main() -> None:
    if sys.version_info >= _NEEDED or is_there():
        return
    newer = [each.path for each in pythons.find() if each.version >= _NEEDED]
    if not newer:
        sys.stderr.write("no Python 3.12 or newer was found: Django 6 is not tested\n")
        return
    if not PYTHON.exists():
        subprocess.run([newer[0], "-m", "venv", VENV], check=True)
    needed = [f"{ROOT}[django,postgres,reload,server]", "django>=6", "psycopg[binary]"]
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", *needed]
    subprocess.run(install, env={**os.environ, "TASKLIB_SKIP_UI": "1"}, check=True)
    _STAMP.touch()


if __name__ == "__main__":
    main()
