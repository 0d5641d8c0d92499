import os
import sys
from pathlib import Path
from threading import Event

import tasklib
from jobs.models import Parcel
from tasklib.contrib.django import compat
from tasklib.contrib.django import task as our_task
from tasklib.core.cron import every

# Django's own decorator, as a project that knows nothing of tasklib has it.
if compat.BUILT_IN:
    from django.tasks import task
else:
    from django_tasks import task

LOGGER = "django.tasks" if compat.BUILT_IN else "django_tasks"
SEEN = []
"""What ran here, in its order."""


@task
def add(a, b=2):
    SEEN.append(("add", a, b))
    return a + b


@task
async def add_async(a, b=2):
    return a + b


@task
def anything(*args, **kwargs):
    return [list(args), kwargs]


@task(queue_name="urgent")
def urgent():
    SEEN.append(("urgent",))


@task(takes_context=True)
def with_context(context, extra=None):
    return {"id": context.task_result.id, "attempt": context.attempt, "extra": extra}


@task(takes_context=True)
async def with_context_async(context):
    return {"id": context.task_result.id, "attempt": context.attempt}


@task
def fails(text="it broke"):
    raise ValueError(text)


class Odd(Exception):
    """One that no pickle would take."""

    def __init__(self, reason, held):
        super().__init__(reason)
        self.held = held


@task
def fails_oddly():
    raise Odd("odd", held=lambda: None) from KeyError("the cause")


@task
def fails_with_an_exception_inside():
    raise ValueError(ValueError("the inner one"))


@task
def returns_what_is_not_json():
    return {1: object()}


@task
def returns_json():
    return {"numbers": (1, 2.5), "none": None, "text": b"bytes", "deep": [{"a": [True]}]}


@task
def exits():
    sys.exit(3)


@task
def interrupts():
    raise KeyboardInterrupt


@task
def ship(parcel_id):
    parcel = Parcel.objects.get(pk=parcel_id)
    parcel.shipped = True
    parcel.save()
    return parcel.name


@task
async def ship_async(parcel_id):
    parcel = await Parcel.objects.aget(pk=parcel_id)
    parcel.shipped = True
    await parcel.asave()
    return parcel.name


@task
def ship_and_fail(parcel_id):
    ship.func(parcel_id)
    add.enqueue(1)
    raise ValueError("after all")


@task
def ship_all():
    return [ship.enqueue(parcel.pk).id for parcel in Parcel.objects.order_by("pk")]


@task
def wait_for(path):
    while not Path(path).exists():
        Event().wait(0.05)


@task(priority=0)
def note(word):
    SEEN.append(word)


@our_task(max_retries=2, timeout_seconds=30, tags={"team": "parcels"})
def fragile(folder):
    """Fails until the file is there."""
    if not Path(folder, "mended").exists():
        raise ConnectionError("not yet")
    return "mended"


@our_task(max_retries=1, retry_for=[OSError], no_retry_for=FileNotFoundError)
def picky(kind):
    raise {"connection": ConnectionError, "missing": FileNotFoundError, "value": ValueError}[kind](kind)


@our_task(schedule=every(3600))
def hourly():
    return "on the hour"


if "WITH_CHILDREN" in os.environ:  # a worker that has such tasks starts a process to see whether it can

    @our_task(executor="process")
    def count_in_child(word):
        return [os.getpid(), Parcel.objects.count(), word]


@our_task(unique=lambda arguments: f"parcel-{arguments.args[0]}")
def once(parcel_id):
    return parcel_id


@tasklib.task
def plain(number: int) -> int:
    """One of tasklib's own."""
    return Parcel.objects.count() + number
