"""What the tests share: a queue of their own, and a worker that runs until nothing is due."""

import io
from contextlib import redirect_stderr, redirect_stdout

from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from jobs import tasks
from tasklib.testing.django import task_queue

POSTGRES = connection.vendor == "postgresql"


class QueueTestCase(TransactionTestCase):
    """Tasks are committed, and a real worker runs them."""

    available_apps = ("jobs", "tasklib.contrib.django")  # the tables that are emptied after each test

    def setUp(self):
        self.queue = self.enterContext(task_queue())
        tasks.SEEN.clear()

    def work(self, *options):
        """All that is due, by the command."""
        return manage("worker", "--burst", "--poll-interval", "0.05", "--log-level", "error", *options)


def manage(*arguments):
    """What `manage.py tasklib ...` prints. Raises SystemExit if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            call_command("tasklib", *arguments)
        except SystemExit as end:
            end.add_note(err.getvalue())
            raise
    return out.getvalue() + err.getvalue()
