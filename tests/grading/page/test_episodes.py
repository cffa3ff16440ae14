"""The page about the episodes of a training."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from grading.page.episodes import render_episodes
from tests.grading.page.browser import Browser
from tests.grading.page.pages import EVIL

BEGIN = datetime(2026, 3, 3, 12, tzinfo=UTC)


def episodes(count: int, competitions: int = 3, **fields: Any) -> pd.DataFrame:
    """Episodes whose rewards grow; every fifth one was abandoned."""
    draw = random.Random(0)
    rows = []
    for number in range(count):
        reward = None if number % 5 == 4 else min(max(draw.gauss(0.2 + 0.6 * number / count, 0.15), 0), 1)
        rows.append(
            {
                "episode_id": f"1f0c2b7a-{number:016x}",
                "competition_id": f"spaceship-titanic--rows200-seed{number % competitions}",
                "division": "train",
                "test_scores": False,
                "started_at": BEGIN + timedelta(minutes=number),
                "duration_seconds": 75.0,
                "steps": 12,
                "end": "abandoned" if reward is None else "submitted",
                "valid": None if reward is None else reward > 0,
                "reward": reward,
                "score": None if reward is None else 0.5 + reward / 2,
                "medal": "gold" if reward and reward > 0.9 else None,
                **fields,
            }
        )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.mark.service("chromium")
@pytest.mark.parametrize("width", [1400, 400])
def test_a_browser_shows_it_without_complaint_request_or_sideways_scrolling(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    rows = episodes(200)
    addresses = {name: f"file:///store/{name}.json" for name in rows["episode_id"]}
    (file := tmp_path / "curve.html").write_text(render_episodes(rows, "training", addresses), "utf-8")
    browser.open(file, width)
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:,")] == [file.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('.curves polyline').length") == 3
    browser.run("document.querySelector('#list th:nth-child(6) button').click()")
    assert browser.run("document.querySelector('#list tbody td:nth-child(6)').textContent") == "0.000"


def test_many_competitions_have_small_charts() -> None:
    assert render_episodes(episodes(200, competitions=8), "training", {}).count('<svg class="curves"') == 8


def test_scores_on_test_sets_are_told() -> None:
    assert "must not be reported" in render_episodes(episodes(20, test_scores=True), "training", {})
    assert "must not be reported" not in render_episodes(episodes(20), "training", {})
    assert "on which agents are evaluated" in render_episodes(episodes(20, division="eval"), "training", {})


@pytest.mark.parametrize("evil", EVIL)
def test_text_of_others_stays_text(evil: str) -> None:
    rows = episodes(20, competition_id=evil, end=evil, medal=evil)
    plain, found = render_episodes(episodes(20), "training", {}), render_episodes(rows, evil, {})
    for tag in ("<script", "<img", "<svg", "<b>"):
        assert found.count(tag) == plain.count(tag)
