"""The steps of a claim, played by hand: what no database would do in this order of its own accord."""

from datetime import UTC, datetime
from uuid import UUID

from tasklib.core.limits import Control
from tasklib.core.task import Claim
from tasklib.stores.sql.claim import Claimer
from tasklib.stores.sql.columns import ControlNow, Taken
from tasklib.stores.sql.steps import BEGIN, Play, Query
from tasklib.stores.values import Claimed, ClaimRequest

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
REQUEST = ClaimRequest(worker_id="w", names=["a"], slots=5)
CLAIM = Claim(UUID(int=1), "a", 1, "w", "{}", 0, 3, None, None, NOW, "{}", None, no_prefetch=False)


def asked(play: Play[Claimed]) -> str:
    assert isinstance(play.query, Query)
    return play.query.name


def test_what_one_claim_saw_does_not_make_another_forget_what_it_has():
    claimer = Claimer()
    first, second = Play(claimer.claim(REQUEST)), Play(claimer.claim(REQUEST))
    second.send(Taken([], limits_apply=True))
    assert asked(second) == "controls"
    second.send([ControlNow(Control("a", paused=True), NOW)])
    second.send(Taken([], held_back=True))
    assert second.result.claims == []
    first.send(Taken([CLAIM]))
    assert first.result.claims == [CLAIM]


def test_only_what_may_start_is_locked():
    claimer = Claimer()
    play = Play(claimer.claim(REQUEST))
    play.send(Taken([], limits_apply=True))
    play.send([ControlNow(Control("a", operator_rate=1.0, tokens=0.0, refilled_at=NOW), NOW)])
    assert asked(play) == "claim", "without a transaction"
    play.send(Taken([], held_back=True))
    assert play.result == Claimed([], 1.0)

    play = Play(claimer.claim(REQUEST))
    assert asked(play) == "controls", "the limit is known by now"
    full = [ControlNow(Control("a", operator_rate=1.0), NOW)]
    play.send(full)
    assert play.query is BEGIN
    play.send(None)
    assert asked(play) == "lock_controls"
    play.send(full)
    assert isinstance(play.query, Query)
    assert (play.query.name, play.query.parameters["caps"]) == ("claim", [1])
    play.send(Taken([CLAIM]))
    assert isinstance(play.query, Query)
    assert play.query.batch is not None
    assert play.query.batch.rows == [("a", 0.0, NOW)]
    play.send([])
    assert play.result == Claimed([CLAIM], 1.0)
