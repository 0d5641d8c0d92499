"""Which distribution this package comes from, and who else has put files into it.

On the package index the name `tasklib` belongs to another project, which installs into the same folder. The one of the
two that was installed last has the `__init__.py`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

DISTRIBUTION = "tasklib-queue"
FOREIGN = "tasklib"
"""The other project's distribution."""
FOREIGN_FILE = "task.py"
"""Theirs has it in every version, ours never."""
ADVICE = f"pip uninstall {FOREIGN} {DISTRIBUTION}, then pip install {DISTRIBUTION}"


def check_package() -> None:
    """Called by `tasklib.core`, through which every import of ours goes, whoever has the `__init__.py`. Costs one look
    for a file."""
    if not hasattr(sys.modules["tasklib"], "__distribution__"):
        raise ImportError(
            f"the package tasklib is not whole: its __init__.py is not {DISTRIBUTION}'s. The distribution {FOREIGN!r} "
            f"is another project that installs into the same folder: {ADVICE}"
        )
    if (Path(__file__).parent / FOREIGN_FILE).exists():
        text = f"the distribution {FOREIGN!r}, another project, has files in the package of {DISTRIBUTION}: {ADVICE}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def foreign_distribution() -> str | None:
    """The other project, where it is installed anywhere on the path. Dear: it looks through all that is installed."""
    from importlib import metadata

    try:
        found = metadata.distribution(FOREIGN)
    except metadata.PackageNotFoundError:
        return None
    return f"{found.metadata['Name']} {found.version} ({found.metadata['Summary']})"
