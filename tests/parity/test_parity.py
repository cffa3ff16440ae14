"""Edition v1 equals the published benchmark: prepared files byte by byte, scores to 1e-9, rejections as rejections."""

from __future__ import annotations

import math

import pytest

from competitions import registry
from grading import InvalidSubmission
from tests.parity.packs import tree
from tests.prepared import PreparedCompetitions

COMPETITIONS = [name for name in registry.list() if registry.get(name).facts.complexity != "demo"]


@pytest.mark.parametrize("competition_id", COMPETITIONS)
def test_equals_the_published_benchmark(competition_id: str, prepared: PreparedCompetitions) -> None:
    subject = prepared[competition_id]
    expected = subject.expected
    for part in ("public", "private"):
        wanted = {name: digest for name, digest in expected[part].items() if name != "description.md"}
        assert tree(subject.path / part, expected) == wanted, part

    differing = {}
    for name, want in expected["scores"].items():
        try:
            score: float | str = subject.competition.score(subject.submission(name), subject.answers)
        except InvalidSubmission as verdict:
            score = "rejected" if str(verdict) else "rejected without telling the agent what to mend"
        if not agrees(score, want, expected.get("absolute_tolerance", 1e-12)):
            differing[name] = (score, want)
    assert not differing


def agrees(score: float | str, want: dict, absolute: float) -> bool:
    """Whether a score is the recorded one; NaN equals NaN, and a crash there is a rejection here."""
    if want["error"] is not None or isinstance(score, str):
        return score == "rejected" and want["error"] is not None
    if math.isnan(score) or math.isnan(want["score"]):
        return math.isnan(score) and math.isnan(want["score"])
    return score == want["score"] or math.isclose(score, want["score"], rel_tol=1e-9, abs_tol=absolute)
