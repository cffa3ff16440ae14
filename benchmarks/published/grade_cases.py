"""Prepared directories with answers of realistic size, written directly, and a noisy submission for each.

Only what a grader reads is there: the answers, the sample submission and, where there is one, the gold submission.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.published import grade_images, grade_tables  # noqa: F401  (they register their cases)
from benchmarks.published.answers import GENERATORS, Generator


def make(competition: str, root: Path, rng: Generator, scale: float) -> None:
    """Write root/prepared/{public,private} and root/submissions/NNN.csv."""
    public, private = root / "prepared" / "public", root / "prepared" / "private"
    for folder in (public, private, root / "submissions"):
        folder.mkdir(parents=True)
    submissions = GENERATORS[competition](public, private, rng, scale)
    for k, table in enumerate(submissions if isinstance(submissions, list) else [submissions]):
        table.to_csv(root / "submissions" / f"{k:03d}.csv", index=False)
