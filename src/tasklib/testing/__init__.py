"""For the tests of your own project: a queue in memory, with `drain()`. Needs pytest."""

from tasklib.testing.drain import drain, drain_async
from tasklib.testing.queue import QueueForTests, fresh_queue

__all__ = ["QueueForTests", "drain", "drain_async", "fresh_queue"]
