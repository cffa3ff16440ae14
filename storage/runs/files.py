"""Names of the files in the folder of a run."""

from __future__ import annotations

from competitions.editions import EDITIONS

RUN = "run.json"
GRADE = "grade.json"
SNAPSHOTS = "snapshots.json"
EVIDENCE = "ledger.jsonl"
VALIDATIONS = "validation.jsonl"
SCORINGS = "scorer.jsonl"
PUBLIC_SCORE_CALLS = "public_score.jsonl"
REQUESTS = "gateway.jsonl"
SUBMISSION = "submission.csv"
PUBLIC_SCORES = "public_scores.jsonl"
TRY = "try-"
"""Beginning of the names of folders for the files of a run that replaces another one; see `storage.runs.publish`."""


def grade_file(edition: str | None = None) -> str:
    """Name of the file with the grade in the run's own edition, or in another one."""
    return GRADE if edition is None else GRADE.replace(".json", f"-{edition}.json")


GRADES = sorted(map(grade_file, (None, *EDITIONS)))
"""Names of the files with grades."""


def public_score_file(number: int) -> str:
    """Path, in the folder of a run, of a file with a public score."""
    return f"{PUBLIC_SCORES.removesuffix('.jsonl')}/{number}.csv"


def is_seed(name: str) -> bool:
    """Whether a run's folder may have that name: the usual spelling of a seed, so not 00 or digits of other scripts."""
    return name.isdecimal() and str(int(name)) == name


def is_grade(path: str) -> bool:
    """Whether a file of a run's folder is made by grading, in any edition."""
    return "/" not in path and path.startswith(("grade", "snapshots")) and path.endswith(".json")


def snapshots_file(edition: str | None = None) -> str:
    """Name of the file with the snapshots graded in the run's own edition, or in another one."""
    return SNAPSHOTS if edition is None else SNAPSHOTS.replace(".json", f"-{edition}.json")
