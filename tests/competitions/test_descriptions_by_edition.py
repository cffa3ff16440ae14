"""The description says what holds in the edition that the agent works on."""

from __future__ import annotations

import re

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.editions import EDITIONS, Edition, text_of

COMPETITIONS = [registry.get(name) for name in registry.list()]


def texts(competition: Competition, edition: Edition) -> list[str]:
    kinds = [False, True] if (competition.folder / "description_obfuscated.md").is_file() else [False]
    return [competition.describe(edition, obfuscated=kind) for kind in kinds]


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
@pytest.mark.parametrize("edition", EDITIONS)
def test_agents_read_of_no_edition_and_see_no_mark(competition: Competition, edition: Edition) -> None:
    for text in texts(competition, edition):
        assert not re.search(r"<!--|\bedition v\d|\bv[12]\b(?!\.)(?=[ ,:])", text)


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
def test_both_descriptions_differ_between_editions_or_neither(competition: Competition) -> None:
    differ = {old != new for old, new in zip(texts(competition, "v1"), texts(competition, "v2"), strict=True)}
    assert len(differ) == 1


def test_lines_between_marks_belong_to_one_edition() -> None:
    text = "first\n<!-- v1 -->\nold\n<!-- v2 -->\nnew\n<!-- both editions -->\nlast\n"
    assert text_of(text, "v1") == "first\nold\nlast\n"
    assert text_of(text, "v2") == "first\nnew\nlast\n"


@pytest.mark.parametrize(
    ("competition_id", "v1", "v2"),
    [
        ("facebook-recruiting-iii-keyword-extraction", "micro average", "averaged over all questions"),
        ("jigsaw-unintended-bias-in-toxicity-classification", "best decision threshold", "Only the order"),
        ("ranzcr-clip-catheter-line-classification", "not graded", "eleven labels"),
        ("tensorflow2-question-answering", "share of rows handled correctly", "TP = answers that are right"),
        ("predict-volcanic-eruptions-ingv-oe", "rounded to the nearest whole number", "Mean absolute error"),
    ],
)
def test_the_metric_is_that_of_the_edition(competition_id: str, v1: str, v2: str) -> None:
    cases: list[tuple[Edition, str, str | None]] = [("v1", v1, None), ("v2", v2, v1)]
    for edition, said, unsaid in cases:
        for text in texts(registry.get(competition_id), edition):
            assert said in text
            assert unsaid is None or unsaid not in text
