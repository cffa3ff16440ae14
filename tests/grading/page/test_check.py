"""The page of `mlebench check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from grading.competition_checks.run import Result, measured_of, pass_gate
from grading.medals import Thresholds
from grading.page.check import render_check
from grading.page.check_charts import distribution, score_chart
from tests.grading.page.browser import Browser
from tests.grading.page.pages import EVIL
from tests.prepared import PreparedCompetitions

GATES = ("chance", "features", "metadata", "scale", "noise")


def page(prepared: PreparedCompetitions, competition_id: str, *further: Result) -> str:
    found = prepared[competition_id]
    measured = measured_of(found.competition, found.path, "v1")
    return render_check(measured, [*further, *(pass_gate(name, measured) for name in GATES)])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.mark.service("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("competition_id", ["diabetes", "digits"])
def test_a_browser_shows_it_on_one_screen(
    competition_id: str, scheme: str, prepared: PreparedCompetitions, browser: Browser, tmp_path: Path
) -> None:
    (file := tmp_path / "check.html").write_text(page(prepared, competition_id), "utf-8")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(file, 1440)
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [file.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= 1440
    assert browser.run("document.documentElement.scrollHeight") <= 1200
    sections = ["checks", "scores", "target", "skills"]
    assert browser.run("[...document.querySelectorAll('section[id]')].map(s => s.id).sort()") == sorted(sections)
    images = browser.run("[...document.images].filter(image => image.naturalWidth > 0).length")
    assert images == (16 if competition_id == "digits" else 0)
    assert (
        browser.run("getComputedStyle(document.body).backgroundColor")
        == {
            "light": "rgb(255, 255, 255)",
            "dark": "rgb(20, 23, 28)",
        }[scheme]
    )


@pytest.mark.service("chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_hostile_and_long_words_stay_inside(
    width: int, prepared: PreparedCompetitions, browser: Browser, tmp_path: Path
) -> None:
    words = Result("gold", "w" * 400, "failed", (*EVIL, "w" * 400))
    columns = Result("features", "about", "ok", figures={"x" * 90: 0.5, EVIL[0]: 0.2})
    (file := tmp_path / "check.html").write_text(page(prepared, "diabetes", words, columns), "utf-8")
    browser.open(file, width)
    assert browser.complaints == []
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_problems_stand_first_and_foreign_text_is_escaped(prepared: PreparedCompetitions) -> None:
    fine, wrong = Result("facts", "about", "ok"), Result("gold", "about", "failed", tuple(EVIL))
    text = page(prepared, "diabetes", fine, wrong)
    assert not [foreign for foreign in EVIL if "<" in foreign and foreign in text]
    assert text.index(">gold<") < text.index(">facts<")


def test_a_page_without_tables_has_the_checks(prepared: PreparedCompetitions) -> None:
    """Its rows are identified by two columns."""
    text = page(prepared, "detecting-insults-in-social-commentary")
    assert 'id="checks"' in text
    assert 'id="target"' not in text


def test_scores_that_are_no_numbers_or_far_away_stay_in_the_chart() -> None:
    thresholds = Thresholds(0.1, 0.2, 0.3, 0.5, teams=9, lower_is_better=True)
    chart = score_chart({"right": float("-inf"), "sample": 1e9, "baseline": 0.2}, thresholds, 40.0)
    places = [float(text.split('"')[0]) for text in str(chart).split('cx="')[1:]]
    assert min(places) >= 100
    assert max(places) <= 400
    assert places == sorted(places, reverse=True)  # better to the right, the best first


def test_distributions_of_numbers_of_classes_and_of_texts() -> None:
    numbers = list(map(str, range(100)))
    assert "polyline" in str(distribution(numbers, numbers[:50]))
    assert "75% / 50%" in str(distribution(["a", "a", "a", "b"], ["a", "b"]))
    assert distribution([f"text {n}" for n in numbers], [f"other {n}" for n in numbers]) is None
    assert "12 others" in str(distribution([chr(65 + n % 22) for n in range(220)], pd.Series(["A"]).tolist()))
