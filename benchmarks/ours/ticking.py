"""What the schedules of the benchmark submit."""

from tasklib import task


@task
def tick() -> None: ...
