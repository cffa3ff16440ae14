"""Scores against costs as SVG: a labelled dot for each agent, and the step line of the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from grading.page.charts import Frame, around, fitted, short, svg
from grading.page.view import Series
from grading.statistics.usage import pareto_front

_MARK = Markup('<use href="#m{}" x="{:.1f}" y="{:.1f}"><title>{}</title></use>')
_BAR = Markup('<line class="bar l{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
_FRONT = Markup('<polyline class="front" points="{}"/>')
_LABEL = Markup('<text class="halo end s{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
_CHARACTER, _LINE = 7.4, 13.0
"""About how wide and how high a character of a label is."""
# Where a label may stand, as seen from its dot, the best place first.
_PLACES: tuple[tuple[int, int, str], ...] = ((9, 4, "start"), (-9, 4, "end"), (0, -10, "middle"), (0, 19, "middle"))
_PLACES += ((7, -7, "start"), (7, 16, "start"), (-7, -7, "end"), (-7, 16, "end"))
_SHIFTS = {"start": 0.0, "middle": 0.5, "end": 1.0}


@dataclass(frozen=True)
class Point:
    """What an agent costs (above 0) and its score, a fraction, with the ends of its interval; NaN where unknown."""

    series: Series
    cost: float
    score: float
    low: float = math.nan
    high: float = math.nan


def scatter(points: Sequence[Point], show: Callable[[float], str], label: str) -> Markup:
    """The chart; `show` has the words of a cost. The axis of costs is logarithmic if they span more than a decade."""
    costs = [point.cost for point in points]
    ends = [end for point in points for end in (point.score, point.low, point.high) if not math.isnan(end)]
    axis = fitted(min(ends), max(ends), lambda share: f"{100 * share:g} %", 1.0)
    frame = Frame(around(min(costs), max(costs), show), axis, 440, 290, 44, 40)
    on_front = pareto_front([(point.cost, point.score) for point in points])
    parts = frame.axes()
    corners: list[tuple[float, float]] = []
    for point in sorted((p for p, best in zip(points, on_front, strict=True) if best), key=lambda p: p.cost):
        corners += [(point.cost, corners[-1][1])] if corners else []
        corners.append((point.cost, point.score))
    front = []
    if corners:
        corners.append((frame.x.high, corners[-1][1]))
        parts.append(_FRONT.format(frame.path(corners)))
        front = [frame.at(*corner) for corner in corners]
    places = [frame.at(point.cost, point.score) for point in points]
    names = [short(point.series.label) for point in points]
    for point, (x, y), name, (left, top, anchor) in zip(
        points, places, names, _labels(places, names, frame, front), strict=True
    ):
        shape = point.series.shape
        drawn = [_MARK.format(shape, x, y, f"{point.series.label}: {frame.y_text(point.score)} for {show(point.cost)}")]
        if not math.isnan(point.low):
            low, high = (frame.at(point.cost, end)[1] for end in (point.low, point.high))
            drawn.insert(0, _BAR.format(shape, x, x, low, high))
        drawn.append(_LABEL.format(shape, left, top, anchor, name))
        parts.append(Markup('<g data-line="{}">{}</g>').format(point.series.label, Markup("").join(drawn)))
    return svg(parts, frame, label)


def _labels(
    places: Sequence[tuple[float, float]], texts: Sequence[str], frame: Frame, front: Sequence[tuple[float, float]] = ()
) -> list[tuple[float, float, str]]:
    """Where the labels of dots stand (x, y, anchor): where they cover each other, dots and the line least."""
    taken: list[tuple[float, ...]] = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    for (x, y), (right, top) in pairwise(front):
        taken.append((x - 2, min(y, top) - 2, right + 2, max(y, top) + 2))
    found = []
    for (x, y), text in zip(places, texts, strict=True):
        wide = _CHARACTER * len(text)
        choices: list[tuple[float, int, tuple[float, ...]]] = []
        for across, down, anchor in _PLACES:
            left, base = x + across - _SHIFTS[anchor] * wide, y + down
            box = (left, base - _LINE + 3, left + wide, base + 3)
            outside = max(0.0, -left) + max(0.0, box[2] - frame.width) + max(0.0, base - frame.height + frame.bottom)
            choices.append((100 * outside + sum(_overlap(box, other) for other in taken), len(choices), box))
        _, place, best = min(choices)
        taken.append(best)
        across, down, anchor = _PLACES[place]
        found.append((x + across, y + down, anchor))
    return found


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes (left, top, right, bottom) share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)
