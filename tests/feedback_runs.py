"""A run with feedback on diabetes, as it is in a store: its record and its files, without having been run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from competitions import registry
from grading.workers.parts import public_units
from storage.runs.files import public_score_file
from storage.runs.folders import RunFolder
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord
from tasks.grading import grade_submission
from tests.flows.graded import run_record
from tests.stores import Store, copy_dataset


class FeedbackRun:
    """Of three files, the second is the best on private rows, the third on public ones; the submission is another."""

    def __init__(self, store: Store, dataset: Path) -> None:
        for edition in ("v1", "v2"):
            copy_dataset(store, "diabetes", dataset, edition)
        self.store, self.source = store, store.run("g", "diabetes", 0)
        self.gold = pd.read_csv(dataset / registry.get("diabetes").facts.files.gold_submission)
        self.public = public_units(self.gold["id"].astype(str).tolist(), "diabetes")
        self.lines: list[dict[str, Any]] = []
        feedback = {"feedback": 0.3, "feedback_id": "id", "run_group": "g"}
        self.record = RunRecord(**run_record(0, True) | feedback)
        for public, private in ((9, 9), (7, 5), (3, 8)):
            self.ask(public, private)
        self.write("submission.csv", 20, 20)

    def finish(self, **fields: Any) -> None:
        """Write the record."""
        RunFolder(self.store, "g", "diabetes", 0).write_run(self.record.replace(**fields))

    def content(self, public: float, private: float) -> bytes:
        errors = np.where(self.public, public, private)
        return self.gold.assign(progression=self.gold["progression"] + errors).to_csv(index=False).encode()

    def write(self, path: str, public: float, private: float) -> None:
        """A file, by its errors on public and private rows."""
        self.store.write(f"{self.source}/{path}", self.content(public, private))

    def ask(self, public: float, private: float) -> None:
        """A file that the agent asked a score for."""
        number = len(self.lines) + 1
        self.write(public_score_file(number), public, private)
        digest = hashlib.sha256(self.content(public, private)).hexdigest()
        line = {"number": number, "time": f"2026-01-01T00:00:{10 * number}+00:00", "sha256": digest}
        self.lines.append({**line, "score": public, "standard_error": 1.0, "told": 9.0})
        self.store.write(
            f"{self.source}/public_scores.jsonl", "".join(json.dumps(x) + "\n" for x in self.lines).encode()
        )

    def grade(self, **fields: Any) -> tuple[GradeRecord, list[SnapshotRecord]]:
        return grade_submission(self.store, self.record.replace(**fields), self.source, "v1")
