"""The server: who gets in, who may do what, what browsers cannot be made to do, what a request may cost."""

from tests.guards.fencing import one
from tests.guards.guard import Guard

AUTH = "server/auth.py"
LIMITS = "server/limits.py"
HEADERS = "server/headers.py"
SESSIONS = "server/sessions.py"
TOKENS = "server/tokens.py"
T = "tests/server/test_auth.py::"
B = "tests/server/test_browsers.py::"
BAD = "tests/server/test_bad_input.py::"
TASKS = "tests/server/test_tasks.py::"

ENTRANCE = (
    one(
        "every request passes the gate",
        AUTH,
        "identity = await self._identify(scope, bearer)",
        f"{T}test_every_route_needs_a_token[alone]",
        f"{T}test_every_route_needs_a_token[starlette]",
        f"{T}test_wrong_tokens",
        put="identity = NOBODY_ASKED",
    ),
    one(
        "what is not listed as public needs a token",
        AUTH,
        'or (method == "GET" and path.startswith(ASSETS))',
        f"{T}test_every_route_needs_a_token[alone]",
        put='or method == "GET"',
    ),
    one(
        "a role may do only what it is granted",
        AUTH,
        "if identity is not None and not identity.may(need):",
        f"{T}test_roles[memory-read-only]",
        f"{T}test_roles[memory-operator]",
        f"{T}test_roles[memory-worker]",
        put="if False:",
    ),
    one(
        "changes that nobody listed need an operator",
        AUTH,
        "return Need.OPERATE",
        f"{T}test_what_is_not_listed_needs_an_operator",
        put="return Need.READ",
    ),
    one(
        "claims, whose payloads are not masked, need a worker",
        AUTH,
        "return Need.CLAIM",
        f"{T}test_claims_are_for_those_who_work",
        put="return Need.READ",
    ),
    one(
        "a revoked token is refused",
        TOKENS,
        "token.revoked_at is None and ",
        f"{T}test_a_revoked_token_is_refused[memory]",
    ),
    one(
        "tokens are kept as hashes",
        TOKENS,
        "hashlib.sha256(token).hexdigest()",
        f"{T}test_tokens_are_kept_hashed[memory]",
        put="token.decode()",
    ),
    one(
        "tokens are compared in constant time",
        TOKENS,
        "hmac.compare_digest(digest, identity.digest.encode())",
        f"{T}test_tokens_and_cookies_are_compared_in_constant_time",
        put="digest == identity.digest.encode()",
    ),
    one(
        "the configured token is compared in constant time",
        TOKENS,
        "hmac.compare_digest(digest, self._configured.digest.encode())",
        f"{T}test_tokens_and_cookies_are_compared_in_constant_time",
        put="digest == self._configured.digest.encode()",
    ),
    one(
        "all tokens are looked at, also behind the one that fits",
        TOKENS,
        "            found = identity\n",
        f"{T}test_tokens_and_cookies_are_compared_in_constant_time",
        put="            return identity\n",
        within="def _among",
    ),
    one(
        "guesses do not each ask the database",
        TOKENS,
        "if self._read_at is None or self._read_at <= asked:",
        f"{T}test_guesses_do_not_each_ask_the_database",
        put="if True:",
    ),
    one(
        "web sockets are closed",
        AUTH,
        'elif scope["type"] == "websocket":',
        f"{T}test_web_sockets_are_closed",
        put="elif False:",
    ),
    one(
        "other addresses need a token",
        "cli/serve.py",
        "if not _is_loopback(order.host):",
        "tests/server/test_serve.py::test_other_addresses_need_a_token",
        put="if False:",
    ),
    one(
        "a short token is refused",
        "server/settings.py",
        "if self.token is not None and len(self.token) < SHORTEST_TOKEN:",
        f"{T}test_a_short_token_is_refused",
        put="if False:",
    ),
)

BROWSERS = (
    one(
        "a host name that was not allowed is refused",
        AUTH,
        "if name not in self._hosts:",
        f"{B}test_hosts[evil.example-False]",
        f"{B}test_hosts[localhost.evil.example-False]",
        put="if False:",
    ),
    one(
        "a change that another site asks for is refused",
        AUTH,
        "if not same:",
        f"{B}test_changes_come_from_our_own_pages",
        f"{B}test_without_authentication_other_sites_still_change_nothing",
        put="if False:",
    ),
    one(
        "a browser says where a request comes from",
        AUTH,
        'same = site in (b"same-origin", b"none")',
        f"{B}test_changes_come_from_our_own_pages",
        put="same = True",
    ),
    one(
        "an older browser's origin must be ours",
        AUTH,
        'same = origin.lower().partition(b"://")[2] == (header(scope, b"host") or b"").lower()',
        f"{B}test_changes_come_from_our_own_pages",
        put="same = True",
    ),
    one(
        "a made-up bearer token does not pass for a site's own page",
        AUTH,
        "if has_bearer and self.settings.authenticate:",
        f"{B}test_without_authentication_other_sites_still_change_nothing",
        put="if has_bearer:",
    ),
    one(
        "a body is JSON and says so",
        LIMITS,
        "            _check_type(scope)\n",
        f"{BAD}test_a_body_needs_its_content_type",
        within="class BodyLimit",
    ),
    one(
        "a session's signature is checked",
        SESSIONS,
        'if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):',
        f"{B}test_forged_and_old_cookies",
        put="if False:",
    ),
    one(
        "a session's signature is compared in constant time",
        SESSIONS,
        'hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))',
        f"{T}test_tokens_and_cookies_are_compared_in_constant_time",
        put="expected == signature",
    ),
    one(
        "a session runs out",
        SESSIONS,
        " or int(expiry) < self._clock()",
        f"{B}test_forged_and_old_cookies",
    ),
    one(
        "scripts cannot read the cookie",
        SESSIONS,
        "httponly=True,\n            samesite",
        f"{B}test_sessions[memory]",
        put="httponly=False,\n            samesite",
    ),
    one(
        "other sites cannot use the cookie",
        SESSIONS,
        'samesite="strict",\n',
        f"{B}test_sessions[memory]",
        put='samesite="lax",\n',
    ),
    one(
        "over https the cookie is secure",
        SESSIONS,
        "secure=secure",
        f"{B}test_a_cookie_over_https_is_secure_and_holds_below_the_mount",
        put="secure=False",
    ),
)


def header(name: str, value: str) -> Guard:
    return one(f"header {name}", HEADERS, f'    (b"{name}", {value}),\n', f"{B}test_headers")


ANSWERS = (
    header("content-security-policy", "POLICY.encode()"),
    header("x-content-type-options", 'b"nosniff"'),
    header("x-frame-options", 'b"DENY"'),
    header("referrer-policy", 'b"no-referrer"'),
    header("cross-origin-opener-policy", 'b"same-origin"'),
    header("cross-origin-resource-policy", 'b"same-origin"'),
    one("data is not cached", HEADERS, 'else b"no-store"', f"{B}test_headers", put='else b"no-cache"'),
    one(
        "what tells of a session is not compressed",
        "server/representation.py",
        ', "/api/login", "/api/session"',
        "tests/server/test_representation.py::test_small_answers_and_secrets_are_not_compressed",
    ),
    one("policy: nothing but what is named", HEADERS, "default-src 'none'; ", f"{B}test_headers"),
    one(
        "policy: no inline script",
        HEADERS,
        "script-src 'self'",
        f"{B}test_headers",
        put="script-src 'self' 'unsafe-inline'",
    ),
    one(
        "policy: no inline style",
        HEADERS,
        "style-src 'self'",
        f"{B}test_headers",
        put="style-src 'self' 'unsafe-inline'",
    ),
    one("policy: scripts are ours", HEADERS, "script-src 'self'", f"{B}test_headers", put="script-src *"),
    one("policy: pages talk to us alone", HEADERS, "connect-src 'self'", f"{B}test_headers", put="connect-src *"),
    one("policy: forms go to us alone", HEADERS, "form-action 'self'; ", f"{B}test_headers"),
    one("policy: the base is ours", HEADERS, "base-uri 'self'; ", f"{B}test_headers"),
    one("policy: nobody frames us", HEADERS, "; frame-ancestors 'none'", f"{B}test_headers"),
    one(
        "a fault of ours shows no traceback",
        "server/problems.py",
        '"an error of the server\'s own; its log says more"',
        f"{BAD}test_a_fault_of_ours_shows_no_traceback",
        put="repr(error)",
    ),
)

COSTS = (
    one(
        "a body that says it is too large is not read",
        LIMITS,
        "if length is not None and length.isdigit() and int(length) > self.max_bytes:",
        f"{BAD}test_a_body_that_says_it_is_too_large_is_not_read_at_all",
        put="if False:",
    ),
    one(
        "a body is read no further than allowed",
        LIMITS,
        "if size > self.max_bytes:",
        f"{BAD}test_too_large_a_body_is_not_read",
        put="if size > 2**30:",
    ),
    one(
        "a page has an end",
        "server/schemas.py",
        "limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)]",
        f"{BAD}test_queries[memory-limit=0-limit]",
        f"{BAD}test_queries[memory-limit=1000000000-limit]",
        put="limit: int",
    ),
    one(
        "a cursor is an id, or an end and an id",
        "server/fields.py",
        'Annotated[str, Field(pattern=r"^([0-9]{1,17}_)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]',
        f"{BAD}test_queries[memory-cursor=forged-cursor]",
        f"{BAD}test_queries[memory-cursor='%20OR%201=1---cursor]",
        put="str",
    ),
    one(
        "a cursor belongs to the order that it was made in",
        "server/tasks.py",
        "if cursor is not None and isinstance(cursor, EndedCursor) is not by_end:",
        f"{TASKS}test_a_cursor_belongs_to_its_order[memory]",
        put="if False:",
    ),
    one(
        "the order of ends is refused where no index has it",
        "engine/engine.py",
        "check_sorted_by_end(checked(where))",
        f"{TASKS}test_the_order_of_ends_is_refused_where_it_would_be_slow[memory-[]]",
        f"{TASKS}test_the_order_of_ends_is_refused_where_it_would_be_slow[memory-['completed']]",
        put="checked(where)",
    ),
    one(
        "unknown fields are refused",
        "server/schemas.py",
        'extra="forbid"',
        f"{BAD}test_fields",
        put='extra="ignore"',
        times=1,
    ),
    one(
        "submits can be limited",
        LIMITS,
        "if left < 1:",
        f"{BAD}test_submits_can_be_limited",
        put="if False:",
    ),
    one(
        "live streams are capped",
        LIMITS,
        "if self.open >= self._most:",
        "tests/server/test_live.py::test_the_cap_counts_both_ways",
        put="if False:",
    ),
    one(
        "a request ends in time",
        LIMITS,
        "limit = asyncio.timeout(self.seconds)",
        "tests/server/test_live.py::test_a_request_that_takes_too_long",
        put="limit = asyncio.timeout(None)",
    ),
)

GUARDS = (*ENTRANCE, *BROWSERS, *ANSWERS, *COSTS)
