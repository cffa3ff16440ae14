"""Charts of the page of `mlebench check`: scores beside thresholds, distributions of the target, and bars."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from grading.medals import Thresholds
from grading.page.charts import RULE, TEXT, Frame, steps, svg
from grading.page.format import number

WIDTH = 460.0
_ROW = 21.0
_LEFT = 108.0
_RIGHT = 70.0
_BINS = (6, 24)
"""Least and largest number of bins, the square root of the number of values between them."""
_MAX_CLASSES = 10
_WORSE, _BETTER = 4.0, 1.0
"""How far the axis of scores reaches beyond gold at most, in distances between gold and the median."""
_BAR = Markup('<rect class="s{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_DOT = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>')
_LINE = Markup('<line class="threshold {0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{3:.1f}"/>')
_STEPS = Markup('<polyline class="line l{}" fill="none" points="{}"/>')


def score_chart(scores: Mapping[str, float], thresholds: Thresholds, error: float | None) -> Markup:
    """A dot for each score by name, worse to the left, with lines for the thresholds.

    The axis reaches from the worst threshold or score to the best, but not so far that the medals could not be told
    apart: scores beyond it are hollow dots at its ends. `error` is the standard error of a score that is worth bronze,
    drawn as a bar at that threshold.
    """
    sign = -1.0 if thresholds.lower_is_better else 1.0
    lines = {name: getattr(thresholds, name) for name in ("median", "bronze", "silver", "gold")}
    reach = max(abs(thresholds.gold - thresholds.median), abs(thresholds.gold - thresholds.bronze)) or 1.0
    best = max(sign * value for value in lines.values())
    wanted = [sign * value for value in scores.values() if math.isfinite(value)]
    low = max(min([*wanted, *(sign * value for value in lines.values())]), best - _WORSE * reach)
    high = min(max([best, *wanted]), best + _BETTER * reach)
    margin = (high - low) * 0.04 or 1.0
    low, high = low - margin, high + margin
    height = _ROW * (len(scores) + 1) + 26

    def at(value: float) -> float:
        share = (sign * value - low) / (high - low) if math.isfinite(value) else math.copysign(1.0, sign * value)
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(max(share, 0.0), 1.0)

    parts = []
    placed = -math.inf
    for name, value in sorted(lines.items(), key=lambda item: sign * item[1]):
        parts.append(_LINE.format(name, at(value), 16, height - 22))
        if at(value) - placed >= 52:
            parts.append(TEXT.format("x", at(value), 11, name))
            placed = at(value)
    if error:
        ends = sorted(at(thresholds.bronze + deviation) for deviation in (-error, error))
        parts.append(_BAR.format(8, ends[0], height - 26, ends[1] - ends[0], 6, f"± {error:.2g} at bronze"))
        parts.append(TEXT.format("y", _LEFT - 8, height - 18, "noise at bronze"))
        parts.append(TEXT.format("value", WIDTH - _RIGHT + 8, height - 18, f"± {error:.2g}"))
    for row, (name, value) in enumerate(sorted(scores.items(), key=lambda item: -sign * item[1])):
        y = 16 + _ROW * (row + 0.5)
        parts.append(RULE.format(_LEFT, WIDTH - _RIGHT, y, y))
        parts.append(TEXT.format("y", _LEFT - 8, y + 4, name))
        kind = "s0" if low <= sign * value <= high else "s0 beyond"
        parts.append(_DOT.format(kind, at(value), y, f"{name}: {number(value)}"))
        parts.append(TEXT.format("value", WIDTH - _RIGHT + 8, y + 4, number(float(f"{value:.5g}"))))
    return svg(parts, _frame(height), "scores and thresholds")


def distribution(train: Sequence[str], test: Sequence[str]) -> Markup | None:
    """The target in the training data and in the test set, as shares of the rows; None if nearly all values differ."""
    numbers = [[float(cell) for cell in cells if _is_number(cell)] for cells in (train, test)]
    values = sorted({*train, *test})
    if len(values) > 20 and all(len(own) == len(cells) for own, cells in zip(numbers, (train, test), strict=True)):
        return _histogram(*numbers)
    if len(values) > max(_MAX_CLASSES, (len(train) + len(test)) / 2):
        return None
    return _classes(train, test, values)


def _classes(train: Sequence[str], test: Sequence[str], values: Sequence[str]) -> Markup:
    counts = [(Counter(cells), max(len(cells), 1)) for cells in (train, test)]
    shares = {value: tuple(count[value] / size for count, size in counts) for value in values}
    frequent = sorted(shares, key=lambda value: -max(shares[value]))[:_MAX_CLASSES]
    shown = [value for value in values if value in frequent]
    bars: dict[str, tuple[float, ...]] = {(value if value.strip() else "(empty)"): shares[value] for value in shown}
    if len(values) > len(shown):
        rest = [shares[value] for value in values if value not in shown]
        bars[f"{len(rest)} others"] = tuple(math.fsum(part) for part in zip(*rest, strict=True))
    most = max(share for shares in bars.values() for share in shares)
    return bar_chart(bars, "shares of the classes in both parts", most)


def bar_chart(
    bars: Mapping[str, Sequence[float]],
    label: str,
    most: float = 1.0,
    left: float = _LEFT,
    limits: Mapping[str, float] | None = None,
) -> Markup:
    """A row for each name, with a bar for each of its shares, from 0 to `most`.

    `left` is the width of names. `limits` are drawn as lines across the rows of these names.
    """
    height = _ROW * len(bars) + 6
    parts = []
    for row, (name, shares) in enumerate(bars.items()):
        y = 3 + _ROW * row
        thick = (_ROW - 6) / len(shares)
        for place, share in enumerate(shares):
            wide = (WIDTH - left - _RIGHT) * max(share, 0.0) / most
            parts.append(_BAR.format(place, left, y + place * thick, wide, thick - 1, f"{name}: {share:.1%}"))
        if limits and name in limits:
            parts.append(
                _LINE.format("limit", left + (WIDTH - left - _RIGHT) * limits[name] / most, y - 2, y + _ROW - 4)
            )
        parts.append(TEXT.format("y", left - 8, y + 12, _short(name, int((left - 8) / 7.6))))
        parts.append(TEXT.format("value", WIDTH - _RIGHT + 8, y + 12, " / ".join(f"{share:.0%}" for share in shares)))
    return svg(parts, _frame(height), label)


def _histogram(train: Sequence[float], test: Sequence[float]) -> Markup:
    """Both parts as outlines with the same bins; values beyond the outer hundredths are in the end bins."""
    together = sorted([*train, *test])
    low, high = together[len(together) // 100], together[-1 - len(together) // 100]
    high = high if high > low else low + 1.0
    bins = min(max(math.isqrt(min(len(train), len(test))), _BINS[0]), _BINS[1])
    outlines = []
    for values in (train, test):
        counts = Counter(min(max(int((value - low) / (high - low) * bins), 0), bins - 1) for value in values)
        outlines.append([counts[number] / max(len(values), 1) for number in range(bins)])
    most = max(map(max, outlines)) or 1.0
    places = [low + (high - low) * share for share in (0, 0.25, 0.5, 0.75, 1)]
    x = steps([0.0, 0.25, 0.5, 0.75, 1.0], lambda share: number(float(f"{places[round(share * 4)]:.3g}")), log=False)
    frame = Frame(x, steps([0.0, most], "{:.0%}".format, log=False), WIDTH, 170, 44, 20)
    parts = frame.axes()
    for series, heights in enumerate(outlines):
        outline = [point for n, share in enumerate(heights) for point in ((n / bins, share), ((n + 1) / bins, share))]
        parts.append(_STEPS.format(series, frame.path([(0.0, 0.0), *outline, (1.0, 0.0)])))
    return svg(parts, frame, "distribution of the target in both parts")


def _frame(height: float) -> Frame:
    axis = steps([0.0, 1.0], str, log=False)
    return Frame(axis, axis, WIDTH, height, 0, 0)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
