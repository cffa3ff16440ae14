"""The checks of a competition. Each returns a list of problems, one line each; an empty list means passed."""

from __future__ import annotations

import csv
import io
import math
import random
import zipfile
import zlib
from collections.abc import Callable, Sequence

from competitions.marks import marked_places
from competitions.scoring.errors import InvalidSubmission
from competitions.tables.csv_blocks import MAX_HEADER
from grading.competition_checks import leaks
from grading.competition_checks.csvfile import table
from grading.competition_checks.description import example_problems, leftovers, metric_problems, sections
from grading.competition_checks.public_tables import files_named, is_closed, not_read, public_tables
from grading.competition_checks.subject import Skipped, Subject, number_of, require_small_sample
from grading.competition_checks.submissions import score_rows
from grading.report import SCORE_DECIMALS


def facts(subject: Subject) -> list[str]:
    """Files with a role exist. The description has its sections and names every public top-level file."""
    roles = ("answers", "sample_submission", "gold_submission")
    problems = [f"{role} {path.name} was not prepared" for role in roles if not (path := subject.path(role)).is_file()]
    if subject.competition.published_format:
        return problems
    text = subject.competition.describe(subject.edition)
    public = subject.manifest.loc[subject.manifest["part"] == "public", "path"]
    unnamed = sorted({path.split("/")[0] for path in public} - {"description.md"})
    problems += [f"description.md does not name {name}" for name in unnamed if name not in text]
    headings = ("## Overview", "## Data", "## Evaluation", "## Submission")
    return problems + [f"description.md has no section {heading!r}" for heading in headings if heading not in text]


def marks(subject: Subject) -> list[str]:
    """No place is left that is marked with CHECK."""
    return marked_places(subject.competition.folder)


def description(subject: Subject) -> list[str]:
    """The description has the columns of the sample submission, metric and direction of the facts, its own text."""
    text = subject.competition.describe(subject.edition)
    with subject.file("sample_submission").open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(io.StringIO(file.read(MAX_HEADER), newline="")), [])
    by_heading = sections(text)

    def is_valid(columns: Sequence[str]) -> bool:
        require_small_sample(subject)
        _, rows = table(subject.file("sample_submission").read_bytes())
        places = [header.index(column) for column in columns]
        try:
            score_rows(subject, columns, ([row[place] for place in places] for row in rows))
        except InvalidSubmission:
            return False
        return True

    return [
        *example_problems(by_heading.get("Submission", ""), header, is_valid),
        *metric_problems(by_heading.get("Evaluation", ""), subject.competition),
        *leftovers(subject.competition, text, header),
    ]


def sample(subject: Subject) -> list[str]:
    """The sample submission is valid."""
    score = subject.score(subject.file("sample_submission"))
    return ["the sample submission scores NaN"] if math.isnan(score) != subject.declares("sample-scores-nan") else []


def gold(subject: Subject) -> list[str]:
    """The gold submission is at least as good as the sample submission and the gold threshold."""
    competition_facts = subject.competition.facts
    score, sample_score = (subject.score(subject.file(role)) for role in ("gold_submission", "sample_submission"))
    sign = -1 if competition_facts.lower_is_better else 1
    if subject.declares("gold-not-optimal"):
        return []
    if math.isnan(score) or sign * score < sign * sample_score:
        return [f"the gold submission scores {score}, the sample submission {sample_score}"]
    if round(sign * score, SCORE_DECIMALS) < sign * competition_facts.leaderboard.gold:
        return [f"the gold submission scores {score}, but gold requires {competition_facts.leaderboard.gold}"]
    return []


def order(subject: Subject) -> list[str]:
    """Rows are matched by id: the gold submission with shuffled rows has the same score."""
    header, rows = table(subject.file("gold_submission").read_bytes())
    random.Random(0).shuffle(rows)
    score = number_of(subject.score(subject.file("gold_submission")), "the rows of the gold submission")
    try:
        shuffled: float | str = score_rows(subject, header, rows)
    except InvalidSubmission as error:
        shuffled = f"no score: {error}"
    if subject.declares("rows-by-position") or same(score, shuffled):
        return []
    return [f"the gold submission scores {score}, with its rows in another order {shuffled}"]


def secrecy(subject: Subject) -> list[str]:
    """No private file is public, neither as a file nor inside a public zip archive."""
    parts = dict(iter(subject.manifest.groupby("part")))
    if set(parts) != {"public", "private"}:
        return ["there must be public and private files"]
    duplicates = parts["private"].merge(parts["public"], on="hash", suffixes=("", "_public"))
    sample = subject.file("sample_submission").name
    duplicates = duplicates[duplicates["path"] != sample]  # the file may be private if the public copy is in an archive
    problems = [f"private/{row.path} is public/{row.path_public} as well" for row in duplicates.itertuples()]
    roles = {path: zlib.crc32(path.read_bytes()) for path in map(subject.path, ("answers", "gold_submission"))}
    for name in parts["public"]["path"]:
        if name.endswith(".zip"):
            with zipfile.ZipFile(subject.prepared / "public" / name) as archive:
                archived = {(info.CRC, info.file_size) for info in archive.infolist()}
            names = [path.name for path, crc in roles.items() if (crc, path.stat().st_size) in archived]
            problems += [f"public/{name} holds private {path}" for path in names]
    if closed := [name for name in parts["public"]["path"] if is_closed(name)]:
        subject.not_covered["secrecy"] = f"not covered: what is in {files_named(closed)}"
    return problems


def public(subject: Subject) -> list[str]:
    """No public table has the answers, under whatever name, by id or row by row. No public file is named after them."""
    if any(issue.needs is None for issue in subject.competition.facts.leaks(subject.edition)):
        return []  # competition.yaml says so; what needs the web is not in the public files
    unread: list[str] = []
    paths = subject.manifest.loc[subject.manifest["part"] == "public", "path"]
    problems = [f"public/{name} is named like a file with answers" for name in leaks.names_that_give_away(list(paths))]
    gold, sample = subject.file("gold_submission"), subject.file("sample_submission")
    require_small_sample(subject, "gold_submission", "sample_submission")
    answers = leaks.answers_of(gold.read_bytes(), sample.read_bytes())
    if answers is None:
        subject.not_covered["public"] = "only names are compared, because rows are not identified by one column"
        return problems
    for name, public_table in public_tables(subject.prepared / "public", sample.name, unread):
        problems += leaks.leaks(name, public_table, answers)
    subject.not_covered["public"] = not_read(unread)
    return problems


def hostile(subject: Subject) -> list[str]:
    """Every hostile submission gets a score or a one-line rejection without secrets, and changes no later score."""
    require_small_sample(subject)
    outcomes = subject.hostile_outcomes
    if outcomes.raises and not outcomes.grading and not outcomes.died:
        raise Skipped(f"raises what is shown above: {outcomes.raises}")
    raised = f"in all: {outcomes.raises}; raise InvalidSubmission, as competitions.scoring.cells.numbers does"
    return [*outcomes.died, *outcomes.grading, *([raised] if outcomes.raises else [])]


def validity(subject: Subject) -> list[str]:
    """Hostile submissions are valid or not whatever the answers are, as long as they have the same ids."""
    require_small_sample(subject)
    if subject.hostile_outcomes.failure:
        raise subject.hostile_outcomes.failure
    if subject.hostile_outcomes.raises and not subject.hostile_outcomes.validity:
        raise Skipped("not known while submissions raise exceptions")
    return subject.hostile_outcomes.validity


CHECKS: dict[str, Callable[[Subject], list[str]]] = {
    check.__name__: check
    for check in (facts, marks, description, sample, gold, order, secrecy, public, hostile, validity)
}


def same(score: float, other: float | str) -> bool:
    """Whether two scores are equal up to rounding. NaN equals NaN."""
    if isinstance(other, str):
        return False
    return (math.isnan(score) and math.isnan(other)) or math.isclose(score, other, rel_tol=1e-9, abs_tol=1e-12)
