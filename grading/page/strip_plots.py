"""Strip plots of scores as SVG. Coordinates are percentages, so the plots fit any width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from common.units import counted
from grading.page.format import number, result_title
from grading.page.scales import GUTTER, MEDAL_SCALE, medal_position, score_axis
from grading.page.view import MANY_SERIES, CompetitionView, Result, Series
from grading.statistics.seeds import mean
from grading.words import KIND_GLYPHS

_END = Markup('<text class="axis" x="{}%" y="{:.0f}" text-anchor="{}">{}</text>')
_DOT = 1.7  # percent within which two marks overlap


def medal_bands(series: Sequence[Series]) -> Markup:
    """The bands and thresholds of the common medal scale, which are the same for every competition."""
    edges = [GUTTER, *MEDAL_SCALE.values(), 100.0]
    height = _strip_height(series)
    names = ("below", "above", "bronze", "silver", "gold")
    parts = [_band(left, right, height, name) for name, (left, right) in zip(names, pairwise(edges), strict=True)]
    parts += [_tick(at, 0, height, name) for name, at in MEDAL_SCALE.items()]
    return Markup('<g id="bands">{}</g>').format(Markup("").join(parts))


def medal_strip(
    competition: CompetitionView, series: Sequence[Series], titles: bool = True, means: bool = False
) -> Markup:
    """One competition on the common medal scale: `medal_bands` and a mark per score; tooltips with `titles`.

    With `means`, all series share a lane, with a mark each at the mean place of their scores.
    """
    limits = competition.thresholds
    if limits is None:
        return Markup("")
    parts = [Markup('<use href="#bands"/>')]
    if means:
        placed = []
        for one in series:
            places = [medal_position(r.score or 0.0, limits) for r in _scored(competition, one)]
            placed += [(mean(places), _scored(competition, one)[0])] if places else []
        return _svg(
            [*parts, *_marks(placed, _strip_height(series) / 2, titles=False)],
            _strip_height(series),
            _summary(competition),
        )
    for lane, one in enumerate(series):
        placed = [(medal_position(r.score or 0.0, limits), r) for r in _scored(competition, one)]
        y = 3 + _lane(series) * (lane + 0.5)
        parts += _marks(placed, y, titles)
        unscored = [r for r in competition.results.values() if r.series == one and not r.scored]
        glyphs = Markup("").join(
            Markup("<tspan>{}{}</tspan>").format(
                "NaN" if r.score is not None else KIND_GLYPHS[r.kind], _title(result_title(r), titles)
            )
            for r in unscored
        )
        if unscored:
            parts.append(Markup('<text class="none" x="{}%" y="{:.1f}">{}</text>').format(GUTTER / 2, y + 4, glyphs))
    return _svg(parts, _strip_height(series), _summary(competition))


def score_strip(competition: CompetitionView, series: Sequence[Series], titles: bool = True) -> Markup:
    """One competition on its own linear axis: thresholds, the leaderboard's teams as a rug, and a mark per score.

    Marks have tooltips with `titles`.
    """
    thresholds = competition.thresholds
    if thresholds is None:
        return Markup("")
    scores = [r.score for r in competition.results.values() if r.scored and r.score is not None]
    axis = score_axis(thresholds, scores)
    names = tuple(MEDAL_SCALE)
    at = {name: axis.at(getattr(thresholds, name)) for name in names}
    top, lanes = 18, _lane(series) * len(series) + 6
    bottom = top + lanes
    edges = [0.0, *at.values(), 100.0]
    bands = zip(("below", "above", "bronze", "silver", "gold"), pairwise(edges), strict=True)
    parts = [_band(left, right, lanes, name, top) for name, (left, right) in bands if right > left]
    labels = _apart([at[name] for name in names], gap=4.6)
    for name, label in zip(names, labels, strict=True):
        value = f"{name}: {number(getattr(thresholds, name))}"
        parts.append(_tick(at[name], top - 3, bottom, name))
        parts.append(
            Markup('<line class="lead" x1="{:.1f}%" y1="12" x2="{:.1f}%" y2="{}"/>').format(label, at[name], top - 3)
        )
        parts.append(
            Markup('<text class="letter" x="{:.1f}%" y="10">{}<title>{}</title></text>').format(
                label, name[0].upper(), value
            )
        )
    parts.append(_rug([axis.at(point) for point in competition.percentiles or ()], bottom))
    for lane, one in enumerate(series):
        placed = [(axis.at(r.score or 0.0), r) for r in _scored(competition, one)]
        parts += _marks(placed, top + 3 + _lane(series) * (lane + 0.5), titles)
    for place, anchor, end in ((0, "start", axis.worse), (100, "end", axis.better)):
        parts.append(_END.format(place, bottom + 18, anchor, number(float(f"{end:.4g}"))))
    parts.append(_END.format(50, bottom + 18, "middle", "score"))
    return _svg(parts, bottom + 22, _summary(competition))


def duration_strip(
    competition: CompetitionView, series: Sequence[Series], longest: float, titles: bool = True
) -> Markup:
    """The durations of a competition's runs on an axis from 0 to `longest` seconds, and the time limit if it fits.

    Marks have tooltips with `titles`.
    """
    height = _lane(series) * len(series) + 6
    parts = [_band(0, 100, height, "below")]
    parts += [
        Markup('<line class="grid" x1="{0}%" x2="{0}%" y1="0" y2="{1}"/>').format(at, height) for at in (25, 50, 75)
    ]
    limits = {r.time_limit for r in competition.results.values() if r.time_limit and r.time_limit <= longest}
    parts += [_tick(min(99.8, 100 * limit / longest), 0, height, "limit") for limit in sorted(limits)]
    for lane, one in enumerate(series):
        results = [r for r in competition.results.values() if r.series == one and r.duration is not None]
        parts += _marks(
            [(100 * (r.duration or 0.0) / longest, r) for r in results],
            3 + _lane(series) * (lane + 0.5),
            titles,
            timing=True,
        )
    return _svg(parts, height, f"Durations in {competition.id}: {counted(len(competition.results), 'run')}")


def _strip_height(series: Sequence[Series]) -> float:
    """Height of a strip on the common scale; many series share a lane."""
    return 30 if len(series) > MANY_SERIES else _lane(series) * len(series) + 6


def _lane(series: Sequence[Series]) -> int:
    """Height of the lane of a series, in pixels."""
    return 20 if len(series) <= 2 else 15


def _scored(competition: CompetitionView, series: Series) -> list[Result]:
    return [r for r in competition.results.values() if r.series == series and r.scored]


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Ascending positions, moved as little as necessary to be `gap` apart and inside the plot."""
    moved = list(places)
    for _ in range(50):
        for i, (left, right) in enumerate(pairwise(moved)):
            overlap = gap - (right - left)
            if overlap > 1e-9:
                moved[i], moved[i + 1] = left - overlap / 2, right + overlap / 2
        shift = max(0.0, 2.0 - moved[0]) - max(0.0, moved[-1] - 98.0)
        moved = [place + shift for place in moved]
    return moved


def _title(text: str, shown: bool) -> Markup:
    return Markup("<title>{}</title>").format(text) if shown else Markup("")


def _marks(placed: Sequence[tuple[float, Result]], y: float, titles: bool = True, timing: bool = False) -> list[Markup]:
    """Marks at their positions. Overlapping marks are spread vertically."""
    clusters: list[list[tuple[float, Result]]] = []
    for place, result in sorted(placed, key=lambda one: (one[0], str(one[1].seed))):
        shown = min(max(place, 1.5), 98.5)
        if clusters and shown - clusters[-1][-1][0] < _DOT:
            clusters[-1].append((shown, result))
        else:
            clusters.append([(shown, result)])
    off = {id(result): place < 0 or place > 100 for place, result in placed}
    parts = []
    for cluster in clusters:
        step = min(6.0, 12.0 / max(1, len(cluster) - 1))
        for i, (place, result) in enumerate(cluster):
            shape = (
                "off-left"
                if off[id(result)] and place < 50
                else "off-right"
                if off[id(result)]
                else f"m{result.series.shape}"
            )
            hollow = timing and result.status not in (None, "completed")
            # A shape has the colour of its series, and needs a class only otherwise.
            own = "" if shape[0] == "m" and not hollow else f"s{result.series.shape}{' hollow' * hollow}"
            name = Markup(' class="{}"').format(own) if own else ""
            title = Markup(">{}</use>").format(_title(result_title(result, timing), titles)) if titles else Markup("/>")
            parts.append(
                Markup('<use href="#{}"{} x="{:.1f}%" y="{:g}"{}').format(
                    shape, name, place, round(y + step * (i - (len(cluster) - 1) / 2), 1), title
                )
            )
    return parts


def _band(left: float, right: float, height: float, name: str, top: float = 0) -> Markup:
    return Markup('<rect class="band {}" x="{:.1f}%" width="{:.1f}%" y="{}" height="{}"/>').format(
        name, left, right - left, top, height
    )


def _rug(places: Sequence[float], top: float) -> Markup:
    """Short lines below a plot, as one path whose coordinates are percentages of the width."""
    path = "".join(f"M{place:.1f} 0v5" for place in places if 0 <= place <= 100)
    inner = '<svg y="{}" height="5" viewBox="0 0 100 5" preserveAspectRatio="none"><path class="rug" d="{}"/></svg>'
    return Markup(inner).format(top, path) if path else Markup("")  # noqa: S704 - our own text


def _tick(at: float, top: float, bottom: float, name: str) -> Markup:
    return Markup('<line class="tick {0}" x1="{1:.1f}%" x2="{1:.1f}%" y1="{2}" y2="{3}"/>').format(
        name, at, top, bottom
    )


def _summary(competition: CompetitionView) -> str:
    return f"Scores in {competition.id}: {counted(len(competition.results), 'run')}"


def _svg(parts: Sequence[Markup], height: float, label: str) -> Markup:
    inner = Markup("").join(parts)
    return Markup('<svg class="strip" width="100%" height="{}" role="img" aria-label="{}">{}</svg>').format(
        height, escape(label), inner
    )
