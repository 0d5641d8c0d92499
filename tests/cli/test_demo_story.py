"""The demo judges itself: a task that ends otherwise than it should makes it fail."""

import asyncio
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tasklib import Config, Task, TaskState
from tasklib.cli.demo import Stage
from tasklib.cli.demo_api import Api
from tasklib.cli.demo_story import JUMPER, OPENING, everyday, jumped
from tasklib.cli.demo_view import Act, SilentView
from tasklib.cli.output import Printer
from tasklib.engine.engine import Engine

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def played(number: int) -> Task:
    """A scene of the opening that ended as it should."""
    scene = OPENING[number]
    begun = scene.attempts > 0
    return Task(
        id=UUID(int=number),
        name=scene.name,
        state=scene.ends,
        scheduled_at=NOW,
        created_at=NOW,
        updated_at=NOW,
        started_at=NOW + timedelta(seconds=0 if number == JUMPER else 1) if begun else None,
        completed_at=NOW,
        retry_count=scene.attempts if scene.ends == TaskState.CANCELLED else scene.attempts - 1,
    )


def make_stage() -> Stage:
    return Stage(Engine(Config(database_url="memory://")), Path("log"), SilentView(), Printer(as_json=True))


def failures(tasks: list[Task]) -> list[str]:
    stage = make_stage()
    stage.acts = [Act(scene, task) for scene, task in zip(OPENING, tasks, strict=True)]
    stage.judge()
    return stage.failures


def test_all_went_well():
    assert failures([played(number) for number in range(len(OPENING))]) == []


@pytest.mark.parametrize("number", range(len(OPENING)))
def test_a_wrong_end_is_noticed(number: int):
    tasks = [played(each) for each in range(len(OPENING))]
    other = TaskState.COMPLETED if tasks[number].state != TaskState.COMPLETED else TaskState.FAILED
    tasks[number] = replace(tasks[number], state=other)
    assert OPENING[number].name in failures(tasks)[0]


def test_a_wrong_number_of_attempts_is_noticed():
    tasks = [played(each) for each in range(len(OPENING))]
    tasks[4] = replace(tasks[4], retry_count=1)
    assert "completed after 2 attempts, expected completed after 3" in failures(tasks)[0]


def test_being_overtaken_is_noticed():
    tasks = [played(each) for each in range(len(OPENING))]
    tasks[0] = replace(tasks[0], started_at=NOW - timedelta(seconds=1))
    assert not jumped(tasks)
    assert "highest priority" in failures(tasks)[0]


def test_there_is_always_something_new():
    chance = random.Random(1)
    assert len({everyday(chance).name for _ in range(100)}) == 6


@dataclass(frozen=True)
class Counting(Api):
    """An API that has counted so many."""

    count: int

    async def get(self, path: str) -> dict[str, int]:
        return {"completed": self.count}


NOBODY = ("http://127.0.0.1:1", "secret")


def compared(api: Api) -> Stage:
    async def compare() -> Stage:
        stage = make_stage()
        stage.api = api
        await stage.compare()
        await stage.engine.close_for_good()
        return stage

    return asyncio.run(compare())


def test_an_api_that_disagrees_is_noticed():
    assert (compared(Counting(*NOBODY, 0)).agreed, compared(Counting(*NOBODY, 0)).failures) == (0, [])
    assert compared(Counting(*NOBODY, 1)).failures == ["the HTTP API counts 1 completed tasks, the table has 0"]


def test_an_api_that_is_gone_is_noticed():
    with_nobody = compared(Api(*NOBODY))
    assert "does not tell its counts" in with_nobody.failures[0]
