"""The scenarios as a bar chart in SVG: wall time by scenario, with preparation in a second colour."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.simulation.results import Result, duration

_ROW, _LEFT, _WIDTH, _TOP = 24, 210, 760, 34
_STYLE = (
    "text { font: 13px sans-serif; fill: #333 } .prepare { fill: #d98e04 } .agents { fill: #2f6f9f }"
    " @media (prefers-color-scheme: dark) { text { fill: #ddd } }"
)


def picture(found: Sequence[Result]) -> str:
    """The chart as SVG text. Bars are to scale, from the start of the command to the report of the last machine."""
    longest = max(each.prediction.seconds for each in found)
    scale = (_WIDTH - _LEFT - 90) / longest
    height = _TOP + _ROW * len(found) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Wall time by machines and internet link</title><style>{_STYLE}</style>",
        f'<rect class="prepare" x="{_LEFT}" y="8" width="12" height="12"/>',
        f'<text x="{_LEFT + 18}" y="19">preparing</text>',
        f'<rect class="agents" x="{_LEFT + 110}" y="8" width="12" height="12"/>',
        f'<text x="{_LEFT + 128}" y="19">agents, grading, report</text>',
    ]
    for number, each in enumerate(found):
        y = _TOP + number * _ROW
        prepare = each.prediction.prepare_seconds * scale
        rest = each.prediction.seconds * scale - prepare
        machines = each.scenario.machines
        label = f"{machines} machine{'s' if machines > 1 else ''}, {each.scenario.uplink / 125e6:g} Gbit/s"
        parts += [
            f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="prepare" x="{_LEFT}" y="{y + 2}" width="{prepare:.1f}" height="16"/>',
            f'<rect class="agents" x="{_LEFT + prepare:.1f}" y="{y + 2}" width="{rest:.1f}" height="16"/>',
            f'<text x="{_LEFT + prepare + rest + 8:.1f}" y="{y + 14}">{duration(each.prediction.seconds)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
