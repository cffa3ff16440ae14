"""Score files against a truth that comes with them, in processes with the limits of grading workers."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from grading.workers.endings import TOO_EXPENSIVE, Verdict, unreadable
from grading.workers.limits import GradingLimits
from grading.workers.pool import GradingPool, _Submission

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition
    from competitions.truth import TruthForm

_CELL_CHARACTERS = 16 << 20
"""The most of a cell: without a dataset it is not known how long cells are. Time and memory are limited as well."""


class Scorer(GradingPool):
    """Computes a competition's metric on predictions and a truth of one's own, one request at a time.

    Its processes have no answers, and open no file but these two. Each request has a process of its own, which is gone
    afterwards. Close it, or use it in a `with` statement.
    """

    _has_answers: ClassVar[bool] = False

    def __init__(self, competition: Competition, form: TruthForm, edition: Edition, limits: GradingLimits) -> None:
        """`form` is the form of the truth, and `limits` are those of a request."""
        super().__init__(competition, Path(os.devnull), edition, limits=limits)  # there is no dataset
        self.bounds = replace(self.bounds, cell_characters=_CELL_CHARACTERS)
        self._columns = form.as_json()

    def score(self, predictions: Path, truth: Path) -> Verdict:
        """The score, or which of the files is wrong and why. Never raises because of their content.

        A hard link to the truth is made beside it, in a temporary folder, where grade.py expects the answers.
        """
        with self._lock, tempfile.TemporaryDirectory(prefix="truth-", dir=truth.parent) as name:
            answers = Path(name).absolute() / self.competition.facts.files.answers
            answers.parent.mkdir(parents=True)
            try:
                os.link(truth, answers, follow_symlinks=False)
            except OSError:  # a file system without hard links
                try:
                    shutil.copyfile(truth, answers, follow_symlinks=False)
                except OSError as error:
                    return unreadable(error)
            options = {"truth": str(Path(name).absolute()), "columns": self._columns}
            return self._grade_alone(_Submission(0, predictions, None, self._broken, options))

    def _judge(self, submission: _Submission) -> Verdict:
        """The verdict on files whose worker was killed, which may be because of them or of the machine."""
        return Verdict("invalid", message=f"{TOO_EXPENSIVE}: the machine ran out of memory")
