"""Imports the modules that define tasks, and says in one line why one cannot be imported."""

from __future__ import annotations

import importlib
import importlib.util
import os
import site
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path

from tasklib.core.errors import InvalidInput


class ModuleNotLoaded(InvalidInput):
    """A module of the application could not be imported."""

    code = "module_not_loaded"


def load(modules: Sequence[str]) -> None:
    """Imports each of them, given as `app.tasks` or `app/tasks.py`, from the current directory first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    for module in modules:
        _import(_module_name(module), module)


def _import(name: str, given: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            looked = f"looked in {Path.cwd()} and in what is installed"
            raise ModuleNotLoaded(f"there is no module {given!r}: no {error.name!r} was found; {looked}") from error
        raise ModuleNotLoaded(_reason(given, error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ModuleNotLoaded(_reason(given, error)) from error


def _module_name(given: str) -> str:
    """The dotted name; a path's root is put on sys.path where it is not the current directory."""
    if not given.endswith(".py") and "/" not in given and os.sep not in given:
        return given
    path = Path(given).absolute()
    if not path.is_file():
        raise ModuleNotLoaded(f"there is no file {given!r} in {Path.cwd()}")
    if path.suffix != ".py":
        raise ModuleNotLoaded(f"{given!r} is not a Python file; name a module as app.tasks or app/tasks.py")
    path = Path(os.path.normpath(path))
    parts = _below(Path.cwd(), path)
    if parts is None:
        root = path.parent
        while (root / "__init__.py").is_file():
            root = root.parent
        parts = _below(root, path)
        if parts is None:
            raise ModuleNotLoaded(f"{given!r} cannot be imported: {path.stem!r} is not a Python name")
        sys.path.insert(0, str(root))
    return ".".join(parts)


def _below(root: Path, path: Path) -> list[str] | None:
    """The names that lead from the root to the module, if they are names."""
    if not path.is_relative_to(root):
        return None
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return parts if all(part.isidentifier() for part in parts) else None


def _reason(given: str, error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be shown)"
    if isinstance(error, SyntaxError) and error.filename:
        text, place = error.msg, f"{_shown(error.filename)}:{error.lineno}"
    else:
        place = _place(error) or ""
    if isinstance(error, SystemExit):
        return f"cannot import {given!r}: it ended the program with sys.exit({text})" + (
            f", at {place}" if place else ""
        )
    kind = type(error).__name__
    if type(error).__module__.startswith("django."):  # its apps are not loaded, or its settings are not named
        text += "; in a Django project say: python manage.py tasklib worker"
    return f"cannot import {given!r}: {kind}{': ' if text else ''}{text}" + (f", at {place}" if place else "")


def _place(error: BaseException) -> str | None:
    """The deepest line of the user's own code, else the deepest line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    frames = [frame for frame in frames if Path(frame.filename) != Path(__file__)]
    frames = [frame for frame in frames if Path(frame.filename).parent != Path(importlib.__file__ or "").parent]
    own = [frame for frame in frames if not frame.filename.startswith(_FOREIGN)]
    best = (own or frames)[-1:]
    return f"{_shown(best[0].filename)}:{best[0].lineno}" if best else None


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


_FOREIGN = tuple(
    str(Path(folder)) + os.sep
    for folder in (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *site.getsitepackages(),
        str(Path(__file__).parents[1]),
    )
)
