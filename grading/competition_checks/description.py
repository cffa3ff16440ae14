"""What a competition's description says, compared with its facts, its sample submission and the template."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import competitions
from common.units import listed
from competitions.competition import Competition
from competitions.facts import CompetitionFacts

TEMPLATE = Path(competitions.__file__).parent / "template"

_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ELLIPSES = ("...", "…")
# What descriptions call common metrics; the names in a line mean the same one.
_METRICS = tuple(
    re.compile(rf"\b(?:{names})\b", re.IGNORECASE)
    for names in (
        "accuracy",
        "auc|area under",
        "average precision|map",
        "correlation",
        "dice",
        "f1",
        "kappa",
        "levenshtein|edit distance",
        "log ?loss|logarithmic loss|cross[- ]entropy",
        "mae|absolute error",
        "r?mse|squared (?:logarithmic )?error",
    )
)


def sections(text: str) -> dict[str, str]:
    """The text below each heading of the second level, by the heading."""
    parts = (part.partition("\n") for part in f"\n{text}".split("\n## ")[1:])
    return {heading.strip(): content for heading, _, content in parts}


def example_problems(
    submission: str, header: Sequence[str], is_valid: Callable[[Sequence[str]], bool] = lambda _: False
) -> Iterator[str]:
    """Yield a problem if the section about submissions has examples, and none of them has the sample's columns.

    `is_valid` says whether the sample submission with fewer columns, as an example has them, is valid.
    """
    found = [_columns(block) for block in _BLOCK.findall(submission)]
    if not found or any(_same(columns, header) for columns in found):
        return
    columns = found[0]
    if not (set(columns) <= set(header) and is_valid(columns)):
        yield (
            f"the example in description.md has the columns {listed(columns, 5)}, the sample submission "
            f"{listed(header, 5)}"
        )


def metric_problems(evaluation: str, competition: Competition) -> Iterator[str]:
    """Yield a problem if the section about evaluation names the other direction, or another metric."""
    metric, text = competition.facts.metric, evaluation.lower()
    other = {"higher": "lower", "lower": "higher"}[metric.direction]
    if f"{other} is better" in text and f"{metric.direction} is better" not in text:
        yield f"description.md says {other} is better, competition.yaml {metric.direction}"
    named, own = ([names for names in _METRICS if names.search(each)] for each in (evaluation, metric.name))
    if named and own and not set(named) & set(own):
        words = ", ".join(names.search(evaluation)[0] for names in named)  # type: ignore[index]
        yield f"description.md says the metric is {words}, competition.yaml {metric.name}"


def leftovers(competition: Competition, text: str, header: Sequence[str]) -> Iterator[str]:
    """Yield what a competition with other columns or another metric still has from the template."""
    template_text = (TEMPLATE / "description.md").read_text("utf-8")
    template, facts = _template_facts(), competition.facts
    gone = {*_columns(_BLOCK.findall(template_text)[0])} - {*header}
    if not gone and facts.metric == template.metric:
        return
    own_lines = set(text.splitlines())
    for line in template_text.splitlines():
        if line in own_lines and not line.startswith("#") and any(column in line for column in gone):
            yield f"description.md still has a line of the template: {line[:80]!r}"
    if facts.name == template.name:
        yield f"competition.yaml still has the template's name {facts.name!r}"
    if facts.leaderboard == template.leaderboard:
        yield "competition.yaml still has the template's leaderboard: state thresholds for your own scores"


@cache
def _template_facts() -> CompetitionFacts:
    import yaml

    return CompetitionFacts.model_validate(yaml.safe_load((TEMPLATE / "competition.yaml").read_text("utf-8")))


def _columns(block: str) -> list[str]:
    """The cells of the first line of an example."""
    return [cell.strip() for cell in next(csv.reader(block.splitlines()), [])]


def _same(columns: Sequence[str], header: Sequence[str]) -> bool:
    """Whether an example has the columns of the sample submission. An ellipsis stands for any number of them."""
    if not any(cell in _ELLIPSES for cell in columns):
        return sorted(columns) == sorted(header)
    return all(cell in header for cell in columns if cell not in _ELLIPSES)
