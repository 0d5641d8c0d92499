"""What a run has found out: figures by name, measure and round, and why something could not be measured."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Book:
    figures: dict[str, dict[str, dict[int, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    failures: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    pages: list[dict[str, Any]] = field(default_factory=list)
    wire: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)
    crowding: list[dict[str, Any]] = field(default_factory=list)

    def note(self, name: str, measure: str, number: int, value: float) -> None:
        """`number` is the round."""
        self.figures[name][measure][number] = value

    def fail(self, name: str, reason: str) -> None:
        self.failures.setdefault(name, reason.strip().replace("\n", " ")[:300])

    def values(self, name: str, measure: str) -> list[float]:
        return list(self.figures.get(name, {}).get(measure, {}).values())

    def median(self, name: str, measure: str) -> float | None:
        found = self.values(name, measure)
        return statistics.median(found) if found else None

    def ratios(self, name: str, other: str, measure: str, other_measure: str | None = None) -> list[float]:
        """Round by round, because only what was measured close together may be compared."""
        ours = self.figures.get(name, {}).get(measure, {})
        theirs = self.figures.get(other, {}).get(other_measure or measure, {})
        return [ours[number] / theirs[number] for number in ours if theirs.get(number)]

    def as_json(self) -> dict[str, Any]:
        return {
            "figures": {name: {m: list(v.values()) for m, v in found.items()} for name, found in self.figures.items()},
            "failures": self.failures,
            "settings": self.settings,
            "pages": self.pages,
            "wire": self.wire,
            "costs": self.costs,
            "crowding": self.crowding,
        }
