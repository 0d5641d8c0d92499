"""For tests: a queue in memory with `drain()` for your own project, and the suite that every store must pass.

Needs pytest; the suite needs pytest-asyncio too.
"""

from tasklib.testing.drain import drain, drain_async
from tasklib.testing.queue import QueueForTests, fresh_queue

__all__ = ["QueueForTests", "drain", "drain_async", "fresh_queue"]
