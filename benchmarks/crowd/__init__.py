"""Queues full of old, future and waiting tasks."""

from benchmarks.crowd.filling import COMMON, DAYS, RARE, UNKNOWN, Crowd, counted, fill

__all__ = ["COMMON", "DAYS", "RARE", "UNKNOWN", "Crowd", "counted", "fill"]
