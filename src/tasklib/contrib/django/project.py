"""A Django project for the command `tasklib`: `tasklib worker tasklib.contrib.django.project` serves all its tasks.

Importing it sets Django up, imports `tasks.py` of each app, and takes the queue of TASKS. `manage.py tasklib` does so.
"""

from __future__ import annotations

import logging
import os

from tasklib.contrib.django.compat import DEFAULT_ALIAS
from tasklib.contrib.django.startup import BACKEND_VARIABLE, load_project


def leave_console_to_command() -> None:
    """With DEBUG, Django's own logger has the console as well: the command's log has each line already."""
    log = logging.getLogger("django")
    for handler in tuple(log.handlers):
        if log.propagate and type(handler) is logging.StreamHandler:
            log.removeHandler(handler)


load_project(os.environ.get(BACKEND_VARIABLE, DEFAULT_ALIAS))
leave_console_to_command()
