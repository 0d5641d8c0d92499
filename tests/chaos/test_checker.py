"""Each rule of the checker is shown a history that breaks it, made from one that is fine."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.checker import RULES, check
from tests.chaos.history import Line
from tests.chaos.story import tell

A, B = "task-a", "task-b"
Doctor = Callable[[list[Line]], object]


def at(second: float) -> str:
    return f"2026-01-31T12:00:{second:06.3f}Z"


def move(
    second: float,
    version: int,
    state: str,
    *,
    task_id: str = A,
    op: str = "update",
    worker: str | None = None,
    retry_count: int = 0,
    started: float | None = None,
    due: float = 0,
    over: bool = False,
    key: str | None = None,
    mark: str | None = None,
) -> list[Any]:
    result = None if mark is None else f'{{"value": {{"mark": "{mark}"}}}}'
    began = None if started is None else at(started)
    completed = at(second) if over else None
    lease = None if worker is None else at(second + 2)
    return [
        at(second),
        op,
        task_id,
        version,
        state,
        worker,
        retry_count,
        1,
        at(due),
        lease,
        began,
        completed,
        key,
        result,
    ]


def fine() -> list[Line]:
    """Task a: attempt 1 is lost with its worker, attempt 2 is released, starts again and completes. Task b: keyed,
    submitted twice, fails for good, is retried by an operator and completes; its settle's reply was lost."""
    done: dict[str, Any] = {"task_id": B, "key": "k"}
    moves = [
        move(0, 0, "pending", op="insert"),
        move(0, 0, "pending", op="insert", **done),
        move(1, 1, "running", worker="w1", started=1),
        move(2, 1, "running", worker="w1", started=1),
        move(5, 2, "failed", retry_count=1, due=5, started=1),
        move(6, 3, "running", worker="w2", retry_count=1, started=6, due=5),
        move(7, 4, "pending", retry_count=1, started=6),
        move(8, 5, "running", worker="w3", retry_count=1, started=8),
        move(9, 6, "completed", retry_count=1, started=8, over=True, mark="a3"),
        move(1, 1, "running", worker="w2", started=1, **done),
        move(2, 2, "failed", started=1, over=True, **done),
        move(3, 3, "pending", started=1, **done),
        move(4, 4, "running", worker="w2", started=4, **done),
        move(5, 5, "completed", started=4, over=True, mark="b2", **done),
    ]
    return [
        {"event": "submitting", "tasks": [[A, None, 1, None]]},
        {"event": "submitted", "tasks": [[A, None, True, A]]},
        {"event": "submitting", "tasks": [[B, "k", 1, None]]},
        {"event": "submitted", "tasks": [[B, "k", True, B]]},
        {"event": "submitting", "tasks": [["task-b-again", "k", 1, None]]},
        {"event": "submitted", "tasks": [[B, "k", False, "task-b-again"]]},
        {"event": "claim", "worker": "w1", "claims": [[A, 1, 1, 1, at(1)]]},
        {"event": "start", "id": A, "attempt": 1, "mark": "a1"},
        {"event": "lost", "tasks": [[A, 1, "w1"]]},
        {"event": "settling", "changes": [[A, 1, "w1", "failed", False, "expire", None]]},
        {"event": "settled", "changes": [[A, 1, "w1", "applied", "expire"]]},
        {"event": "claim", "worker": "w2", "claims": [[A, 3, 2, 1, at(6)]]},
        {"event": "start", "id": A, "attempt": 2, "mark": "a2"},
        {"event": "settling", "changes": [[A, 3, "w2", "pending", False, "holder", None]]},
        {"event": "settled", "changes": [[A, 3, "w2", "applied", "holder"]]},
        {"event": "claim", "worker": "w3", "claims": [[A, 5, 2, 1, at(8)]]},
        {"event": "start", "id": A, "attempt": 2, "mark": "a3"},
        {"event": "settling", "changes": [[A, 5, "w3", "completed", True, "holder", '{"value":{"mark":"a3"}}']]},
        {"event": "settled", "changes": [[A, 5, "w3", "applied", "holder"]]},
        {"event": "settling", "changes": [[A, 1, "w1", "completed", True, "holder", '{"value":{"mark":"a1"}}']]},
        {"event": "settled", "changes": [[A, 1, "w1", "stale", "holder"]]},
        {"event": "claim", "worker": "w2", "claims": [[B, 1, 1, 1, at(1)]]},
        {"event": "start", "id": B, "attempt": 1, "mark": "b1"},
        {"event": "settling", "changes": [[B, 1, "w2", "failed", True, "holder", None]]},
        {"event": "settled", "changes": [[B, 1, "w2", "applied", "holder"]]},
        {"event": "settling", "changes": [[B, 2, None, "pending", False, "operator", None]]},
        {"event": "settled", "changes": [[B, 2, None, "applied", "operator"]]},
        {"event": "claim", "worker": "w2", "claims": [[B, 4, 1, 1, at(4)]]},
        {"event": "start", "id": B, "attempt": 1, "mark": "b2"},
        {"event": "settling", "changes": [[B, 4, "w2", "completed", True, "holder", '{"value":{"mark":"b2"}}']]},
        {"event": "settled", "changes": [[B, 4, "w2", "duplicate", "holder"]]},
        {"event": "moves", "rows": moves},
        {"event": "final", "rows": [[*moves[8]], [*moves[13]]]},
    ]


def lines(history: list[Line], event: str) -> list[Line]:
    return [line for line in history if line["event"] == event]


def rows(history: list[Line]) -> list[list[Any]]:
    found: list[list[Any]] = lines(history, "moves")[0]["rows"]
    return found


def final(history: list[Line]) -> list[list[Any]]:
    found: list[list[Any]] = lines(history, "final")[0]["rows"]
    return found


def both(history: list[Line], index: int, column: int, value: Any) -> None:
    """In the ledger and in the row that is left."""
    rows(history)[{0: 8, 1: 13}[index]][column] = value
    final(history)[index][column] = value


VERSION, STATE, WORKER, RETRIES, DUE, BEGAN, OVER, KEY, RESULT = 3, 4, 5, 6, 8, 10, 11, 12, 13

DOCTORED: list[tuple[str, str, Doctor]] = [
    ("nothing lost", "is not there", lambda h: (final(h).pop(0), [rows(h).pop(2) for _ in range(7)])),
    (
        "nothing lost",
        "after the drain",
        lambda h: final(h)[0].__setitem__(slice(4, 12), ["running", *final(h)[0][5:11], None]),
    ),
    ("nothing phantom", "never submitted", lambda h: h.pop(0)),
    ("nothing phantom", "without a claim", lambda h: h.remove(lines(h, "claim")[0])),
    ("batches whole", "1 of 2", lambda h: h[0]["tasks"].append(["task-c", None, 1, None])),
    ("one accepted outcome", "2 changes", lambda h: lines(h, "settled")[3]["changes"][0].__setitem__(3, "applied")),
    ("one accepted outcome", "without an operator", lambda h: h.remove(lines(h, "settling")[5])),
    ("one accepted outcome", "was completed", lambda h: rows(h)[10].__setitem__(STATE, "completed")),
    ("legal moves", "from pending to completed", lambda h: rows(h).pop(7)),
    ("legal moves", "deleted while", lambda h: rows(h).append(move(9, 5, "running", op="delete", task_id=B))),
    ("attempts", "where 2 was next", lambda h: [rows(h)[n].__setitem__(RETRIES, 0) for n in (4, 5)]),
    ("attempts", "where 2 was next", lambda h: [rows(h)[n].__setitem__(RETRIES, 2) for n in (6, 7)]),
    ("attempts", "attempt 2 of 1", lambda h: [row.__setitem__(7, 0) for row in rows(h)]),
    ("attempts", "handed out for attempt 3 of 2", lambda h: lines(h, "claim")[2]["claims"][0].__setitem__(2, 3)),
    ("attempts", "started 3 times for 2", lambda h: h.append({"event": "start", "id": A, "attempt": 2, "mark": "a4"})),
    ("leases never overlap", "by w2 and by w9", lambda h: h.append({**lines(h, "claim")[1], "worker": "w9"})),
    ("leases never overlap", "without the end", lambda h: rows(h).__delitem__(slice(4, 5))),
    ("leases never overlap", "without the end", lambda h: rows(h)[3].__setitem__(WORKER, "w9")),
    ("leases never overlap", "the one before ended", lambda h: rows(h)[5].__setitem__(BEGAN, at(4))),
    ("result of the accepted attempt", "of no start", lambda h: both(h, 0, RESULT, '{"value": {"mark": "ff"}}')),
    ("result of the accepted attempt", "of no start", lambda h: both(h, 0, RESULT, '{"value": {"mark": "b2"}}')),
    ("result of the accepted attempt", "of attempt 1", lambda h: both(h, 0, RESULT, '{"value": {"mark": "a1"}}')),
    ("result of the accepted attempt", "not reported under", lambda h: both(h, 0, RESULT, '{"value": {"mark": "a2"}}')),
    ("result of the accepted attempt", "has a result", lambda h: both(h, 0, STATE, "cancelled")),
    ("one row for a key", "answered with", lambda h: lines(h, "submitted")[2]["tasks"][0].__setitem__(0, A)),
    ("one row for a key", "2 inserts", lambda h: rows(h)[0].__setitem__(KEY, "k")),
    ("one row for a key", "2 rows", lambda h: final(h)[0].__setitem__(KEY, "k")),
    ("nothing early", "before", lambda h: rows(h)[0].__setitem__(DUE, at(3))),
    ("nothing early", "before", lambda h: rows(h)[4].__setitem__(DUE, at(7))),
    ("versions only grow", "from version 4 to 3", lambda h: rows(h)[7].__setitem__(VERSION, 3)),
    ("versions only grow", "from version 2 to 2", lambda h: rows(h)[11].__setitem__(VERSION, 2)),
    ("versions only grow", "and then at", lambda h: lines(h, "claim")[2]["claims"][0].__setitem__(1, 3)),
    ("told the truth", "of which nothing", lambda h: lines(h, "claim")[4]["claims"][0].__setitem__(1, 9)),
    ("told the truth", "was duplicate", lambda h: rows(h)[13].__setitem__(STATE, "cancelled")),
    ("told the truth", "reported as deleted", lambda h: h.append({"event": "deleted", "guards": [[A, 6, "applied"]]})),
    ("rows match the ledger", "is shown as", lambda h: final(h)[0].__setitem__(VERSION, 5)),
]


def test_a_history_in_which_all_is_well_passes():
    assert check(tell(fine())) == []


@pytest.mark.parametrize(
    ("rule", "words", "doctor"), DOCTORED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_doctored_history_is_caught_by_its_rule(rule: str, words: str, doctor: Doctor):
    history = copy.deepcopy(fine())
    doctor(history)
    found = list(RULES[rule](tell(history)))
    assert any(re.search(words, each) for each in found), found


def test_every_rule_is_shown_to_catch_something():
    assert {rule for rule, _, _ in DOCTORED} == set(RULES)


@pytest.mark.parametrize(
    ("words", "doctor"),
    [
        ("is not there", lambda h: final(h).pop(0)),
        ("started 3 times", lambda h: h.append({"event": "start", "id": A, "attempt": 2, "mark": "a4"})),
        ("before", lambda h: final(h)[0].__setitem__(DUE, at(30))),
    ],
)
def test_without_a_ledger_the_rest_is_held_against_each_other(words: str, doctor: Doctor):
    history = [line for line in fine() if line["event"] != "moves"]
    assert check(tell(history)) == []
    doctor(history)
    assert any(words in each for each in check(tell(history)))


def test_without_a_ledger_a_task_that_was_put_off_and_then_cancelled_did_not_start_early():
    history = [line for line in fine() if line["event"] != "moves"]
    row = final(history)[0]
    row[STATE], row[DUE], row[RESULT] = "cancelled", at(30), None
    assert list(RULES["nothing early"](tell(history))) == []


def test_what_was_edited_by_hand_is_not_judged_by_its_moves():
    history = fine()
    rows(history)[7][VERSION] = 3
    history.append({"event": "hand", "ids": [A]})
    assert not any(each.startswith("versions only grow: task task-a went") for each in check(tell(history)))
