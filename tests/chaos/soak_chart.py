"""A soak as a picture: one panel for each gauge, a mark for each fault."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from tests.chaos.samples import Judgement

matplotlib.use("Agg")

FINE, GROWING, FAULT = "#2563eb", "#dc2626", "#cbd5e1"


def draw(
    times: Sequence[float],
    values: Mapping[str, Sequence[float]],
    strikes: Sequence[tuple[float, str]],
    judged: Sequence[Judgement],
    path: Path,
) -> None:
    figure, axes = plt.subplots(3, 2, figsize=(13, 8.5), layout="constrained", sharex=True)
    minutes = [each / 60 for each in times]
    for axis, each in zip(axes.flat, judged, strict=True):
        for moment, _ in strikes:
            axis.axvline(moment / 60, color=FAULT, lw=0.6, zorder=0)
        axis.plot(minutes, values[each.gauge.name], color=FINE if each.flat else GROWING, lw=1.2)
        axis.axhline(each.limit, color=GROWING, lw=0.8, ls="--")
        axis.set_title(str(each), fontsize=9, loc="left")
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("minutes", fontsize=9)
    figure.suptitle(
        "One worker and its database under faults (grey); dashed: the most that counts as flat", fontsize=10
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)
