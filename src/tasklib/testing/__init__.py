"""For tests: the suite that every store must pass. Needs pytest and pytest-asyncio."""

import pytest

# Before the first import of the suite, so that its assertions show what they compared.
pytest.register_assert_rewrite("tasklib.testing.suite")

from tasklib.testing.suite import OpenStore, StoreSuite  # noqa: E402

__all__ = ["OpenStore", "StoreSuite"]
