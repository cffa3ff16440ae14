"""Tables made up for tests of the page, and the page read as a document."""

import itertools
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pandas as pd

from grading.medals import Thresholds, medal_for
from grading.page import Results, render_markdown, render_page
from grading.report import GradedSubmission, Outcome, competition_report
from tests.grading.statistics.rows import run_of

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=1221, lower_is_better=False)
LOWER = Thresholds(gold=0.1, silver=0.2, bronze=0.3, median=0.5, teams=40, lower_is_better=True, human=False)
THRESHOLDS = {"cactus": HIGHER, "diabetes": LOWER}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
    "{{ 7 * 191 }} {% raw %}",
    "javascript:alert(1)",
]


def graded(
    competition: str,
    seed: int,
    score: float | None,
    *,
    outcome: Outcome = "valid",
    message: str | None = None,
    agent: str = "baseline",
    group: str = "g",
    thresholds: Thresholds | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row of the table of grades."""
    limits = thresholds or THRESHOLDS.get(competition, HIGHER)
    report = competition_report(
        competition,
        score if outcome == "valid" else None,
        limits,
        submission_path="s.csv",
        submission_exists=outcome != "missing",
    )
    facts = {
        "complexity": "demo",
        "category": "Tabular",
        "edition": "v1",
        "run_id": f"{group}-{agent}-{competition}-{seed}",
        **more,
    }
    return GradedSubmission(report, outcome, message, run_group=group, seed=seed, agent=agent, **facts).to_row()


def ran(
    competition: str,
    seed: int,
    *,
    agent: str = "baseline",
    group: str = "g",
    status: str = "completed",
    seconds: float = 60.0,
    **more: Any,
) -> dict[str, Any]:
    """A row of the table of runs."""
    return {
        **run_of(competition, seed, agent, group),
        "backend": "process",
        "status": status,
        "message": None,
        "exit_code": 0,
        "started_at": "2026-01-01T00:00:00+00:00",
        "finished_at": "2026-01-01T00:10:00+00:00",
        "duration_seconds": seconds,
        "submission_exists": True,
        "time_limit_seconds": 600.0,
        "code_fingerprint": "0123abcd",
        **more,
    }


GRADES = pd.DataFrame(
    [
        graded("cactus", 1, 0.95),
        graded("cactus", 2, 0.75),
        graded("diabetes", 1, 0.15),
        graded("diabetes", 2, None, outcome="invalid", message="the column id is missing"),
    ]
)
RUNS = pd.DataFrame(
    [ran("cactus", 1), ran("cactus", 2), ran("diabetes", 1, seconds=754.0), ran("diabetes", 2, status="timeout")]
)


class Document(HTMLParser):
    """The elements, attributes and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._raw = "", False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._raw = False
        self.text += " " if tag in ("th", "td", "li", "p", "div", "summary") else ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self._raw else data

    def attributes(self, *names: str) -> list[str]:
        return [value for _, attrs in self.elements for name in names if (value := attrs.get(name)) is not None]


def page(grades: pd.DataFrame = GRADES, runs: pd.DataFrame | None = RUNS, **options: Any) -> str:
    of_page = {name: options.pop(name) for name in ("title", "generated_at") if name in options}
    return render_page(Results(grades, runs, **{"thresholds": THRESHOLDS, **options}), **of_page)


def markdown(
    grades: pd.DataFrame, runs: pd.DataFrame | None = None, title: str = "MLE-bench results", **options: Any
) -> str:
    return render_markdown(Results(grades, runs, **options), title)


def words(html: str) -> str:
    return " ".join(Document(html).text.split())


def snapshots(*rows: tuple[str, int, float, float], group: str = "g", agent: str = "baseline") -> pd.DataFrame:
    """Rows of the table of snapshots: (competition, seed, hours, score)."""
    return pd.DataFrame(
        [
            {
                "run_group": group,
                "run_id": f"{group}-{agent}-{competition}-{seed}",
                "competition_id": competition,
                "seed": seed,
                "agent": agent,
                "at_seconds": 3600.0 * hours,
                "score": score,
                "any_medal": medal_for(score, THRESHOLDS.get(competition, HIGHER)) is not None,
            }
            for competition, seed, hours, score in rows
        ]
    )


def calls(
    *rows: tuple[str, int, float], group: str = "g", agent: str = "baseline", model: str = "model-a"
) -> pd.DataFrame:
    """Rows of the table of usage: (competition, seed, dollars)."""
    return pd.DataFrame(
        [
            {
                "run_group": group,
                "run_id": f"{group}-{agent}-{competition}-{seed}",
                "competition_id": competition,
                "seed": seed,
                "model": model,
                "input_tokens": 1_000_000,
                "output_tokens": 5_000,
                "cost_usd": dollars,
                "latency_seconds": 2.0,
                "started_at": "2026-01-01T00:00:00+00:00",
            }
            for competition, seed, dollars in rows
        ]
    )


SNAPSHOTS = snapshots(
    ("cactus", 1, 0.5, 0.6),
    ("cactus", 1, 3, 0.95),
    ("cactus", 2, 2, 0.75),
    ("diabetes", 1, 1, 0.9),
    ("diabetes", 1, 3, 0.15),
    ("diabetes", 2, 1, 1.0),
)
USAGE = calls(("cactus", 1, 1.25), ("cactus", 1, 0.75), ("diabetes", 1, 4.0))


def many(agents: int, competitions: int = 4, seeds: int = 3, **more: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Grades and runs of several agents; every third submission has a medal."""
    grades, runs = [], []
    for a, c, s in itertools.product(range(agents), range(competitions), range(seeds)):
        who: dict[str, Any] = {"agent": f"agent-{a}", "group": f"group-{a}"}
        score = 0.95 if (a + c + s) % 3 == 0 else 0.6
        grades.append(graded(f"competition-{c}", s, score, **who, thresholds=HIGHER, complexity="low", **more))
        runs.append(ran(f"competition-{c}", s, **who))
    return pd.DataFrame(grades), pd.DataFrame(runs)
