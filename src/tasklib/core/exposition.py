"""Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.redact import mask_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = len(LATENCY_BOUNDS_MS) + 1


def head(metric: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"


def line(metric: str, value: float, **labels: str) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{metric}{{{inside}}} {value:.15g}" if inside else f"{metric} {value:.15g}"


def histogram(metric: str, counts: Sequence[int], seconds: float, **labels: str) -> Iterator[str]:
    """`counts` fell into each bucket of LATENCY_BOUNDS_MS, the last ones beyond; `seconds` is their sum."""
    total = 0
    for bound, count in zip(LATENCY_BOUNDS_MS, counts, strict=False):
        total += count
        yield line(f"{metric}_bucket", total, **labels, le=f"{bound / 1000:g}")
    total += counts[-1]
    yield line(f"{metric}_bucket", total, **labels, le="+Inf")
    yield line(f"{metric}_sum", seconds, **labels)
    yield line(f"{metric}_count", total, **labels)


def _escaped(text: str) -> str:
    """As the format wants it; what cannot be seen is written out, because people read this in terminals, too."""
    text = mask_text(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii").replace("\\", "\\\\")
