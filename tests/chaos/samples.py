"""What a soak measures, and when it calls it flat. Judging is pure: figures in, verdicts out."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Gauge:
    """One thing that is measured, and how much it may grow: a share of what it was, and something on top."""

    name: str
    unit: str
    share: float
    slack: float


GAUGES = (
    Gauge("memory", "MB", 0.15, 8),
    Gauge("descriptors", "", 0.1, 8),
    Gauge("threads", "", 0.1, 4),
    Gauge("connections", "", 0.25, 6),
    Gauge("table", "MB", 0.5, 4),
    Gauge("WAL", "MB", 0.5, 32),
)


@dataclass(frozen=True)
class Judgement:
    gauge: Gauge
    early: float
    late: float

    @property
    def limit(self) -> float:
        return self.early * (1 + self.gauge.share) + self.gauge.slack

    @property
    def flat(self) -> bool:
        return self.late <= self.limit

    def __str__(self) -> str:
        verdict = "flat" if self.flat else "GROWS"
        unit = f" {self.gauge.unit}" if self.gauge.unit else ""
        return f"{self.gauge.name}: {self.early:.1f} then {self.late:.1f}{unit}, limit {self.limit:.1f}: {verdict}"


def judge(gauge: Gauge, values: Sequence[float]) -> Judgement:
    """The median of the second quarter against that of the last: the first is for warming up."""
    assert len(values) >= 8, "too few samples to judge by"
    quarter = len(values) // 4
    return Judgement(gauge, statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:]))
