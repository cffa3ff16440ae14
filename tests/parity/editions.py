"""Where the editions differ, so that tests look at both."""

from __future__ import annotations

from typing import Literal

from competitions.competition import Competition


def fixed_in_v2(competition: Competition, part: Literal["prepare", "grade"]) -> bool:
    """Whether v2 fixes a known issue of this part, so that it differs from v1 there."""
    return any(issue.v2 == "fixed" and part in issue.affects for issue in competition.facts.known_issues)
