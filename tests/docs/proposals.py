"""The table of docs/new_competitions.md: what is proposed for each competition of the catalog, from its miniature.

`python -m tests.docs.proposals` brings it up to date, and the figures between FIGURES and END. The rest is written by
hand. The text about evaluation is the section of the catalog's description, because Kaggle's pages are not part of this
project.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from competitions import registry
from competitions.competition import Competition
from competitions.marks import marked_places
from competitions.preparing.download import Download
from competitions.proposals.about import About
from competitions.proposals.folder import write_folder
from competitions.proposals.layout import read_layout
from competitions.proposals.propose import propose
from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.description import sections
from grading.competition_checks.run import check_download, measured_of
from storage.datasets import prepare
from tests.prepared import Prepared, PreparedCompetitions

DOCUMENT = Path(__file__).parents[2] / "docs" / "new_competitions.md"
FIGURES = "<!-- figures from the miniatures of tests by python -m tests.docs.proposals -->"
END = "<!-- figures end -->"
BEGIN = "<!-- generated from the miniatures of tests by python -m tests.docs.proposals -->"
_PASSES = "passes check"
_SHOWN = 100  # characters of an exception
_SUBMISSIONS = ("perfect", "noisy", "sample", "shuffled", "reversed")


@dataclass(frozen=True)
class Measured:
    """A proposal compared with the catalog. `scores`: the share of recorded submissions that have the same score."""

    id: str
    kind: str
    columns: bool
    direction: bool
    scores: str
    grade_marks: int
    prepare_marks: int
    works: str
    """Whether the folder prepares the miniature; without any mark, whether it passes `mlebench check`."""

    @property
    def row(self) -> str:
        """The row of the table."""
        words = [self.id, self.kind, _word(self.columns), self.scores, _word(self.direction)]
        return f"| {' | '.join([*words, str(self.grade_marks), str(self.prepare_marks), self.works])} |"


def _word(value: bool) -> str:
    return "yes" if value else "no"


def measured(each: Prepared, scratch: Path) -> Measured:
    """Propose a folder for a miniature, prepare and grade with it."""
    facts = each.competition.facts
    text = sections(each.competition.describe("v1"))["Evaluation"]
    raw = Download.open(str(each.raw))
    layout = read_layout(raw)
    board = facts.leaderboard
    scores = tuple(board.percentiles or [board.gold, board.silver, board.bronze, board.median])
    about = About(facts.id, facts.name, pages=(("description", "See below."), ("evaluation", text)), scores=scores)
    proposal = propose(layout, about)
    folder = scratch / facts.id
    write_folder(folder, about, proposal, layout, raw)
    with (each.path / facts.files.sample_submission).open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file))
    marks = {part: (folder / f"{part}.py").read_text("utf-8").count("# CHECK: ") for part in ("grade", "prepare")}
    own = Competition.load(folder)
    return Measured(
        facts.id,
        proposal.kind.value,
        {*proposal.columns.ids.value, *proposal.columns.targets} == {*header},
        own.facts.metric.direction == facts.metric.direction,
        _scores(own, each),
        marks["grade"],
        marks["prepare"],
        _checked(own, each.raw, scratch) if not marked_places(folder)[1:] else _works(own, each.raw, scratch),
    )


def _scores(own: Competition, each: Prepared) -> str:
    """Whether recorded submissions have the same scores: the gold submission is the answers of the proposed grader."""
    try:
        answers = own.read_submission(each.path / each.competition.facts.files.gold_submission)
    except InvalidSubmission as error:
        return _message(error)
    same, all_of_them = 0, 0
    for name in _SUBMISSIONS:
        if not (path := each.submission(name)).is_file():
            continue
        try:
            theirs = each.competition.grade(path, each.path)
        except InvalidSubmission:
            continue
        all_of_them += 1
        try:
            score = own.score(path, answers)
        except Exception:
            continue
        same += math.isclose(score, theirs, rel_tol=1e-6, abs_tol=1e-6) or (math.isnan(score) and math.isnan(theirs))
    return f"{same} of {all_of_them}"


def _message(error: Exception) -> str:
    """An exception in a cell of the table."""
    text = " ".join(str(error).split())[:_SHOWN].replace("|", "/")
    return f"{type(error).__name__}: `{text.replace('`', '')}`"


def _checked(own: Competition, raw: Path, scratch: Path) -> str:
    """The result of `mlebench check`, when a person has read the description and removed its mark."""
    description = own.folder / "description.md"
    description.write_text(description.read_text("utf-8").partition("\n")[2], "utf-8")
    results = check_download(measured_of(own, scratch / "prepared", "v1"), raw, scratch, prepare)
    failed = [each for each in results if each.verdict == "failed"]
    return "; ".join(f"`{each.check}`: {each.problems[0]}" for each in failed)[: 2 * _SHOWN] or _PASSES


def _works(own: Competition, raw: Path, scratch: Path) -> str:
    """Whether prepare.py and grade.py run: the gold submission scores better than the sample, or as well."""
    try:
        prepare(own.id, raw, scratch / "prepared", "v1", None, own.folder)
        roles = own.facts.files
        gold, sample = (
            own.grade(scratch / "prepared" / path, scratch / "prepared")
            for path in (roles.gold_submission, roles.sample_submission)
        )
    except Exception as error:
        return _message(error)
    if math.isnan(gold):
        return "gold scores NaN"
    return (
        "yes"
        if (sample >= gold if own.facts.lower_is_better else gold >= sample) or math.isnan(sample)
        else "gold is worse than sample"
    )


def main(only: list[str]) -> None:
    """Write the table, or print rows of it for the named competitions."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        prepared = PreparedCompetitions(Path(folder))
        for name in only or [name for name in registry.list() if registry.get(name).facts.source == "kaggle"]:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                rows.append(measured(prepared[name], Path(scratch)))
                print(rows[-1].row, flush=True)
    counts = {
        "have the published columns": sum(each.columns for each in rows),
        "have the published direction": sum(each.direction for each in rows),
        "give all recorded submissions the published scores": sum(_all(each.scores) for each in rows),
        "have no mark in grade.py": sum(not each.grade_marks for each in rows),
        "have no mark in prepare.py": sum(not each.prepare_marks for each in rows),
        "have no mark in grade.py, but other scores": sum(
            not each.grade_marks and not _all(each.scores) for each in rows
        ),
        "have no mark at all but for the texts, and pass mlebench check": sum(each.works == _PASSES for each in rows),
        "have no mark in prepare.py, but do not work": sum(
            not each.prepare_marks and each.works not in ("yes", _PASSES) for each in rows
        ),
    }
    lines = [f"- {count} of {len(rows)} {what}" for what, count in counts.items()]
    print("\n".join(lines))
    if not only:
        head = "| competition | kind | columns | scores | direction | marks in grade.py | marks in prepare.py | runs |"
        table = [head, "|---|---|---|---|---|---|---|---|", *(each.row for each in rows), ""]
        above = DOCUMENT.read_text("utf-8").partition(BEGIN)[0]
        before, after = above.partition(FIGURES)[0], above.partition(END)[2]
        above = "\n".join([before + FIGURES, "", *lines, "", END + after])
        DOCUMENT.write_text(above + BEGIN + "\n\n" + "\n".join(table), "utf-8")


def _all(scores: str) -> bool:
    return len({*scores.split(" of ")}) == 1 and scores != "0 of 0"


if __name__ == "__main__":
    main(sys.argv[1:])
