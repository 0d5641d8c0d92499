"""What the check-up says of figures that a test cannot bring about."""

import pytest

from tasklib.stores.checkup import clock, unhandled
from tasklib.stores.nats import checkup as nats


@pytest.mark.parametrize(
    ("ahead", "level", "said"),
    [(0.3, "ok", "0.3 s ahead of"), (3, "warning", "3.0 s ahead of"), (-3600, "warning", "3600.0 s behind")],
)
def test_clocks_that_differ(ahead: float, level: str, said: str):
    found = clock(ahead, "database")
    assert found.level == level
    assert f"this machine's clock is {said} the database's" in found.message


def test_of_many_names_some_are_shown():
    found = unhandled([f"type-{number}" for number in range(12)])
    assert "'type-9', ..." in found.message
    assert "type-10" not in found.message


def test_replicas_of_a_bucket():
    def level(wanted: int, *peers: dict[str, object]) -> str:
        return nats._replicas({"config": {"num_replicas": wanted}, "cluster": {"replicas": list(peers)}}).level

    well = {"name": "b", "current": True}
    assert level(1) == "warning"
    assert level(3, well, well) == "ok"
    assert level(3, well, {"name": "c", "current": True, "offline": True}) == "warning"
    assert level(3, well, {"name": "c", "current": False}) == "warning"


def test_room_in_a_bucket():
    def level(used: int, most: int) -> str:
        return nats._room({"config": {"max_bytes": most}, "state": {"bytes": used}}).level

    assert level(10**9, -1) == "ok"
    assert level(79, 100) == "ok"
    assert level(80, 100) == "warning"
