"""Errors that differ only from task to task are one."""

import pytest

from tasklib.core.error_group import ErrorGroup, group_of, last_line

TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/tasks.py", line {line}, in charge_card
    receipt = gateway.charge(order.total)
  File "/srv/shop/gateway.py", line 41, in charge
    return session.post(self.url)
  File "/venv/lib/python3.12/site-packages/requests/sessions.py", line 637, in post
    raise Timeout(url)
requests.exceptions.Timeout: no answer for order {order} within 10 s
  retried twice
"""
CAUSED = """Traceback (most recent call last):
  File "/srv/shop/other.py", line 3, in lookup
    return known[key]
KeyError: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 9, in run
    lookup()
shop.NotFound: x
"""


def test_lines_and_messages_that_change_do_not_matter():
    errors = [TRACEBACK.format(line=88, order=4711), TRACEBACK.format(line=90, order=4712)]
    assert {group_of(error) for error in errors} == {
        ErrorGroup("requests.exceptions.Timeout", "shop/gateway.py in charge", "")
    }
    assert last_line(errors[0]) == "requests.exceptions.Timeout: no answer for order 4711 within 10 s"


def test_the_last_of_several_tracebacks_says_where():
    assert group_of(CAUSED) == ErrorGroup("shop.NotFound", "shop/tasks.py in run", "")


@pytest.mark.parametrize(
    ("error", "group"),
    [
        (
            "WorkerLost: worker web-1-4711-a3f9 vanished",
            ErrorGroup("WorkerLost", "", "worker web-#-#-# vanished"),
        ),
        ("ValueError", ErrorGroup("ValueError", "", "")),
        ("no such thing 42", ErrorGroup("", "", "no such thing #")),
        ("user 0191f7a2-1c3e-7d4f-8a5b-6c7d8e9f0a1b is gone", ErrorGroup("", "", "user # is gone")),
        ("", ErrorGroup("", "", "")),
    ],
)
def test_without_a_traceback_what_was_said_counts(error: str, group: ErrorGroup):
    assert group_of(error) == group
