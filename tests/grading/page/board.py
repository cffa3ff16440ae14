"""Synthetic run groups of the size of the benchmark, with every table that the page shows.

    python -m tests.grading.page.board 12 page.html

writes the page of 12 agents over 75 competitions with three seeds, and prints its size and the time that it took. With
`--load`, a headless Chromium opens it ten times; printed is the shortest time from the start of the navigation to the
end of the load event (`PerformanceNavigationTiming.loadEventEnd`), because other work on the machine can only add time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from competitions import registry
from competitions.facts import CompetitionFacts
from grading.medals import Thresholds, medal_for
from grading.page import Results, render_page
from grading.page.results import ON_THE_WEB
from grading.report import GradedSubmission, Outcome, competition_report
from tests.grading.page.browser import Browser

NAMES = (*registry.list("low"), *registry.list("medium"), *registry.list("high"))
_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
_START = datetime(2026, 3, 1, tzinfo=UTC)
_LIMIT = 24 * 3600.0
_MODELS = ("model-large-2026-02-01", "model-small", "another-provider/model-with-a-long-name", "open-model-70b")
_AGENTS = ("tree-search", "plain-loop", "agent-with-a-rather-long-name", "ideas", "dummy", "kaggler")


def board(
    agents: int, competitions: int = 75, seeds: int = 3, requests: int = 40, feedback: Collection[int] = ()
) -> Results:
    """Results of `agents` agents: scores, failures, snapshots, `requests` requests to models a run, own scores, noise.

    Submissions are checked by the validation service, and models state cutoffs. The twelfth agent is the eleventh one
    with obfuscated descriptions. Agents with a number in `feedback` were told scores on 30 % of the test rows. The same
    numbers always give the same tables.
    """
    draw, known = np.random.default_rng(7), {name: registry.get(name).facts for name in NAMES}
    names = ("grades", "runs", "snapshots", "own", "validations", "noise", "files")
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    usage: list[pd.DataFrame] = []
    for agent, name, seed in itertools.product(range(agents), NAMES[:competitions], range(seeds)):
        run = _Run(agent, known[name], seed, draw)
        tables["runs"].append(run.row())
        tables["grades"].append(run.grade())
        tables["snapshots"] += run.snapshots()
        tables["own"] += run.own()
        tables["validations"] += run.validations()
        tables["noise"] += [run.noise()] if run.outcome == "valid" else []
        if agent in feedback:
            tables["files"] += run.give_feedback(tables["runs"][-1], tables["grades"][-1])
        usage.append(run.usage(requests))
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Results(
        frames["grades"],
        frames["runs"],
        frames["snapshots"],
        pd.concat(usage, ignore_index=True),
        own=frames["own"],
        public_scores=frames["files"] if feedback else None,
        validations=frames["validations"],
        noise=frames["noise"],
        examined=_examined(frames["runs"]),
        facts={name: {"complexity": each.complexity, "category": each.category} for name, each in known.items()},
        titles={name: each.name for name, each in known.items()},
        thresholds={name: Thresholds.of(each) for name, each in known.items()},
        percentiles={
            name: each.leaderboard.percentiles for name, each in known.items() if each.leaderboard.percentiles
        },
        ended={name: each.ended for name, each in known.items()},
        leaks={
            ("v1", name): [f"{issue.id}{ON_THE_WEB if issue.needs else ''}" for issue in each.leaks("v1")]
            for name, each in known.items()
        },
        split_sizes={split: len(registry.list(split)) for split in ("low", "medium", "high")},
    )


def _examined(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Findings in every 40th run, and a familiarity for every competition."""
    some = runs.iloc[::40][["run_group", "run_id", "competition_id", "seed", "agent"]]
    finding: dict[str, Any] = {"rule": "network", "severity": "violation", "file": "main.py", "line": 3}
    found: dict[str, Any] = {
        "file": "main.py",
        "other_kind": "kernel",
        "other": "someone/best",
        "url": "",
        "matched": "[]",
    }
    found |= {
        "similarity": 0.8,
        "of_file": 0.9,
        "of_other": 0.7,
        "shared_tokens": 99,
        "fragments": 2,
        "flagged": True,
    }
    names = sorted(set(runs["competition_id"]))
    chances = [0.3 + 0.005 * place for place in range(len(names))]
    measured = {"competition_id": names, "mean_probability": chances, "human_percentile": [100 * p for p in chances]}
    ends = {f"{kind}{end}": 0.1 for kind in ("pearson", "spearman") for end in ("", "_low", "_high")}
    correlation = {"model": "model-large", "kind": "all", "n": len(names), **ends, "pearson_p": 0.4, "spearman_p": 0.4}
    return {
        "violations": some.assign(**finding, quote="import requests", why="it imports requests", by="static"),
        "plagiarism": some.assign(**found),
        "familiarity": pd.DataFrame({**measured, "model": "model-large", "kind": "all", "texts": 3, "tokens": 999}),
        "familiarity_correlation": pd.DataFrame([correlation]),
    }


class _Run:
    """One made-up run: an agent has a skill, a competition an ease, and scores improve in the course of the run."""

    def __init__(self, agent: int, facts: CompetitionFacts, seed: int, draw: np.random.Generator) -> None:
        name = facts.id
        self.agent, self.name, self.seed, self.draw, self.facts = agent, name, seed, draw, facts
        self.limits, self.obfuscated = Thresholds.of(facts), agent == 11
        ease = ((NAMES.index(name) * 37) % 75) / 75 - 0.5
        skill = 0.55 + 0.06 * (agent % 6) + 0.3 * ease
        self.level = float(skill + 0.18 * draw.standard_normal())
        self.outcome: Outcome = draw.choice(["valid"] * 46 + ["invalid", "invalid", "missing", "failed"])
        self.seconds = float(min(_LIMIT, draw.uniform(1200, 1.3 * _LIMIT)))
        self.who = {"run_group": f"group-{agent}-of-march", "competition_id": name, "seed": seed}
        kind = _AGENTS[(agent - self.obfuscated) % 6]
        self.who |= {"run_id": f"{name}-{seed}-{agent:02d}", "agent": f"{kind}{'-v2' * (agent > 5)}"}

    def score(self, level: float) -> float:
        """The score at a level: 0 is below the median, 0.5 is the median, 1 is gold."""
        limits = self.limits
        gap = limits.gold - limits.median
        return float(round(limits.median + (level - 0.5) * 2 * gap, 5))

    def give_feedback(self, run: dict[str, Any], grade: dict[str, Any], most: int = 6) -> Iterator[dict[str, Any]]:
        """Files with a public score, the last two of which are chosen; the run and its grade are changed to match."""
        draw = np.random.default_rng([self.agent, self.seed, NAMES.index(self.name)])
        sign = -1 if self.limits.lower_is_better else 1
        run |= {"feedback": 0.3, "feedback_calls_per_day": 5, "public_score_calls": most}
        grade["feedback"] = 0.3
        if grade["outcome"] != "valid":
            return
        files: list[dict[str, Any]] = []
        for number in range(1, most + 1):
            level = self.level - 0.1 + 0.02 * number + 0.04 * draw.standard_normal()
            scores = self.score(level + 0.01 * number + 0.06 * draw.standard_normal()), self.score(level)
            files.append(
                {"submission": number, "public_score": scores[0], "score": scores[1], "chosen": number > most - 2}
            )
        for file in files:
            file["told"] = sign * max(sign * each["public_score"] for each in files[: file["submission"]])
        counted = max(files[-2:], key=lambda file: sign * file["score"])
        grade |= {"score": counted["score"], "public_score": counted["public_score"]}
        medal = medal_for(counted["score"], self.limits)
        grade |= {
            "any_medal": medal is not None,
            **{f"{kind}_medal": medal == kind for kind in ("gold", "silver", "bronze")},
        }
        for file in files:
            facts = {"edition": "v1", "at_seconds": self.seconds * file["submission"] / most, "valid_submission": True}
            yield {**self.who, **facts, **file, "any_medal": medal_for(file["score"], self.limits) is not None}

    def row(self) -> dict[str, Any]:
        """The row of `runs`."""
        ended = "timeout" if self.seconds == _LIMIT else "completed"
        begun = _START + timedelta(hours=3 * self.seed)
        return {
            **self.who,
            "edition": "v1",
            "backend": "docker",
            "network": "gateway",
            "status": "crashed" if self.outcome == "missing" else ended,
            "message": "the agent ended with exit code 1" if self.outcome == "missing" else None,
            "exit_code": 0,
            "started_at": begun.isoformat(),
            "finished_at": (begun + timedelta(seconds=self.seconds)).isoformat(),
            "duration_seconds": self.seconds,
            "submission_exists": self.outcome != "missing",
            "time_limit_seconds": _LIMIT,
            "obfuscated": self.obfuscated,
            "knowledge_cutoff": None if self.agent % 4 == 3 else f"20{19 + self.agent % 4}-06",
            "code_fingerprint": f"{self.agent:08x}",
            "cpus": 36,
            "memory_bytes": 440 << 30,
            "gpus": 1,
            "hardware": "Linux, 36 cores, NVIDIA A10" if self.agent % 3 else "Linux, 64 cores, NVIDIA H100",
        }

    def grade(self) -> dict[str, Any]:
        """The row of `grades`."""
        made = self.outcome == "valid"
        report = competition_report(
            self.name,
            self.score(self.level) if made else None,
            self.limits,
            submission_path="submission.csv",
            submission_exists=self.outcome != "missing",
            created_at=_START,
        )
        why = {
            "invalid": "column 'id' is missing",
            "failed": "Traceback: KeyError: 'label'",
            "missing": "none was left",
        }
        facts: dict[str, Any] = {"edition": "v1", "complexity": self.facts.complexity, "category": self.facts.category}
        who: dict[str, Any] = {name: value for name, value in self.who.items() if name != "competition_id"}
        return GradedSubmission(report, self.outcome, why.get(self.outcome), **who, **facts).to_row()

    def snapshots(self, most: int = 8) -> Iterator[dict[str, Any]]:
        """Rows of `snapshots`: ever better, unless the agent chose badly."""
        for place in range(0 if self.outcome == "missing" else most):
            share = (place + 1) / most
            score = self.score(self.level * share**0.2 + 0.03 * self.draw.standard_normal())
            medal = medal_for(score, self.limits)
            flags = {f"{kind}_medal": medal == kind for kind in ("gold", "silver", "bronze")}
            yield {
                **self.who,
                "edition": "v1",
                "at_seconds": self.seconds * share**1.5,
                "score": score,
                "any_medal": medal is not None,
                **flags,
                "above_median": (score > self.limits.median) != self.limits.lower_is_better,
                "valid_submission": True,
                "outcome": "valid",
            }

    def own(self, most: int = 8) -> Iterator[dict[str, Any]]:
        """Rows of `own_validations`: agents of even number report, too well."""
        for place in range(0 if self.agent % 2 or self.outcome == "missing" else most):
            share = (place + 1) / most
            level = self.level * share**0.2 + 0.1 + 0.04 * self.draw.standard_normal()
            yield {
                **self.who,
                "at_seconds": self.seconds * share**1.5 + 1,
                "own_score": self.score(level),
                "submitted": place % 3 != 1,
                "name": f"candidate {place}",
            }

    def validations(self, most: int = 12) -> Iterator[dict[str, Any]]:
        """Rows of `validations`: of every third agent, none."""
        for place in range(0 if self.agent % 3 == 2 else most - self.seed):
            at = self.seconds * (place + 1) / most
            yield {**self.who, "at_seconds": at, "verdict": "valid" if place else "invalid"}

    def noise(self) -> dict[str, Any]:
        """The row of `split_noise`."""
        known = self.name != "vesuvius-challenge-ink-detection"
        luck = float(1 / (1 + math.exp(-12 * (self.level - 0.85)))) if known else math.nan
        chances = {f"{kind}_probability": luck for kind in ("any_medal", "silver_medal", "bronze_medal")}
        return {
            **self.who,
            "edition": "v1",
            "score": self.score(self.level),
            "standard_error": abs(self.limits.gold - self.limits.median) / 10 if known else math.nan,
            **chances,
            "gold_medal_probability": luck / 3,
            "above_median_probability": min(1.0, luck + 0.2),
            "units": 1000 if known else None,
            "halves": 100,
            "message": None if known else "the test set has one unit",
        }

    def usage(self, requests: int) -> pd.DataFrame:
        """Rows of `usage`."""
        at = [_START + timedelta(hours=3 * self.seed, seconds=self.seconds * n / requests) for n in range(requests)]
        return pd.DataFrame(
            {
                **{name: self.who[name] for name in ("run_group", "run_id", "competition_id", "seed")},
                "model": _MODELS[self.agent % 4],
                "input_tokens": self.draw.integers(2_000, 40_000, requests),
                "output_tokens": self.draw.integers(100, 4_000, requests),
                "cost_usd": self.draw.uniform(0.01, 0.3, requests),
                "latency_seconds": 5.0,
                "started_at": [moment.isoformat() for moment in at],
                "status": "ok",
            }
        )


def main() -> None:
    """Write a page, and say how large it is and how long it took."""
    parser = argparse.ArgumentParser(prog="python -m tests.grading.page.board", description=__doc__)
    parser.add_argument("agents", type=int)
    parser.add_argument("page", type=Path)
    parser.add_argument("--competitions", type=int, default=75)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--load", action="store_true")
    chosen = parser.parse_args()
    results = board(chosen.agents, chosen.competitions, chosen.seeds)
    before = time.process_time()
    html = render_page(results)
    print(f"{len(html.encode()):,} bytes in {time.process_time() - before:.1f} s of processor time")
    chosen.page.write_text(html, "utf-8")
    if chosen.load:
        print(f"loads in {loading_time(chosen.page.resolve()):.0f} ms")


def loading_time(page: Path, width: int = 1280, times: int = 10) -> float:
    """Milliseconds until a headless Chromium has loaded a page, the least of several times."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = Browser(Path(home))
        try:
            found = []
            for _ in range(times):
                browser.open(page, width)
                browser.wait_for(lambda: browser.run(f"{_LOADED} > 0"))
                found.append(float(browser.run(_LOADED)))
        finally:
            browser.close()
    return min(found)


if __name__ == "__main__":
    main()
