"""The suite itself: nothing in it may be hidden."""

import inspect
from collections import Counter

from tests.conformance import StoreSuite


def test_no_topic_hides_anothers_test():
    topics = [topic for topic in StoreSuite.__mro__ if topic not in (StoreSuite, object)]
    names = Counter(name for topic in topics for name in vars(topic) if name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 200


def test_every_test_of_the_suite_runs_under_asyncio():
    tests = [found for name, found in inspect.getmembers(StoreSuite) if name.startswith("test_")]
    assert all(map(inspect.iscoroutinefunction, tests))
    assert [mark.name for mark in StoreSuite.pytestmark] == ["asyncio"]
