"""Comparisons outside of test files show what they compared, too."""

import pytest

for module in ("ground", "laws", "operating", "working"):
    pytest.register_assert_rewrite(f"tests.model.{module}")
