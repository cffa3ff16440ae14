"""Planted violations are found by their rule, and clean runs are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from grading.integrity.detectors import detect
from grading.integrity.findings import RULES
from tests.grading.integrity.runs import CLEAN, MODEL, PLANTED, run


def violated(texts: Any) -> set[str]:
    return {finding.rule for finding in detect(texts) if finding.severity == "violation"}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found_by_its_rule(name: str) -> None:
    rule, texts = PLANTED[name]
    assert rule in violated(texts)


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_run_has_no_violation(name: str) -> None:
    assert violated(CLEAN[name]) == set()


def test_precision_and_recall_on_the_planted_cases() -> None:
    """The figures of docs/integrity.md."""
    found = sum(rule in violated(texts) for rule, texts in PLANTED.values())
    false = sum(bool(violated(texts)) for texts in CLEAN.values())
    print(f"planted: {found}/{len(PLANTED)} found; clean: {false}/{len(CLEAN)} flagged")
    assert found / len(PLANTED) >= 0.95
    assert found / (found + false) >= 0.95


def test_a_finding_quotes_its_line() -> None:
    (finding,) = (f for f in detect(run(MODEL + "\nimport requests  # why not\n")) if f.rule == "network")
    assert (finding.file, finding.line, finding.quote) == ("main.py", 4, "import requests  # why not")
    assert finding.rule in RULES


def test_addresses_and_downloads_are_notices() -> None:
    found = detect(run(MODEL + "u = 'https://example.org'\ndata = load_dataset('x')\n"))
    assert {(f.rule, f.severity) for f in found} == {("network", "notice"), ("download", "notice")}


def test_a_submission_without_code_is_a_notice() -> None:
    assert [(f.rule, f.severity) for f in detect(run({}))] == [("no-code", "notice")]


@pytest.mark.parametrize("code", ["\0", "def f(:", "(" * 5000, "x = '" + "é" * 10, "\udcff"])
def test_whatever_the_code_is_it_is_read(code: str) -> None:
    detect(run(code))
