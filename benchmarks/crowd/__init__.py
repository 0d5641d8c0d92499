"""Queues full of old, future and waiting tasks."""

from benchmarks.crowd.filling import COMMON, DAYS, RARE, UNKNOWN, Crowd, counted, fill, make_schema
from benchmarks.crowd.living import live

__all__ = ["COMMON", "DAYS", "RARE", "UNKNOWN", "Crowd", "counted", "fill", "live", "make_schema"]
