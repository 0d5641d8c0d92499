"""`manage.py tasklib worker`, `list`, `retry`, ...: the command `tasklib`, for this project's queue."""

from __future__ import annotations

import os
import re
import sys
from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasklib.cli.main import run
from tasklib.contrib.django.compat import DEFAULT_ALIAS, InvalidTaskBackend
from tasklib.contrib.django.startup import BACKEND_VARIABLE, load_project
from tasklib.core.errors import TaskLibError

PROJECT = "tasklib.contrib.django.project"
PROGRAM = "manage.py tasklib"
_LOADING = ("worker", "serve")
"""Commands that take the modules of tasks."""
_ELSEWHERE = re.compile(r"-d|--database-url(=|$)")


class Command(BaseCommand):
    help = "Runs a command of tasklib for this project: worker, list, retry, schedule, doctor, ..."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default=DEFAULT_ALIAS, help="The alias in TASKS.")
        parser.add_argument("arguments", nargs=REMAINDER, help="A command of tasklib, and what it takes.")

    def print_help(self, prog_name: str, subcommand: str) -> None:
        run(["--help"], program=PROGRAM)

    def handle(self, *, backend: str, arguments: list[str], **options: Any) -> None:
        if any(map(_ELSEWHERE.match, arguments)):
            raise CommandError("the queue is said in TASKS; for another one use the command tasklib itself")
        os.environ[BACKEND_VARIABLE] = backend
        _tell_children(sys.path[0])
        try:
            load_project(backend)
        except (InvalidTaskBackend, TaskLibError) as error:
            raise CommandError(str(error)) from error
        command, *rest = arguments or ["--help"]
        code = run([command, *([PROJECT] if command in _LOADING else []), *rest], program=PROGRAM)
        if code:
            sys.exit(code)


def _tell_children(folder: str) -> None:
    """Processes that a worker starts find the project where `manage.py` does."""
    paths = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
