"""The page in a browser: whole, printed, light and dark, sorted and filtered."""

import base64
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from grading.page import render_page
from grading.words import KIND_GLYPHS
from tests.grading.page.board import board
from tests.grading.page.browser import Browser
from tests.grading.page.pages import EVIL, RUNS, calls, graded, page, snapshots

PREFERS_DARK = {"name": "prefers-color-scheme", "value": "dark"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    grades = [
        graded(f"a-rather-long-competition-name-{n}", s, 0.05 * n + s / 100) for n in range(20) for s in (1, 2, 3)
    ]
    grades += [graded("evil", 1, None, outcome="invalid", message=text, agent=text) for text in EVIL]
    path = tmp_path / "report.html"
    names = [f"a-rather-long-competition-name-{n}" for n in range(20)]
    times = [(name, s, hours, 0.04 * hours) for name in names for s in (1, 2, 3) for hours in (0.5, 3, 20)]
    options = {"snapshots": snapshots(*times), "usage": calls(*((name, 1, 0.5) for name in names))}
    points = {name: [1 - n / 20 for n in range(21)] for name in ("cactus", *names)}
    path.write_text(page(pd.DataFrame(grades), RUNS, percentiles=points, **options), "utf-8")
    return path


def open_everything(browser: Browser) -> None:
    """Lay out what is folded in or out of sight as well."""
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    style = "<style>* { content-visibility: visible !important }</style>"
    browser.run(f"document.head.insertAdjacentHTML('beforeend', '{style}')")


@pytest.mark.service("chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_complaint_request_or_sideways_scrolling(
    browser: Browser, file: Path, width: int
) -> None:
    browser.open(file, width)
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:,")] == [file.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('#matrix .chip.gold').length") > 0
    assert browser.run("document.querySelector('.rates-over-time polyline').getBoundingClientRect().width") > width / 2
    sizes = "[...document.querySelectorAll('td, th, p, .label')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
    assert browser.run(f"Math.min(...{sizes})") >= 12


@pytest.mark.service("chromium")
def test_a_browser_prints_it_with_heads_on_every_page(browser: Browser, file: Path) -> None:
    browser.open(file, 1280)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[PREFERS_DARK])
    # Chromium repeats the text of a head where a table goes on, but nothing that is a box of its own.
    kinds = "[...document.querySelectorAll('thead button')].map((head) => getComputedStyle(head).display)"
    assert set(browser.run(kinds)) == {"contents"}
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white"
    for hidden in ("nav", ".filter"):
        assert browser.run(f"document.querySelector('{hidden}').offsetHeight") == 0
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 3


@pytest.mark.service("chromium")
def test_a_browser_shows_it_light_and_dark(browser: Browser, file: Path) -> None:
    browser.open(file, 1280)
    seen = {}
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{**PREFERS_DARK, "value": scheme}])
        for what in ("color", "backgroundColor"):
            seen[scheme, what] = browser.run(f"getComputedStyle(document.body).{what}")
    browser.call("Emulation.setEmulatedMedia", features=[])
    luminance = {key: sum(map(int, re.findall(r"\d+", value)[:3])) for key, value in seen.items()}
    assert luminance["light", "backgroundColor"] > 700 > 200 > luminance["light", "color"]
    assert luminance["dark", "backgroundColor"] < 200 < 600 < luminance["dark", "color"]


@pytest.mark.service("chromium")
def test_a_page_of_twelve_agents_over_the_whole_benchmark_is_small_and_sorted(browser: Browser, tmp_path: Path) -> None:
    """`python -m tests.grading.page.board 12 page.html --load` says how long it takes to load."""
    path = tmp_path / "board.html"
    path.write_text(render_page(board(12, requests=2)), "utf-8")
    assert path.stat().st_size < 2_000_000
    for width in (1280, 390):
        browser.open(path, width)
        assert browser.complaints == []
        assert browser.run("document.documentElement.scrollWidth") <= width
    browser.open(path, 1280)
    open_everything(browser)
    boxes = "[...document.querySelectorAll('main .scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
    assert browser.run(f"{boxes}.map((box) => box.firstChild.tHead.textContent)") == [], "tables cut off at the right"
    twice = """[...document.querySelectorAll('main table.paper, main table.plain')].map((table) =>
      [...table.tHead.rows[0].cells].map((cell) => cell.textContent)).filter((names) =>
      new Set(names).size < names.length)"""
    assert browser.run(twice) == [], "columns with the same heading"
    tables = "[...document.querySelectorAll('main table:not(.conditions, .seeds)')]"
    assert browser.run(f"{tables}.filter((table) => !table.querySelector('thead button')).length") == 0
    # Cells such as "208 of 225", "27.3 ± 5.3", "1,664", "$12.50" and "16 h 29 min" are sorted as numbers.
    column = """((table, column) => {
      table.tHead.rows[table.tHead.rows.length - 1].cells[column].firstChild.click();
      return [...table.tBodies[0].rows].map((row) => row.cells[column].textContent);
    })"""
    number = re.compile(r"[$]?(-?[\d,.]+)")
    for table, place in (("#noise table", 1), ("#generalisation table", 2), ("#time table", 4), ("#cost .rates", 5)):
        texts = browser.run(f"{column}(document.querySelector('{table}'), {place})")
        found = [float(match[1].replace(",", "")) for text in texts if (match := number.match(text))]
        assert found == sorted(found), table
        assert len(set(found)) > 2, table
    ranks = browser.run(f"{column}(document.querySelector('.matrix'), 2)")
    assert [mark for mark, _ in itertools.groupby(ranks)] == [m for m in KIND_GLYPHS.values() if m in ranks]


@pytest.mark.service("chromium")
def test_nothing_is_cut_off_or_printed_over_on_a_narrow_screen(browser: Browser, tmp_path: Path) -> None:
    """The labels of five agents, one of which has a long name, and every figure of a submission."""
    path = tmp_path / "board.html"
    path.write_text(render_page(board(5, competitions=6, requests=2)), "utf-8")
    browser.open(path, 390)
    open_everything(browser)
    wide = "filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)"
    assert browser.run(f"[...document.querySelectorAll('.stack td')].{wide}") == []
    boxes = "[...document.querySelectorAll('main .scroll')].filter((box) => !box.querySelector('.matrix, .conditions'))"
    assert browser.run(f"{boxes}.{wide}") == [], "the medal matrix and the conditions scroll below fixed names"


@pytest.mark.service("chromium")
def test_a_browser_sorts_and_filters_tables(browser: Browser, file: Path) -> None:
    browser.open(file, 1280)
    column = "[...document.querySelectorAll('#all tbody tr')].map((row) => row.cells[4].textContent)"
    button = "document.querySelectorAll('#all thead button')[4]"
    for order in (1, -1):
        browser.run(f"{button}.click()")
        scores = [float(text) for text in browser.run(column) if text != "–"]
        assert scores == sorted(scores, reverse=order < 0)
        assert browser.run(column)[-1] == "–"  # what has no score comes last either way
    heads = browser.run("[...document.querySelectorAll('table.headline thead button')].map((each) => each.textContent)")
    assert heads[0] == "Agent"
    for _ in range(2):
        browser.run("document.querySelectorAll('table.headline thead button')[1].click()")
    first = browser.run("document.querySelector('table.headline thead [aria-sort]').getAttribute('aria-sort')")
    assert first == "descending"
    browser.run("var box = document.querySelector('[data-filter=all]'); box.value = 'SILVER name-16'; undefined")
    browser.run("box.dispatchEvent(new Event('input'))")
    all_rows = "[...document.querySelectorAll('#all tbody tr')]"
    shown = f"{all_rows}.filter((row) => row.offsetHeight).map((row) => row.textContent)"
    rows = browser.run(shown)
    assert rows
    assert [row for row in rows if not ("silver" in row and "name-16" in row)] == []
    assert browser.run("document.getElementById('all-count').textContent").startswith(f"{len(rows)} of ")
    browser.run("box = document.querySelector('[data-filter=cards]'); box.value = 'name-16'; undefined")
    browser.run("box.dispatchEvent(new Event('input'))")
    cards = "[...document.querySelectorAll('#cards article')].filter((card) => card.offsetHeight).length"
    assert browser.run(cards) == 1
