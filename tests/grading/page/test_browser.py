"""The page in a browser: whole, printed, light and dark, sorted and filtered."""

import base64
import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from common.units import parse_duration
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
    assert browser.run("document.querySelector('.curves polyline').getBoundingClientRect().width") > 180
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
    assert browser.run("getComputedStyle(document.querySelector('#matrix tfoot')).display") == "table-row-group"
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelector('#conditions').offsetHeight") > 0, "conditions are never left out"
    for hidden in ("nav", ".filters", "#submissions"):
        assert browser.run(f"document.querySelector('{hidden}').offsetHeight") == 0
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    closed = len(re.findall(rb"/Type\s*/Page\b", pdf))
    open_everything(browser)
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > closed + 2, "what is open is printed"


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
    times = [parse_duration(text) for text in browser.run(f"{column}(document.querySelector('#all'), 6)")]
    assert times == sorted(times)
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
    label = "getComputedStyle(document.querySelector('#cost .stack td:nth-child(3)'), '::before').content"
    assert browser.run(label) == '"Calls"', "a cell is labelled with the head of its column"


@pytest.mark.service("chromium")
@pytest.mark.parametrize("width", [400, 500, 760, 761, 1280])
def test_the_numbers_of_the_axis_stand_above_its_lines(browser: Browser, several: Path, width: int) -> None:
    browser.open(several, width)
    # The first and the last number are moved inwards, so that they stay in the page.
    off = """(() => {
      const ground = document.querySelector('tr[data-agent] .on .forest').getBoundingClientRect();
      return [...document.querySelectorAll('.headline .ticks span')].slice(1, -1).map((each) => {
        const box = each.getBoundingClientRect();
        return box.x + box.width / 2 - ground.x - ground.width * parseFloat(each.style.left) / 100;
      });
    })()"""
    found = browser.run(off)
    assert len(found) > 1
    assert max(map(abs, found)) < 1


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
    names = browser.run("[...document.querySelectorAll('#all tbody th')].map((cell) => cell.textContent)")
    assert "" not in names, "the file has the name of a competition once, the page in every row"
    browser.run("var box = document.querySelector('[data-filter=all]'); box.value = 'SILVER name-16'; undefined")
    browser.run("box.dispatchEvent(new Event('input'))")
    all_rows = "[...document.querySelectorAll('#all tbody tr')]"
    shown = f"{all_rows}.filter((row) => row.offsetHeight).map((row) => row.textContent)"
    rows = browser.run(shown)
    assert rows
    assert [row for row in rows if not ("silver" in row and "name-16" in row)] == []
    assert browser.run("document.getElementById('all-count').textContent").startswith(f"{len(rows)} of ")


AGENTS = (
    "[...document.querySelectorAll('tr[data-agent]')].filter((row) => row.offsetHeight).map((row) => row.dataset.agent)"
)
CARDS = "[...document.querySelectorAll('.comp')].filter((each) => !each.hidden).length"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "board.html"
    results = board(3, competitions=30, requests=2)
    path.write_text(render_page(replace(results, root="../..")), "utf-8")
    return path


def go(browser: Browser, path: Path, state: str = "") -> None:
    """Open a page anew, also if only what follows the # differs."""
    browser.open(path, 1280)
    if state:
        browser.run(f"location.hash = {state!r}")
        browser.wait_for(lambda: browser.run(f"location.hash.includes({state!r})"))
        browser.run("follow()")


@pytest.mark.service("chromium")
def test_a_chosen_split_ranks_the_agents_and_is_in_the_address(browser: Browser, several: Path) -> None:
    go(browser, several)
    shown = "[...document.querySelectorAll('tr[data-agent] td.rate.on')].map((cell) => +cell.dataset.v)"
    for split in ("low", "medium"):
        browser.run(f"document.querySelector('table.headline thead [data-split={split}] button').click()")
        rates = browser.run(shown)
        assert len(rates) == 3
        assert rates == sorted(rates, reverse=True)
    assert browser.run("location.hash") == "#figure=medium"
    order = browser.run(AGENTS)
    go(browser, several, "figure=medium")
    assert browser.run(AGENTS) == order
    assert browser.run("document.querySelectorAll('tr.reference').length") > 20
    assert browser.run("document.querySelector('tr.reference').offsetHeight") == 0, (
        "published agents are shown on demand"
    )
    browser.run("document.getElementById('published-rows').click()")
    assert browser.run("document.querySelector('tr.reference').offsetHeight") > 0
    assert "published=1" in browser.run("location.hash")


@pytest.mark.service("chromium")
def test_filters_hold_for_figures_and_tables_and_are_in_the_address(browser: Browser, several: Path) -> None:
    go(browser, several)
    whole = browser.run(CARDS)
    choose = "((name, value) => { const each = document.querySelector(`#filters [name=${name}]`); each.value = value; "
    choose += "each.dispatchEvent(new Event('change', {bubbles: true})); })"
    browser.run(f"{choose}('split', 'medium')")
    browser.run(f"{choose}('leaks', 'no')")
    browser.run("document.querySelector('#filters [name=agent]').click()")
    left, agents, state = browser.run(CARDS), browser.run(AGENTS), browser.run("location.hash")
    assert 0 < left < whole
    assert len(agents) == 2
    open_everything(browser)
    for table in ("#all", ".matrix"):
        rows = f"[...document.querySelectorAll('{table} tbody tr')].filter((row) => row.offsetHeight)"
        assert browser.run(f"{rows}.length") == left * (6 if table == "#all" else 1)
    assert browser.run("document.querySelectorAll('.curves [data-line].out').length") > 0
    assert "rates remain those of whole splits" in browser.run("document.getElementById('chosen').textContent")
    go(browser, several, state[1:])
    assert (browser.run(CARDS), browser.run(AGENTS)) == (left, agents)


@pytest.mark.service("chromium")
def test_a_cell_of_the_matrix_leads_to_its_run_and_its_files(browser: Browser, several: Path) -> None:
    go(browser, several)
    browser.run("document.querySelector('#matrix details').open = true")
    browser.run("document.querySelector('.matrix tbody .chip').click()")
    browser.wait_for(lambda: browser.run("document.querySelector('#all').offsetHeight"))
    row = "document.querySelector('#all tr:target')"
    assert browser.run(f"{row}.cells[0].textContent") == browser.run(
        "document.querySelector('.matrix tbody .id').textContent"
    )
    assert re.fullmatch(
        r"\.\./\.\./runs/[^/]+/[^/]+/\d/", browser.run(f"{row}.querySelector('a').getAttribute('href')")
    )


@pytest.mark.service("chromium")
def test_figures_are_copied_as_svg_and_tables_as_csv_and_markdown(browser: Browser, several: Path) -> None:
    go(browser, several)
    copy = "((text, within) => { const button = [...document.querySelector(within).parentElement.querySelectorAll("
    copy += (
        "'.copies button')].find((each) => each.textContent === text); button.click(); return button.dataset.copied; })"
    )
    for figure in ("figure.ranking .copies", ".figures .copies"):
        root = ElementTree.fromstring(browser.run(f"{copy}('Copy as SVG', '{figure}')"))
        texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert "tree-search" in " ".join(texts)
        assert not list(root.iter("{http://www.w3.org/2000/svg}use")), "nothing that is only in the page"
    rows = list(csv.DictReader(browser.run(f"{copy}('Copy as CSV', 'figure.ranking .copies')").splitlines()))
    assert {row["split"] for row in rows if row["agent"] == "tree-search"} == {"low", "medium", "all"}
    for row in rows:
        assert int(row["competitions"]) > 0
        assert row["seeds"] == "3"
        numbers = [float(row[name]) for name in ("both_low", "ci_low", "mean", "ci_high", "both_high")]
        assert numbers == sorted(numbers)
    table = browser.run(f"{copy}('Copy as Markdown', 'figure.ranking .copies')").splitlines()
    assert {line.count(" | ") for line in table[2:]} == {table[0].count(" | ")}
