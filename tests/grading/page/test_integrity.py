"""The page's section on integrity: present where something was examined, and nothing in it can break the page."""

from __future__ import annotations

import json
import math

import pandas as pd

from grading.page.integrity import integrity_section

EVIL = "</pre><script>alert(1)</script>\x1b[31m\u202e"
WHO = {"run_group": "g", "run_id": "g-x-0", "competition_id": "x", "seed": 0, "agent": "a"}


def pair(**fields: object) -> pd.DataFrame:
    matched = [{"file_line": 3, "file_text": f"a = 1{EVIL}", "other_line": 7, "other_text": "b = 1", "tokens": 9}]
    row = {**WHO, "file": "main.py", "other_kind": "kernel", "other": "someone/best", "url": "https://example.org"}
    row |= {"similarity": 0.81, "of_file": 0.9, "of_other": 0.7, "shared_tokens": 99, "fragments": 2, "flagged": True}
    return pd.DataFrame([{**row, "matched": json.dumps(matched), **fields}])


def finding(**fields: object) -> pd.DataFrame:
    row = {**WHO, "rule": "network", "severity": "violation", "file": "main.py", "line": 3}
    return pd.DataFrame(
        [{**row, "quote": f"import requests {EVIL}", "why": "imports requests", "by": "static", **fields}]
    )


def test_nothing_examined_is_no_section() -> None:
    assert integrity_section({}) == ""
    assert integrity_section({"plagiarism": pd.DataFrame(), "violations": pd.DataFrame()}) == ""


def test_fragments_stand_side_by_side() -> None:
    page = integrity_section({"plagiarism": pair()})
    assert "<strong>81 %</strong>" in page
    left, right = page.split('<div class="pair">')[1].split("</figure>")[:2]
    assert "main.py</bdi>, line 3" in left
    assert "someone/best</bdi>, line 7" in right
    assert "b = 1" in right
    assert "the longest 1 are shown" in page


def test_what_agents_wrote_is_escaped_and_cleaned() -> None:
    page = integrity_section({"plagiarism": pair(file=EVIL), "violations": finding(file=EVIL, why=EVIL, by=EVIL)})
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_a_pair_below_the_threshold_is_counted_only() -> None:
    page = integrity_section({"plagiarism": pair(flagged=False)})
    assert "1 pair of files shares something; 0 are" in page
    assert "someone/best" not in page


def test_findings_and_notices_are_apart() -> None:
    both = pd.concat([finding(), finding(severity="notice", rule="download", quote="load_dataset", line=0)])
    page = integrity_section({"violations": both})
    assert "1 run to look at" in page
    assert page.index("accesses the network") < page.index("Notices (1)") < page.index("load_dataset")


def test_examined_without_a_finding_is_said() -> None:
    row = {"run_group": "g", "stage": "violations", "runs": 4, "flagged": 0, "by": "static detectors", "at": "t"}
    assert "violations, 4 runs by <bdi>static detectors</bdi>, none to look at" in integrity_section(
        {"examinations": pd.DataFrame([row])}
    )


def test_familiarity_is_drawn_and_its_correlation_stated() -> None:
    rows = [
        {
            "competition_id": f"c{i}",
            "model": "m",
            "kind": "all",
            "mean_probability": 0.3 + i / 10,
            "human_percentile": y,
        }
        for i, y in enumerate([10.0, 60.0, math.nan])
    ]
    found = {"model": "m", "kind": "all", "n": 2, "pearson": 1.0, "pearson_low": math.nan, "pearson_high": math.nan}
    found |= {"spearman": -0.5, "spearman_low": -0.9, "spearman_high": 0.2}
    page = integrity_section({"familiarity": pd.DataFrame(rows), "familiarity_correlation": pd.DataFrame([found])})
    assert page.count('class="point"') == 2
    assert "c1: 0.400, better than 60 % of the teams" in page
    assert "−0.50" in page
    assert "−0.90 to +0.20" in page
    assert "nan" not in page.lower().replace("finan", "")


def test_sealed_runs_are_counted() -> None:
    runs = pd.DataFrame([{"ledger_head": "ab"}, {"ledger_head": None}])
    assert "1 of 2 runs have an evidence ledger" in integrity_section({"violations": finding()}, runs)
