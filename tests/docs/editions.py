"""The tables of docs/known_issues.md, from the facts of the competitions.

`python -m tests.docs.editions` brings them up to date. What precedes the line BEGIN is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from competitions import registry
from competitions.facts import OTHER_COLUMNS, CompetitionFacts, KnownIssue, SubmittedColumn

DOCUMENT = Path(__file__).parents[2] / "docs" / "known_issues.md"
BEGIN = "<!-- generated from competition.yaml files by python -m tests.docs.editions -->"


def tables() -> str:
    """What follows BEGIN: submissions, comparability, then all issues."""
    facts = [registry.get(name).facts for name in registry.list()]
    return "\n".join([*submissions(facts), "", *comparability(facts), "", *issues(facts), ""])


def submissions(facts: list[CompetitionFacts]) -> list[str]:
    """A row for each competition: what v2 requires of each column."""
    head = ["## Columns of submissions in v2", "", "| competition | ids | other columns |", "|---|---|---|"]
    return [*head, *(f"| {each.id} | {_ids(each)} | {_predictions(each)} |" for each in facts)]


def _ids(facts: CompetitionFacts) -> str:
    return ", ".join(f"`{name}`" for name, column in facts.submission.items() if column.values == "id")


def _predictions(facts: CompetitionFacts) -> str:
    """Columns with the same requirement together."""
    names: dict[str, list[str]] = {}
    for name, column in facts.submission.items():
        if column.values != "id":
            names.setdefault(_required(column), []).append("each other" if name == OTHER_COLUMNS else f"`{name}`")
    return "; ".join(f"{', '.join(each)}: {what}" for what, each in names.items())


def _required(column: SubmittedColumn) -> str:
    words = {"class": "a class", "text": "text", "format": "as described", "any": "not read"}
    what = words.get(column.values, f"a {column.values}")
    if column.low is not None:
        what += (
            f" from {column.low:g} to {column.high:g}" if column.high is not None else f" of at least {column.low:g}"
        )
    what += ", or empty" if column.empty else ""
    return what + (f"; each row sums to {column.sum:g}" if column.sum is not None else "")


def comparability(facts: list[CompetitionFacts]) -> list[str]:
    """A row for each competition whose split, files or metric v2 changes."""
    rows = [
        f"| {each.id} | {each.v2_comparable.verdict} | {_cell(each.v2_comparable.reason)} |"
        for each in facts
        if each.v2_comparable
    ]
    head = ["## Comparability of v2", "", "| competition | comparable | because |", "|---|---|---|"]
    return [*head, *rows]


def issues(facts: list[CompetitionFacts]) -> list[str]:
    """A row for each known issue, worst first within its competition."""
    found = [(each, issue) for each in facts for issue in each.issues("v1")]
    fixed = sum(issue.v2 == "fixed" for _, issue in found)
    head = [
        "## All known issues",
        "",
        f"v2 fixes {fixed} of {len(found)}.",
        "",
        "| competition | issue | severity | v2 | what is wrong |",
        "|---|---|---|---|---|",
    ]
    return [*head, *(_row(each, issue) for each, issue in found)]


def _row(facts: CompetitionFacts, issue: KnownIssue) -> str:
    status = f"{issue.v2}, needs {issue.needs}" if issue.needs else issue.v2
    return f"| {facts.id} | {issue.id} | {issue.severity} | {status} | {_cell(issue.about)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def update(text: str) -> str:
    """The document with the generated part as it must be."""
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{tables()}"


if __name__ == "__main__":
    DOCUMENT.write_text(update(DOCUMENT.read_text("utf-8")), "utf-8")
