"""Each rule of the checker is shown a history that breaks it, made from one that is fine."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import RULES, check
from tests.chaos.history import Line
from tests.chaos.report import Result, figures, summary
from tests.chaos.story import tell

A, B = "task-a", "task-b"
P, K, U, V = "task-p", "task-k", "task-u", "task-v"
Doctor = Callable[[list[Line]], object]


def at(second: float) -> str:
    return f"2026-01-31T12:00:{second:06.3f}Z"


SLOTS = [f"schedule:steady:{at(second)}" for second in (1, 2)]


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
    name: str = "work",
    unique: str | None = None,
    waits: int = 0,
    cut_by: str | None = None,
    asked: float | None = None,
    tx: str = "1",
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
        name,
        unique,
        waits,
        cut_by,
        None if asked is None else at(asked),
        tx,
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
    moves += new_moves()
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
        *new_lines(),
        {"event": "final", "rows": [[*moves[place]] for place in (8, 13, 22, 25, 29, 32, 35, 36)]},
    ]


def new_moves() -> list[list[Any]]:
    """Parent p fails for good, which cuts off its child k; it is retried, which revives k; both complete. Task u has a
    unique key until it starts, then v has it, which is asked to stop. Tasks s and t are of two times of a schedule."""
    p, k, u, v, s, t = ({"task_id": f"task-{letter}"} for letter in "pkuvst")
    moves: list[list[Any]] = []

    def add(of: dict[str, Any], second: float, version: int, state: str, **more: Any) -> None:
        moves.append(move(second, version, state, **of, **more))

    add(p, 0, 0, "pending", op="insert")
    add(k, 0, 0, "pending", op="insert", waits=1)
    add(p, 1, 1, "running", worker="w1", started=1)
    add(p, 2, 2, "failed", started=1, over=True, tx="2")
    add(k, 2, 1, "cancelled", over=True, waits=1, cut_by=P, tx="2")
    add(p, 3, 3, "pending", started=1, tx="3")
    add(k, 3, 2, "pending", waits=1, tx="3")
    add(p, 4, 4, "running", worker="w1", started=4)
    add(p, 5, 5, "completed", started=4, over=True, mark="c2")
    add(k, 5, 2, "pending", due=5)
    add(k, 6, 3, "running", worker="w1", started=6, due=5)
    add(k, 7, 4, "completed", started=6, over=True, due=5, mark="d1")
    add(u, 0, 0, "pending", op="insert", unique="q")
    add(u, 1, 1, "running", worker="w1", started=1)
    add(v, 1, 0, "pending", op="insert", unique="q")
    add(u, 2, 2, "completed", started=1, over=True, mark="e1")
    add(v, 3, 1, "running", worker="w2", started=3)
    add(v, 4, 1, "running", worker="w2", started=3, asked=4)
    add(v, 5, 2, "cancelled", started=3, over=True, asked=4)
    add(s, 1, 0, "pending", op="insert", key=SLOTS[0])
    add(t, 2, 0, "pending", op="insert", key=SLOTS[1])
    add(s, 3, 1, "cancelled", over=True, key=SLOTS[0])
    add(t, 3, 1, "cancelled", over=True, key=SLOTS[1])
    return moves


def new_lines() -> list[Line]:
    rule = ["work", "q", "started", "join"]
    lines: list[Line] = [
        {"event": "submitting", "tasks": [[P, None, 0, None], [K, None, 0, None]]},
        {"event": "links", "tasks": [[K, [P], "success"]], "batch": [P, K]},
        {"event": "submitted", "tasks": [[P, None, True, P], [K, None, True, K]]},
        {"event": "settling", "changes": [[P, 2, None, "pending", False, "operator", None]]},
        *({"event": "submitting", "tasks": [[task_id, None, 0, None, rule]]} for task_id in (U, V, "task-w")),
        {"event": "submitted", "tasks": [[V, None, False, "task-w", False]]},
        {"event": "submitting", "tasks": [["task-s", SLOTS[0], 0, None]]},
        {"event": "submitting", "tasks": [["task-t", SLOTS[1], 0, None]]},
        {"event": "fired", "slots": [["steady", at(1), "task-s", True]]},
        {"event": "fired", "slots": [["steady", at(2), "task-t", True]]},
        {"event": "schedules", "rows": [["steady", 1, True, 2, 0]]},
        {"event": "told", "kind": "failed", "id": P},
        {"event": "told", "kind": "cancelled", "id": V},
    ]
    runs = [(P, 1, 1, "c1", False), (P, 4, 4, "c2", True), (K, 3, 6, "d1", True), (U, 1, 1, "e1", True)]
    for task_id, version, began, mark, completes in [*runs, (V, 1, 3, "f1", False)]:
        worker = "w2" if task_id == V else "w1"
        state = "completed" if completes else "cancelled" if task_id == V else "failed"
        result = f'{{"mark":"{mark}"}}' if completes else None
        lines += [
            {"event": "claim", "worker": worker, "claims": [[task_id, version, 1, 0, at(began)]]},
            {"event": "start", "id": task_id, "attempt": 1, "mark": mark, "around": True},
            {"event": "settling", "changes": [[task_id, version, worker, state, True, "holder", result]]},
            {"event": "settled", "changes": [[task_id, version, worker, "applied", "holder"]]},
        ]
    return lines


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


def link(history: list[Line], on: str, ended: str | None = None, state: str = "") -> None:
    """Task a waits for task b; one of them ended so."""
    history.append({"event": "links", "tasks": [[A, [B], on]], "batch": [A, B]})
    if ended is not None:
        both(history, [A, B].index(ended), STATE, state)
        final(history)[0][BEGAN] = None


def cut_off(row: list[Any]) -> None:
    row[STATE], row[RESULT], row[CUT_BY] = "cancelled", None, P


def left_waiting(row: list[Any]) -> None:
    row[STATE], row[OVER], row[WAITS] = "pending", None, 1


VERSION, STATE, WORKER, RETRIES, DUE, BEGAN, OVER, KEY, RESULT = 3, 4, 5, 6, 8, 10, 11, 12, 13
UNIQUE, WAITS, CUT_BY, TX = 15, 16, 17, 19

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
    ("after all it waits for", "before task task-b had ended", lambda h: link(h, "success")),
    ("after all it waits for", "before task task-b had ended", lambda h: link(h, "end")),
    ("after all it waits for", "has lost what it waits for", lambda h: link(h, "success", B, "failed")),
    ("after all it waits for", "has lost nothing", lambda h: link(h, "success", A, "cancelled")),
    ("after all it waits for", "has lost nothing", lambda h: cut_off(final(h)[3])),
    ("cut off and revived whole", "was not cut off", lambda h: rows(h)[18].__setitem__(STATE, "running")),
    ("cut off and revived whole", "was not cut off", lambda h: [rows(h).pop(n) for n in (25, 24, 23, 20, 18)]),
    ("cut off and revived whole", "cut off in another tr", lambda h: rows(h)[18].__setitem__(TX, "9")),
    ("cut off and revived whole", "was not revived", lambda h: [rows(h).pop(n) for n in (25, 24, 23, 20)]),
    ("cut off and revived whole", "revived in another tr", lambda h: rows(h)[20].__setitem__(TX, "9")),
    ("nothing waits for ever", "waits for 1 more", lambda h: left_waiting(final(h)[3])),
    ("one holder of a unique key", "is held by", lambda h: rows(h)[27].__setitem__(UNIQUE, "q")),
    ("one holder of a unique key", "has its key although", lambda h: rows(h)[29].__setitem__(UNIQUE, "q")),
    ("one holder of a unique key", "gave its key up", lambda h: rows(h)[28].__setitem__(UNIQUE, None)),
    ("one holder of a unique key", "left with 2", lambda h: [final(h)[n].__setitem__(UNIQUE, "q") for n in (4, 5)]),
    ("one holder of a unique key", "never had it", lambda h: lines(h, "submitted")[4]["tasks"][0].__setitem__(0, A)),
    ("each slot once", "fired 2 times", lambda h: h.append(lines(h, "fired")[0])),
    ("each slot once", "fired nothing between", lambda h: rows(h)[34].__setitem__(KEY, f"schedule:steady:{at(3)}")),
    ("each slot once", "2 are stored", lambda h: lines(h, "schedules")[0]["rows"][0].__setitem__(3, 3)),
    ("each slot once", "1 missed", lambda h: lines(h, "schedules")[0]["rows"][0].__setitem__(4, 1)),
    ("each slot once", "told as fired", lambda h: lines(h, "schedules")[0]["rows"][0].__setitem__(3, 1)),
    ("listeners told what happened", "2 times", lambda h: h.append(lines(h, "told")[0])),
    ("listeners told what happened", "0 times", lambda h: lines(h, "told")[0].__setitem__("kind", "retry")),
    ("listeners told what happened", "outside", lambda h: lines(h, "start")[-1].__setitem__("around", False)),
    ("asked to stop", "became pending", lambda h: rows(h)[32].__setitem__(STATE, "pending")),
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


def test_a_child_that_starts_after_its_parent_is_fine():
    history = fine()
    for row in rows(history):
        if row[2] == A and row[1] == "update":
            row[0] = at(6 + float(row[0][17:-1]))
    link(history, "success")
    assert list(RULES["after all it waits for"](tell(history))) == []


def test_what_was_edited_by_hand_is_not_judged_by_its_moves():
    history = fine()
    rows(history)[7][VERSION] = 3
    history.append({"event": "hand", "ids": [A]})
    assert not any(each.startswith("versions only grow: task task-a went") for each in check(tell(history)))


def test_a_key_for_a_time_may_go_to_the_next_while_its_task_still_waits():
    history = fine()
    for line in lines(history, "submitting"):
        if line["tasks"][0][0] == V:
            line["tasks"][0][4][2] = "elapsed"
    rows(history)[28][UNIQUE] = None
    assert not any("gave its key up" in each for each in check(tell(history)))


def test_several_runs_are_summed_up_in_one_table():
    counted = figures(tell(fine()), 0)
    counted.faults = {"worker killed": 2}
    runs = [Result("sqlite", seed, 10, Path(), [], counted) for seed in (1, 2)]
    runs.append(Result("postgres", 1, 10, Path(), ["nothing lost: task-a"], counted))
    told = summary(runs)
    assert "| sqlite | 2 | 10 | 8 | 10 | 2 | 1 | 1 | 2 | clean |" in told
    assert "| all of sqlite | 2 | 20 | 16 | 20 | 4 | 2 | 2 | 4 | clean |" in told
    assert "| worker killed | 2 | 4 |" in told
    assert "postgres, seed 1: nothing lost: task-a" in told
