"""The input of a page: what several sections show is computed once, and which models the runs of an agent called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from grading.page import Results, render_markdown, render_page, results
from grading.page.published import HEADER, published_rows
from tests.grading.page.pages import GRADES, RUNS, THRESHOLDS, graded, ran, snapshots


def test_a_page_and_its_summary_compute_what_both_show_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return whole(*args, **options)

        return counted

    for name in ("build_view", "pass_at", "learning", "rates_of"):
        monkeypatch.setattr(results, name, counting(name, getattr(results, name)))
    shown = Results(GRADES, RUNS, snapshots(("cactus", 1, 1.0, 0.9)), thresholds=THRESHOLDS)
    render_page(shown)
    render_markdown(shown)
    assert calls == {"build_view": 1, "pass_at": 1, "learning": 1, "rates_of": 2}, "by complexity and by category"


def test_results_that_are_counted_otherwise_are_computed_anew() -> None:
    unknown = pd.DataFrame([graded("cactus", 1, 0.95), graded("diabetes", 1, None, outcome="failed")])
    padded = Results(unknown, incomplete="fail")
    assert padded.aggregate().incomplete == "fail"
    excluded = replace(padded, incomplete="exclude")
    assert (excluded.aggregate().incomplete, padded.aggregate().incomplete) == ("exclude", "fail")
    assert replace(padded, grades=GRADES).view.competitions != padded.view.competitions


def test_the_published_row_names_the_models_that_the_agents_runs_called() -> None:
    agents = ("one", "two", "none")
    grades = pd.DataFrame([graded("cactus", 1, 0.95, agent=agent) for agent in agents])
    runs = pd.DataFrame([ran("cactus", 1, agent=agent) for agent in agents])
    names = dict(zip(agents, runs["run_id"], strict=True))
    calls = [("one", "small"), ("one", "large"), ("one", "small"), ("two", "<b>other</b>"), ("none", None)]
    usage = pd.DataFrame(
        [{"run_group": "g", "run_id": names[agent], "model": model} for agent, model in calls]
        + [{"run_group": "another", "run_id": names["one"], "model": "of another group"}]
    )
    shown = Results(grades, runs, usage=usage)
    rows = published_rows(shown.view, shown).rows
    assert {series.agent: cells[1] for series, cells in rows} == {
        "one": "large, small",
        "two": "<b>other</b>",
        "none": "–",
    }
    without = published_rows(shown.view, replace(shown, usage=None)).rows
    assert {cells[1] for _, cells in without} == {"–"}


def test_the_published_row_says_whether_an_agent_used_leaks() -> None:
    """That an edition has leaks is another column; only findings about leaks are meant."""
    agents = ("one", "two")
    grades = pd.DataFrame([graded("cactus", 1, 0.95, agent=agent) for agent in agents])
    runs = pd.DataFrame([ran("cactus", 1, agent=agent) for agent in agents])
    findings = pd.DataFrame(
        [
            {"run_group": "g", "run_id": run_id, "agent": agent, "rule": rule, "severity": "violation"}
            for agent, run_id, rule in zip(agents, runs["run_id"], ("leak", "network"), strict=True)
        ]
    )

    def leakage(**examined: pd.DataFrame) -> list[str]:
        shown = Results(grades, runs, examined=examined, leaks={("v1", "cactus"): ["labels"]})
        rows = published_rows(shown.view, shown).rows
        assert [cells[HEADER.index("Leaky competitions")] for _, cells in rows] == ["1 of 1 competition"] * 2
        return [cells[HEADER.index("Known leakage")] for _, cells in rows]

    examined = pd.DataFrame([{"run_group": "g", "stage": "violations"}])
    assert leakage(examinations=examined, violations=findings) == ["found in 1 run", "none found"]
    assert leakage(examinations=examined) == ["none found"] * 2
    assert leakage(examinations=examined.assign(stage="plagiarism")) == ["not examined"] * 2
    assert leakage() == ["not examined"] * 2


def test_names_in_the_published_row_have_no_markup() -> None:
    agent = "a\\|b ![p](http://evil.example/p.png) <img src=x>"
    shown = Results(
        pd.DataFrame([graded("cactus", 1, 0.95, agent=agent)]), pd.DataFrame([ran("cactus", 1, agent=agent)])
    )
    text = published_rows(shown.view, shown).markdown()
    assert type(text) is str, "a template escapes it"
    assert r"| a\\\|b `![p](http://evil.example/p.png)` &lt;img src=x&gt; " in text
    assert "<img" not in render_page(shown).split('<pre class="paste">')[1].split("</pre>")[0]
    assert "&amp;lt;img src=x" in render_page(shown)


def test_the_published_row_has_the_conditions_of_its_edition() -> None:
    grades = pd.DataFrame([graded("cactus", 1, 0.95, edition=edition) for edition in ("v1", "v2")])
    runs = pd.DataFrame([ran("cactus", 1, edition="v1"), {**ran("cactus", 1, edition="v2"), "run_id": "second"}])
    runs["time_limit_seconds"] = [3600.0, 7200.0]
    shown = Results(grades, runs)
    hours = {series.edition: cells[HEADER.index("Hours")] for series, cells in published_rows(shown.view, shown).rows}
    assert hours == {"v1": "1", "v2": "2"}
