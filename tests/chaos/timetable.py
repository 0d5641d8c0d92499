"""The schedules of a chaos run."""

from tasklib import every
from tasklib.core.cron import Timing
from tasklib.core.options import check_options
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tests.chaos import app
from tests.chaos.story import Scheduled

STEADY = {"every second": 1, "every other second": 2}
"""They make up for what they missed, and nobody pauses them: none of their times may be left out."""
OVERLAPPING = ["skips", "waits", "replaces"]
"""Their tasks run for longer than it takes to their next time."""


def _timings() -> dict[str, tuple[Timing, float]]:
    """Each with the seconds that its task runs."""
    return {
        **{name: (every(seconds=seconds, missed="all"), 0.0) for name, seconds in STEADY.items()},
        "skips": (every(seconds=1, overlap="skip"), 1.5),
        "waits": (every(seconds=1, overlap="wait", missed="all"), 1.2),
        "replaces": (every(seconds=2, overlap="replace", jitter=1), 1.0),
    }


async def write(engine: Engine) -> None:
    for name, (timing, seconds) in _timings().items():
        call = Call(app.tick.name, {"seconds": seconds}, check_options({}), app.tick.task_type)
        definition = await engine.schedules.define(call, timing)
        await engine.schedules.put(name, definition, operator=True)


async def stop(engine: Engine) -> None:
    for schedule in await engine.schedules.all():
        await engine.schedules.pause(schedule.name)


async def at_the_end(engine: Engine) -> list[Scheduled]:
    return [
        Scheduled(each.name, STEADY.get(each.name, 0), each.name in STEADY, each.fired, each.missed)
        for each in await engine.schedules.all()
    ]
