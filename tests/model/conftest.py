"""Comparisons outside of test files show what they compared, too."""

import pytest

pytest.register_assert_rewrite("tests.model.laws", "tests.model.machine")
