"""The exceptions by which a handler decides what happens next."""

import pickle
import traceback

import pytest

import tasklib
from tasklib.core.errors import InvalidOption
from tasklib.core.outcome import Fail, Retry, Snooze, TaskStopped, TaskTimedOut


def test_a_retry_may_name_its_delay():
    assert Retry().delay is None
    assert Retry("later", delay=30).delay == 30.0
    assert str(Retry("later")) == "later"


def test_a_snooze_needs_its_delay():
    assert Snooze(delay=0).delay == 0.0
    with pytest.raises(TypeError):
        Snooze()  # type: ignore[call-arg]


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), True, "5", 1e300, 10**400, 10**5000], ids=range(8))
def test_a_delay_that_is_none_is_refused_by_name(delay: object):
    for word in (Retry, Snooze):
        with pytest.raises(InvalidOption) as caught:
            word(delay=delay)  # type: ignore[arg-type]
        assert caught.value.field == "delay"


def test_handlers_that_catch_everything_catch_the_words_but_not_the_interruptions():
    assert all(issubclass(word, Exception) for word in (Retry, Fail, Snooze))
    assert not any(issubclass(word, Exception) for word in (TaskTimedOut, TaskStopped))


def test_tracebacks_name_exceptions_as_people_import_them():
    public = [getattr(tasklib, name) for name in tasklib.__all__]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, BaseException)]
    assert len(errors) > 35
    assert {each.__module__ for each in errors} == {"tasklib"}
    assert traceback.format_exception_only(tasklib.Fail("no")) == ["tasklib.Fail: no\n"]
    assert type(pickle.loads(pickle.dumps(tasklib.Fail("no")))) is Fail
