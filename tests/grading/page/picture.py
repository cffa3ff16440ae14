"""The picture of a report in the README: `python -m tests.grading.page.picture` writes docs/report.png.

The report is made up: four agents over the 75 competitions of the benchmark with three seeds. The picture is the page
as a headless Chromium shows it, with the medal matrix open and without most of the other sections.
"""

from __future__ import annotations

import base64
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from grading.page import render_page
from tests.grading.page.board import board
from tests.grading.page.browser import Browser

PICTURE = Path(__file__).parents[3] / "docs" / "report.png"
_WIDTH, _HEIGHT = 1120, 1480
_MOMENT = datetime(2026, 3, 3, 12, tzinfo=UTC)


def main() -> None:
    """Write the picture."""
    results = replace(board(4, requests=2), incomplete="fail")
    names = {"agent": {"agent-with-a-rather-long-name": "reviewer"}}
    assert results.runs is not None
    runs = results.runs.replace(names).assign(hardware="Linux, 36 cores, NVIDIA A10")
    results = replace(results, grades=results.grades.replace(names), runs=runs)
    html = render_page(results, title="MLE-bench: four agents (made-up results)", generated_at=_MOMENT)
    PICTURE.write_bytes(picture(html, _HEIGHT))
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


def picture(html: str, height: int) -> bytes:
    """The upper `height` pixels of a page, as PNG: what a reader looks at first, without the tables between."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        path = Path(home) / "report.html"
        path.write_text(html, "utf-8")
        browser = Browser(Path(home))
        try:
            browser.open(path, _WIDTH)
            browser.run(_HIDE)
            clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height, "scale": 1}
            shot = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        finally:
            browser.close()
    return base64.b64decode(shot["data"])


# The order of the page is kept; only what a picture of this size has no room for is left out.
_HIDE = """
document.querySelector("#matrix details").open = true;
document.head.insertAdjacentHTML("beforeend", `<style>
section { padding-top: 26px !important; }
.screen, nav, #headline > :not(h2, .lead-in, figure), #figures > .lead-in, .figures > :nth-child(n+3), #time, #noise,
#generalisation, #contamination { display: none !important; }
</style>`); undefined
"""


if __name__ == "__main__":
    main()
