"""Puts the built dashboard into wheel and sdist, and builds it first where its sources have changed.

Where that cannot be done, because npm's registry is out of reach, the package is built without it, and says so.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        """Node, but only if it is needed: a wheel made from the sdist finds the build there."""
        build = _load(self.root)
        return [] if build.is_skipped() or build.is_fresh() else [build.NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build = _load(self.root)
        if build.is_skipped():
            return
        try:
            build.build()
        except build.NotHere as failed:
            self.app.display_warning(f"built without the dashboard; all else is there. The reason: {failed}")
            return
        # Git does not know these files, so hatch has to be told of them.
        build_data["artifacts"].append(f"/{build.OUTPUT.relative_to(build.ROOT).as_posix()}/")


def _load(root: str) -> ModuleType:
    path = Path(root) / "ui" / "build.py"
    spec = importlib.util.spec_from_file_location("tasklib_ui_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
