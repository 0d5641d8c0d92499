"""Which of the registered task types a worker serves: chosen by name and by queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tasklib.core.errors import InvalidConfig
from tasklib.core.registry import TaskType


@dataclass(frozen=True, slots=True)
class Choice:
    """Names may hold wildcards, as file names in a shell; queues are said as they are. None: all there are."""

    names: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    queues: Sequence[str] | None = None
    exclude_queues: Sequence[str] = ()

    @property
    def is_all(self) -> bool:
        return self.names is None and self.queues is None and not self.exclude and not self.exclude_queues

    def of(self, types: Iterable[TaskType]) -> tuple[str, ...]:
        return tuple(each.name for each in types if self._takes(each))

    def check(self, types: Sequence[TaskType]) -> None:
        """Raises InvalidConfig where a name or a queue is said that there is not, or where nothing is left."""
        names = [each.name for each in types]
        queues = list(dict.fromkeys(each.options.queue for each in types))
        for field, said in (("names", self.names or ()), ("exclude", self.exclude)):
            unknown = [pattern for pattern in said if not any(_matches(name, pattern) for name in names)]
            if unknown:
                raise _unknown(field, "task type is called", unknown, names)
        for field, said in (("queues", self.queues or ()), ("exclude_queues", self.exclude_queues)):
            unknown = [queue for queue in said if queue not in queues]
            if unknown:
                raise _unknown(field, "task type is in the queue", unknown, queues)
        if not self.is_all and not self.of(types):
            raise InvalidConfig(f"names: what was chosen leaves no task type to serve; {_known(names)}", field="names")

    def _takes(self, kind: TaskType) -> bool:
        queue = kind.options.queue
        return (
            (self.names is None or any(_matches(kind.name, pattern) for pattern in self.names))
            and (self.queues is None or queue in self.queues)
            and queue not in self.exclude_queues
            and not any(_matches(kind.name, pattern) for pattern in self.exclude)
        )


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _unknown(field: str, what: str, unknown: Sequence[str], known: Sequence[str]) -> InvalidConfig:
    return InvalidConfig(f"{field}: no {what} {', '.join(unknown)}; {_known(known)}", field=field)


def _known(known: Sequence[str]) -> str:
    return f"known: {', '.join(known) or 'none'}"
