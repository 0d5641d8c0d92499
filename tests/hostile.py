"""Hostile text: what people may put into every name, payload, result, error, key, tag and worker's id."""

MARKUP = (
    "<img src=x onerror=window.hit=1>"
    "<script>window.hit=2</script>"
    "</script></title><svg onload=window.hit=3>"
    "\"'><iframe srcdoc='<script>parent.hit=4</script>'>"
    "javascript:window.hit=5//"
    "{{constructor.constructor('window.hit=6')()}}${window.hit=7}"
)
STEERING = "\x1b[2J\x1b]0;x\x07\x9b31m\r\n\u202e\u2066\u200b\u2028\ufeff\x7f"
"""What steers a terminal, breaks a line where nobody expects it, or turns a text round."""
FORGED = "\n\nevent: stats\ndata: {}\n\ntasklib_forged 1\n2026-01-01 00:00:00Z ERROR   forged\n"
EVIL = f"{MARKUP[:150]}{STEERING}{FORGED[:60]}"
"""Short enough for a name."""
UNSAFE = frozenset(STEERING) - {"[", "2", "J", "]", "0", ";", "x", "3", "1", "m", "\n"}

PAYLOAD = {EVIL: MARKUP, "__proto__": {"x": MARKUP}, "constructor": EVIL, "toString": [EVIL, {EVIL: [EVIL]}]}
