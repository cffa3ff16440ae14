"""Line charts as SVG: true axes that fit the data, bands of uncertainty, and lines that are labelled at their ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from grading.page.view import MANY_SERIES, Series
from grading.statistics.seeds import mean

TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
_END = Markup('<text data-line="{}" class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
RULE = Markup('<line class="rule" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
_LINE = Markup('<polyline class="line l{}" points="{}"><title>{}</title></polyline>')
_OTHER = Markup('<polyline points="{}"/>')
_BAND = Markup('<polygon class="band-of s{}" points="{}"/>')
_CUT = Markup('<line class="cutoff l{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{3:.1f}"><title>{4}</title></line>')
_DOT = Markup('<circle class="s{}" cx="{:.1f}" cy="{:.1f}" r="2.6"/>')
_LEADER = Markup('<line class="lead" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
_CHARACTERS = 15
_LABEL_HEIGHT = 14.0


@dataclass(frozen=True)
class Line:
    """The points (x, y) of a series, in the order of x, and (x, low, high) of its band."""

    series: Series
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    label: str = ""
    """By default that of the series."""
    kind: str = ""
    """A further class, such as `own`. Lines with one are thin, and have no label at their ends."""
    marked: Sequence[float] = ()
    """Values of x at which there is a dashed line from top to bottom."""

    @property
    def name(self) -> str:
        """What is written at its end."""
        return self.label or self.series.label


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, marked at `ticks` (value, text). With `log`, equal factors are equally far apart."""

    ticks: Sequence[tuple[float, str]]
    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value between 0 and 1."""
        if self.high <= self.low:
            return 0.5
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def steps(values: Sequence[float], show: Callable[[float], str], log: bool = True) -> Axis:
    """An axis from the first to the last of `values`, which are marked; logarithmic where that is possible."""
    return Axis([(v, show(v)) for v in values], values[0], values[-1], log and values[0] > 0)


def scale(most: float, show: Callable[[float], str], most_allowed: float = math.inf) -> Axis:
    """An axis from 0 to a round number that is at least `most`.

    >>> [text for _, text in scale(0.43, "{:.0%}".format).ticks]
    ['0%', '10%', '20%', '30%', '40%', '50%']
    """
    size = 10.0 ** math.floor(math.log10(most)) if most > 0 and math.isfinite(most) else 1.0
    step = next(size * f for f in (0.2, 0.5, 1.0, 2.0, 5.0) if math.ceil(most / (size * f) - 1e-9) <= 5)
    count = max(1, math.ceil(min(most, most_allowed) / step - 1e-9))
    return Axis([(n * step, show(n * step)) for n in range(count + 1)], 0.0, count * step)


def around(least: float, most: float, show: Callable[[float], str]) -> Axis:
    """An axis for amounts from `least` to `most`, above 0: logarithmic if they span more than a decade.

    >>> [text for _, text in around(0.3, 40.0, "${:g}".format).ticks]
    ['$0.2', '$0.5', '$1', '$2', '$5', '$10', '$20', '$50']
    """
    if most > 10 * least:
        decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        marks = [
            float(f"{digit}e{decade}") for decade in decades for digit in ((1, 2, 5) if len(decades) < 5 else (1,))
        ]
        low, high = max(mark for mark in marks if mark <= least), min(mark for mark in marks if mark >= most)
        return steps([mark for mark in marks if low <= mark <= high], show)
    return fitted(least, most, show)


def fitted(least: float, most: float, show: Callable[[float], str], most_allowed: float = math.inf) -> Axis:
    """A linear axis of round numbers around `least` and `most`, which are not below 0.

    >>> [text for _, text in fitted(4.3, 5.6, "${:g}".format).ticks]
    ['$4', '$4.5', '$5', '$5.5', '$6']
    """
    wide = max(most - least, most / 10) or 1.0
    size = 10.0 ** math.floor(math.log10(wide))
    step = next(size * factor for factor in (0.2, 0.5, 1.0, 2.0, 5.0) if wide / (size * factor) <= 5)
    first = max(0, math.ceil(least / step - 1e-9) - 1)
    last = min(math.floor(most / step + 1e-9) + 1, round(min(most_allowed, 2 * most + 1) / step))
    return steps([round(n * step, 12) for n in range(first, last + 1)], show, log=False)


def draw(lines: Sequence[Line], x: Axis, y: Axis, label: str, name: str) -> Markup:
    """One chart, or a small one for each series if there are many; `name` is unique in the page."""
    if len({line.series.index for line in lines}) <= MANY_SERIES:
        return _chart(lines, x, y, label)
    return Markup('<div class="multiples">{}</div>').format(_multiples(lines, x, y, label, name))


@dataclass(frozen=True)
class Frame:
    """The places of values in a chart of `width` x `height` with margins, and what is drawn at them."""

    x: Axis
    y: Axis
    width: float
    height: float
    left: float
    right: float
    top: float = 10.0
    bottom: float = 26.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point."""
        across, up = self.width - self.left - self.right, self.height - self.top - self.bottom
        return self.left + across * self.x.at(x), self.top + up * (1 - min(max(self.y.at(y), 0.0), 1.0))

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """The places of points, as an attribute of SVG."""
        return " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)

    def axes(self, character: float = 7.4) -> list[Markup]:
        """Both axes with their numbers; those of x that would touch, for the width of a `character`, are left out."""
        parts = []
        for value, text in self.y.ticks:
            _, at = self.at(self.x.low, value)
            parts += [
                RULE.format(self.left, self.width - self.right, at, at),
                TEXT.format("y", self.left - 6, at + 4, text),
            ]
        kept: list[tuple[float, str]] = []
        for value, text in reversed(self.x.ticks):
            at, _ = self.at(value, 0)
            if not kept or kept[-1][0] - at >= 8 + character * (len(text) + len(kept[-1][1])) / 2:
                kept.append((at, text))
        return parts + [TEXT.format("x", at, self.height - 8, text) for at, text in kept]

    def line(self, line: Line) -> list[Markup]:
        """A line with its band, its points, and its numbers in words."""
        shape = line.series.shape
        parts = []
        if len(line.band) > 1:
            around = [(x, low) for x, low, _ in line.band] + [(x, high) for x, _, high in reversed(line.band)]
            parts.append(_BAND.format(shape, self.path(around)))
        for x in line.marked:
            at, top = self.at(x, self.y.high)
            parts.append(_CUT.format(shape, at, top, self.height - self.bottom, f"{line.name}: {self.x_text(x)}"))
        words = ", ".join(f"{self.y_text(y)} at {self.x_text(x)}" for x, y in line.points)
        parts.append(_LINE.format(f"{shape} {line.kind}".strip(), self.path(line.points), f"{line.name}: {words}"))
        if not line.kind and len(line.points) <= 12:
            parts += [_DOT.format(shape, *self.at(*point)) for point in line.points]
        return [Markup('<g data-line="{}">{}</g>').format(line.series.label, Markup("").join(parts))]

    def x_text(self, value: float) -> str:
        """A value of x in words."""
        return next((text for tick, text in self.x.ticks if tick == value), f"{value:.3g}")

    def y_text(self, value: float) -> str:
        """A value of y in words."""
        return f"{100 * value:.1f} %" if self.y.ticks[-1][1].endswith("%") else f"{value:.3g}"


def _chart(lines: Sequence[Line], x: Axis, y: Axis, label: str) -> Markup:
    labelled = [line for line in lines if not line.kind]
    frame = Frame(x, y, 440, 250, 44, 138)
    parts = frame.axes()
    for line in lines:
        parts += frame.line(line)
    ends = [frame.at(*line.points[-1]) for line in labelled]
    alike = max(height for _, height in ends) - min(height for _, height in ends) < 3 if len(ends) > 1 else False
    if alike:  # then labels stand in the order of the lines, as a legend
        labelled = sorted(labelled, key=lambda line: -mean([y for _, y in line.points]))
        ends = [(frame.width - frame.right, frame.top + _LABEL_HEIGHT * (n + 0.5)) for n in range(len(ends))]
    for line, (at, height), moved in zip(
        labelled, ends, spread([h for _, h in ends], frame.top, frame.height - 24), strict=True
    ):
        if abs(moved - height) > 3 or at < frame.width - frame.right - 1:
            parts.append(_LEADER.format(at + 4, height, frame.width - frame.right + 10, moved))
        parts.append(
            _END.format(
                line.series.label,
                f"end s{line.series.shape}",
                frame.width - frame.right + 13,
                moved + 4,
                short(line.name),
            )
        )
    return svg(parts, frame, label)


def _multiples(lines: Sequence[Line], x: Axis, y: Axis, label: str, name: str) -> Markup:
    """A small chart for each series, in the order of their ends, with all the others in grey behind it."""
    frame = Frame(x, y, 230, 150, 38, 12, top=24, bottom=22)
    ground = [_OTHER.format(frame.path(line.points)) for line in lines if not line.kind]
    charts = []
    main = (line for line in lines if not line.kind)
    best_first = sorted(main, key=lambda line: (-line.points[-1][1], -mean([y for _, y in line.points])))
    for place, index in enumerate(dict.fromkeys(line.series.index for line in best_first)):
        own = [line for line in lines if line.series.index == index]
        parts = [
            Markup('<g class="others behind" id="{}">{}</g>').format(name, Markup("").join(ground))
            if place == 0
            else Markup('<use href="#{}"/>').format(name)
        ]
        parts += frame.axes(6.3)
        for line in own:
            parts += frame.line(line)
        parts.append(TEXT.format(f"name s{own[0].series.shape}", frame.left, 15, short(own[0].series.label, 22)))
        charts.append(svg(parts, frame, f"{own[0].series.label}: {label}"))
    return Markup("").join(charts)


def spread(places: Sequence[float], low: float, high: float, gap: float = _LABEL_HEIGHT) -> list[float]:
    """Places moved as little as needed to be `gap` apart between `low` and `high`; in the order given.

    >>> spread([10, 11, 50], 0, 100, gap=10)
    [5.5, 15.5, 50]
    """
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = [places[n] for n in order]
    for _ in range(100):
        close = [(i, gap - (b - a)) for i, (a, b) in enumerate(pairwise(moved)) if gap - (b - a) > 1e-6]
        for i, overlap in close:
            moved[i] -= overlap / 2
            moved[i + 1] += overlap / 2
        moved = [min(max(place, low), high) for place in moved]
        if not close:
            break
    found = [0.0] * len(places)
    for n, place in zip(order, moved, strict=True):
        found[n] = place
    return found


def short(text: str, most: int = _CHARACTERS) -> str:
    """A text without its middle if it is long: names often differ at their ends.

    >>> short("agent-with-a-long-name-v2")
    'agent-w…name-v2'
    """
    left = most // 2
    return text if len(text) <= most else f"{text[:left]}…{text[left + 1 - most :]}"


def svg(parts: Sequence[Markup], frame: Frame, label: str) -> Markup:
    """A chart as an element; `label` is read to users of screen readers."""
    return Markup('<svg class="curves" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        frame.width, frame.height, escape(label), Markup("").join(parts)
    )
