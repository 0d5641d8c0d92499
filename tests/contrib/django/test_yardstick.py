"""Every test that the yardstick names is there."""

import ast
from pathlib import Path

import pytest

from tests.contrib.django.yardstick import ANOTHER_WAY, THE_SAME
from tests.pages import ROOT

HERE = Path(__file__).parent
NAMED = sorted({name for table in (THE_SAME, ANOTHER_WAY) for names in table.values() for name in names})


@pytest.mark.parametrize("name", NAMED)
def test_it_is_there(name: str):
    place, *path = name.split("::")
    if place in ("backend", "worker", "site"):
        file = HERE / "project" / "jobs" / f"{place}_tests.py"
    else:
        file = (ROOT if "/" in place else HERE) / place
    assert file.exists()
    if path:
        body = ast.parse(file.read_text()).body
        for part in path:
            (found,) = [node for node in body if getattr(node, "name", None) == part]
            body = getattr(found, "body", [])
