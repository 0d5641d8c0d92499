"""The program that posts one message to a webhook, run as a process of its own: it can be ended at its deadline,
whatever a name server or the other side does. It needs the standard library alone.

The order comes as JSON on stdin, because command lines can be read by everybody; what went wrong goes to stderr, and
never names the address or a header.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError, URLError


def _opener() -> urllib.request.OpenerDirector:
    """Follows no redirect: that would send the message, and its secrets, to somebody else, or turn it into a GET."""
    opener = urllib.request.OpenerDirector()
    for kind in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
    ):
        opener.add_handler(kind())
    return opener


def main() -> None:
    order = json.load(sys.stdin)
    try:
        request = urllib.request.Request(
            order["url"], order["body"].encode(), {"Content-Type": "application/json", **order["headers"]}
        )
        _opener().open(request, timeout=order["seconds"]).close()
    except HTTPError as error:
        sys.exit(f"it answered with status {error.code}")
    except URLError as error:
        sys.exit(f"it cannot be reached: {error.reason}")
    except OSError as error:
        sys.exit(f"it did not answer: {error}")
    except (HTTPException, ValueError) as error:  # their texts may hold the address
        sys.exit(f"it cannot be asked: {type(error).__name__}")


if __name__ == "__main__":
    main()
