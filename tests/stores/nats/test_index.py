"""The index of the NATS store beside a plain model of it, and what it costs."""

import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tasklib.stores.nats import ordered
from tasklib.stores.nats.index import Index, Waiting
from tasklib.stores.nats.ordered import Ordered
from tasklib.stores.nats.record import Note
from tests.conformance.builders import WORK, next_id

EPOCH = 1_700_000_000_000_000
NAMES = ["a", "b", "c"]
IDS = [bytes([number]) * 16 for number in range(16)]
SMALL_BLOCK = 4
LARGE_BLOCK = ordered._LARGEST


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterable[None]:
    """So that a handful of entries is many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_LARGEST", SMALL_BLOCK)
        yield


def pending(created: int, due: int = 0, *, name: str = WORK, priority: int = 0) -> Note:
    return Note("pending", name, priority, created, due or created, False, None, None, None)


# -- an order ---------------------------------------------------------------------------------------------------------

keys = st.integers(0, 60)


def entry_of(key: int) -> bytes:
    return bytes([255 - key, key])


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["add", "pop", "pop", "first"]), keys), max_size=120), st.booleans())
def test_an_order_is_a_sorted_list(moves: list[tuple[str, int]], filled: bool):
    order, plain = Ordered(lambda entry: entry[1]), set[int]()
    for move, key in [*(("add", key) for key in range(0, 60, 2) if filled), *moves]:
        if move == "add" and key not in plain:
            order.add(entry_of(key))
            plain.add(key)
        elif move == "pop":
            assert order.pop(key) == (entry_of(key) if key in plain else None)
            plain.discard(key)
        elif move == "first" and plain:
            least = min(plain)
            assert (order.first(), order.pop_first()) == (entry_of(least), entry_of(least))
            plain.remove(least)
        assert list(order) == [entry_of(key) for key in sorted(plain)]
        assert (len(order), bool(order)) == (len(plain), bool(plain))
        assert all(0 < len(block) <= SMALL_BLOCK for block in order._blocks)


def test_what_comes_in_order_fills_its_blocks():
    order = Ordered(lambda entry: entry[1])
    for key in range(40):
        order.add(entry_of(key))
    assert [len(block) for block in order._blocks] == [SMALL_BLOCK] * 10


# -- the index --------------------------------------------------------------------------------------------------------


class IndexBesideAModel(RuleBasedStateMachine):
    """The model: the notes, who of them is out for a claim, and who was seen to be due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = EPOCH
        self.index = Index(lambda: self.now)
        self.waiting: dict[bytes, Note] = {}
        self.due: set[bytes] = set()
        self.running: dict[bytes, Note] = {}
        self.out: dict[bytes, Waiting] = {}
        """What was taken and not put back; it may have changed since."""
        self.unchanged: set[bytes] = set()

    def forget(self, task: bytes) -> None:
        self.waiting.pop(task, None)
        self.running.pop(task, None)
        self.due.discard(task)
        self.unchanged.discard(task)

    def promote(self) -> None:
        self.due |= {task for task, note in self.waiting.items() if note.due <= self.now and task not in self.unchanged}

    @rule(
        task=st.sampled_from(IDS),
        name=st.sampled_from(NAMES),
        state=st.sampled_from(["pending", "pending", "failed"]),
        priority=st.sampled_from([-(2**31), -1, 0, 0, 0, 7, 2**31 - 1]),
        created=st.integers(0, 3),
        delay=st.sampled_from([-3, 0, 2, 2, 2, 50]),
        no_prefetch=st.booleans(),
    )
    def put_waiting(
        self, task: bytes, name: str, state: str, priority: int, created: int, delay: int, no_prefetch: bool
    ) -> None:
        note = Note(state, name, priority, EPOCH + created, self.now + delay, no_prefetch, None, None, None)
        self.forget(task)
        self.waiting[task] = note
        due = note.due <= max(self.now, note.created)
        if due:
            self.due.add(task)
        assert self.index.put(task, note) is due

    @rule(task=st.sampled_from(IDS), name=st.sampled_from(NAMES))
    def put_running(self, task: bytes, name: str) -> None:
        self.forget(task)
        self.running[task] = Note("running", name, 0, EPOCH, EPOCH, False, "anna", EPOCH + 60, None)
        assert not self.index.put(task, self.running[task])

    @rule(task=st.sampled_from(IDS), state=st.sampled_from(["completed", "failed", "cancelled"]))
    def put_finished(self, task: bytes, state: str) -> None:
        self.forget(task)
        assert not self.index.put(task, Note(state, "a", 0, EPOCH, EPOCH, False, None, None, EPOCH))

    @rule(task=st.sampled_from(IDS))
    def remove(self, task: bytes) -> None:
        self.forget(task)
        self.index.remove(task)

    @rule(by=st.sampled_from([1, 3, 100, -4]))
    def pass_time(self, by: int) -> None:
        self.now += by
        self.promote()
        self.index.promote()

    @rule(caps=st.dictionaries(st.sampled_from([*NAMES, "unknown"]), st.integers(0, 5)), number=st.integers(0, 8))
    def take(self, caps: dict[str, int], number: int) -> None:
        left = dict(caps)
        expected: list[bytes] = []
        for task in sorted(self.due, key=self.rank):
            note = self.waiting[task]
            if len(expected) == number or left.get(note.name, 0) <= 0:
                continue
            self.due.remove(task)
            if note.due <= self.now:  # else the clock went back: it waits once more
                left[note.name] -= 1
                expected.append(task)
        taken = self.index.take(caps, number)
        assert [found.id for found in taken] == expected
        for found in taken:
            self.check(found)
            self.out[found.id] = found
            self.unchanged.add(found.id)

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        back = data.draw(st.lists(st.sampled_from(sorted(self.out)), unique=True)) if self.out else []
        self.index.put_back([self.out.pop(task) for task in back])
        self.due |= self.unchanged & set(back)
        self.unchanged -= set(back)

    @rule()
    def next_due(self) -> None:
        self.promote()
        rest = [note.due for task, note in self.waiting.items() if task not in self.due | self.unchanged]
        assert self.index.next_due() == min(rest, default=None)

    def rank(self, task: bytes) -> tuple[Any, ...]:
        note = self.waiting[task]
        return -note.priority, note.created, task

    def check(self, found: Waiting) -> None:
        note = self.waiting[found.id]
        seen = (found.name, found.created, found.due, found.no_prefetch, found.retries)
        assert seen == (note.name, note.created, note.due, note.no_prefetch, note.state == "failed")

    @invariant()
    def knows_the_same(self) -> None:
        index, waiting = self.index, self.waiting
        assert index.busy(NAMES) == [name for name in NAMES if name in {waiting[task].name for task in self.due}]
        found = list(index.waiting())
        assert [each.id for each in found] == sorted(waiting)
        for each in found:
            self.check(each)
        assert {task: each.name for task, each in index.running.items()} == {
            task: note.name for task, note in self.running.items()
        }
        oldest: dict[str, int] = {}
        for note in waiting.values():
            if note.due <= self.now:
                oldest[note.name] = min(note.due, oldest.get(note.name, note.due))
        assert {name: each.oldest for name, each in index.depths().items() if each.oldest is not None} == oldest
        assert sum(each.due for each in index.depths().values()) == sum(n.due <= self.now for n in waiting.values())


TestIndexBesideAModel = IndexBesideAModel.TestCase
TestIndexBesideAModel.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.mark.parametrize("gone", [0, 1])
def test_of_two_that_will_be_due_at_once_one_can_go(gone: int):
    now = EPOCH
    index = Index(lambda: now)
    for task in IDS[:2]:
        index.put(task, pending(EPOCH, EPOCH + 5))
    index.remove(IDS[gone])
    now += 5
    index.promote()
    assert [found.id for found in index.take({WORK: 5}, 5)] == [IDS[1 - gone]]


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [0, 10**15], ids=["due", "future"])
def test_a_waiting_task_takes_about_a_hundred_bytes(monkeypatch: pytest.MonkeyPatch, later: int):
    monkeypatch.setattr(ordered, "_LARGEST", LARGE_BLOCK)
    number = 20_000
    ids = [next_id().bytes for _ in range(number)]
    tracemalloc.start()
    index = Index(lambda: 2_000_000_000_000_000)
    before, _ = tracemalloc.get_traced_memory()
    for place, task in enumerate(ids):
        created = EPOCH + place
        index.put(bytes(bytearray(task)), pending(created, created + later))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == number
    assert (after - before) / number < 120


def test_an_index_that_nobody_claims_from_does_not_grow():
    index = Index(lambda: 2_000_000_000_000_000)
    for place in range(2_000):
        task = next_id().bytes
        created = EPOCH + place
        index.put(task, pending(created, created + place % 2 * 10**15))
        index.put(task, Note("completed", WORK, 0, created, created, False, None, None, created))
    assert len(index) == len(index._queues[WORK]) == len(index._future) == 0


def test_an_index_that_was_drained_keeps_nothing():
    index = Index(lambda: 2_000_000_000_000_000)
    for place in range(1_000):
        index.put(next_id().bytes, pending(EPOCH + place))
    while taken := index.take({WORK: 100}, 100):
        for found in taken:
            index.remove(found.id)
        index.put_back(taken)
    assert len(index) == len(index._queues[WORK]) == len(index._future) == len(index._taken) == 0
