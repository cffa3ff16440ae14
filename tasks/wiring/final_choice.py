"""Grade a run with feedback: the files of its final choice, and each file that has a public score."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grading.feedback.private_part import PrivateGrade, PrivatePart
from grading.report import SCORE_DECIMALS
from storage.runs.files import PUBLIC_SCORES, SUBMISSION, public_score_file
from storage.runs.public_scores import read_public_scores
from storage.runs.records import RunRecord, SnapshotRecord
from storage.store import Store

if TYPE_CHECKING:
    from competitions.editions import Edition

_WORST_LAST = ("failed", "invalid", "missing")
"""Without a valid file, the outcome of a run is the first of these that a chosen file has."""


def grade_final_choice(
    store: Store, run: RunRecord, source: str, edition: Edition, part: PrivatePart
) -> tuple[PrivateGrade, list[SnapshotRecord]]:
    """The grade of the better file of the final choice, and the graded files that have a public score.

    Args:
        store: store of the run.
        run: the run. Without a final choice, its submission is graded.
        source: URL of the folder with its files.
        edition: edition of the answers.
        part: grades by the private part.
    """
    chosen = list(dict.fromkeys(run.final or [SUBMISSION]))
    grades: dict[str, PrivateGrade] = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="mlebench-grade-") as folder:
        copy = Path(folder) / SUBMISSION

        def grade(path: str, sha256: str | None = None) -> PrivateGrade:
            """Grade a file of the run. One whose hash is known is that file or none."""
            url = f"{source}/{path}"
            try:
                store.top.fs.get_file(store.top.path(store.relative(url)), str(copy))
            except FileNotFoundError:
                return part.failed(f"{path} is missing in the folder of the run", url)
            try:
                with copy.open("rb") as file:
                    if sha256 not in (None, hashlib.file_digest(file, "sha256").hexdigest()):
                        return part.failed(f"{path} was changed: its SHA-256 is not that in {PUBLIC_SCORES}", url)
                return part.grade(copy, url)
            finally:
                copy.unlink()

        for file in read_public_scores(store, run, source):
            graded = grades[str(file.number)] = grade(public_score_file(file.number), file.sha256)
            report = graded.grade.report
            columns = {name: getattr(report, name) for name in SnapshotRecord.model_fields if hasattr(report, name)}
            columns |= {"edition": edition, "outcome": graded.grade.outcome, "submission": file.number}
            columns |= {"public_score": _rounded(graded.public_score), "told": file.told}
            columns |= {"chosen": str(file.number) in chosen, "at_seconds": file.at_seconds}
            rows.append(SnapshotRecord(**{**columns, **run.who}))
        for name in chosen:
            if name == SUBMISSION and run.submission_exists:
                grades[name] = grade(SUBMISSION)
            elif name == SUBMISSION:
                graded = part.grade(copy, f"{source}/{SUBMISSION}")
                message = "the agent left no submission"
                grades[name] = replace(graded, grade=replace(graded.grade, message=message))
            elif name not in grades:
                grades[name] = part.failed(f"{PUBLIC_SCORES} has no submission {name}", f"{source}/{PUBLIC_SCORES}")
    return _better({name: grades[name] for name in chosen}), rows


def _better(chosen: Mapping[str, PrivateGrade]) -> PrivateGrade:
    """The valid grade with the best score, the first of equal ones. Its message says why others do not count."""

    def rank(name: str) -> tuple[int, float]:
        report, outcome = chosen[name].grade.report, chosen[name].grade.outcome
        if outcome == "valid" and report.score is not None:
            return 0, report.score if report.is_lower_better else -report.score
        return 1 + _WORST_LAST.index(outcome), 0.0

    best = min(chosen, key=rank)
    grade = chosen[best].grade
    others = [
        f"{'' if name == SUBMISSION else 'submission '}{name} of the final choice does not count: {other.grade.message}"
        for name, other in chosen.items()
        if name != best and other.grade.outcome != "valid"
    ]
    texts = [text.rstrip(".") for text in (grade.message, *others) if text]
    message = ". ".join(texts) if others else grade.message
    return replace(
        chosen[best],
        grade=replace(grade, message=message),
        public_score=_rounded(chosen[best].public_score),
    )


def _rounded(score: float | None) -> float | None:
    """A score as reports have it."""
    return None if score is None else round(float(score), SCORE_DECIMALS)
