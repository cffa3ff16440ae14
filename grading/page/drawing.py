"""Charts whose SVG is stretched to the width of the page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT = 1000.0, 260.0  # in the chart's own coordinates

_RULE = Markup('<line class="rule" x1="0" x2="{0:.0f}" y1="{1:.1f}" y2="{1:.1f}"/>')


def grid() -> list[Markup]:
    """Horizontal lines at every quarter of the height."""
    return [_RULE.format(WIDTH, HEIGHT * step / 4) for step in range(5)]


def chart(parts: Sequence[Markup], label: str, name: str, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    """An SVG element of class `name` with `parts` in it; `label` is read to users of screen readers."""
    return Markup(
        '<svg class="{}" viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(name, width, height, escape(label), Markup("").join(parts))
