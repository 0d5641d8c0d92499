"""Tasks a second by contender, as PNG and SVG."""

import statistics
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from benchmarks import plan
from benchmarks.book import Book

matplotlib.use("Agg")

OURS, FLOOR, PEER = "#2563eb", "#94a3b8", "#cbd5e1"
SAME_SUBMIT = (plan.OURS_ASYNC, plan.OURS_TWO, plan.OURS_DEFAULT)
"""They differ in how they work, not in how tasks are submitted."""
PANELS = {"drain": "Drained by workers", "bulk": "Submitted in bulk", "submit": "Submitted one by one"}


def draw(book: Book, folder: Path) -> bool:
    """False: there is nothing to draw."""
    panels = {measure: _bars(book, measure) for measure in PANELS}
    if not any(panels.values()):
        return False
    tallest = max(len(bars) for bars in panels.values())
    plt.rcParams.update({"font.family": "sans-serif", "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, 3, figsize=(15, 1.4 + 0.36 * tallest), layout="constrained")
    for axis, (measure, bars) in zip(axes, panels.items(), strict=True):
        names = [name for name, *_ in bars]
        middle = [value for _, value, _, _ in bars]
        around = [[value - low for _, value, low, _ in bars], [high - value for _, value, _, high in bars]]
        colours = [OURS if n.startswith("tasklib") else FLOOR if n.startswith("bare") else PEER for n in names]
        axis.barh(names, middle, color=colours, xerr=around, error_kw={"lw": 1, "ecolor": "#334155"})
        room = max((high for *_, high in bars), default=1) * 1.3
        for row, (_, value, _, high) in enumerate(bars):
            axis.text(high + room * 0.01, row, f"{value:,.0f}", va="center", fontsize=9)
        axis.set_xlim(0, room)
        axis.set_title(PANELS[measure], fontsize=11, loc="left")
        axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=9)
    figure.suptitle(
        "Tasks a second, a no-op with one small argument; medians, bars from least to most of the rounds", fontsize=10
    )
    for kind in ("png", "svg"):
        figure.savefig(folder / f"bench.{kind}", dpi=150)
    plt.close(figure)
    return True


def _bars(book: Book, measure: str) -> list[tuple[str, float, float, float]]:
    """Name, median, least, most; the highest last, which is where the top is."""
    bars = []
    for name in book.figures:
        values = book.values(name, measure)
        submits_alike = measure != "drain" and name in SAME_SUBMIT
        if values and not submits_alike and not name.startswith(("drain", "REST")):
            bars.append((name, statistics.median(values), min(values), max(values)))
    return sorted(bars, key=lambda bar: bar[1])
