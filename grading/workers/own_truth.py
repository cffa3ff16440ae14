"""Score predictions against a truth that comes with them, inside a worker process. Both files are untrusted."""

from __future__ import annotations

import contextlib
import math
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import one_line
from competitions.facts import OTHER_COLUMNS
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.notes import ScoreNote
from competitions.truth_checks import check_truth, wrong_row
from grading.workers.endings import Phase, Verdict, out_of_memory, too_large
from grading.workers.limits import Bounds, check_cells, check_columns, check_file

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition
    from competitions.facts import TruthColumn


_METRICS = "/competitions/scoring/metrics/"


def _is_of_a_metric(error: Exception) -> bool:
    """Whether one of our metrics raised the error, so that its text is about numbers and names nothing of this host."""
    return _METRICS in Path(traceback.extract_tb(error.__traceback__)[-1].filename).as_posix()


def _of_truth(error: InvalidSubmission) -> str:
    """The message of a check of submissions about a truth."""
    return re.sub(r"^The submission\b", "TRUTH", str(error))


@dataclass
class OwnTruth:
    """One request: two files, and what is told of them. `score` never raises because of their content."""

    competition: Competition
    edition: Edition
    predictions: Path
    folder: Path
    """A folder with the truth where a prepared dataset has its answers, and nothing else."""
    columns: dict[str, TruthColumn] | None
    """The columns of the truth; None if it is no table."""
    bounds: Bounds
    phase: Phase = "truth"

    def score(self, enter: Callable[[Phase], None], lift_memory_limit: Callable[[], None]) -> Verdict:
        """The verdict. `enter` is called with each phase that begins after reading the truth."""

        def begin(phase: Phase) -> None:
            enter(phase)
            self.phase = phase

        try:
            truth = self._truth()
            begin("predictions")
            table = self._read(self.predictions, self._predictions)
            begin("grading")
            return self._scored(table, truth)
        except InvalidSubmission as error:
            reason = _of_truth(error) if self.phase == "truth" else error
            return Verdict("invalid", message=f"{self._file}: {reason}")
        except MemoryError:
            lift_memory_limit()
            return out_of_memory(self.bounds) if self.phase == "grading" else too_large(self.bounds, self.phase)
        except Exception as error:  # graders trust the answers, so whatever they raise is because of the files
            lift_memory_limit()
            kind = type(error).__name__
            if self.phase == "truth":
                message = f"TRUTH cannot be read as the answers of this competition ({kind})"
            elif isinstance(error, ValueError) and _is_of_a_metric(error):
                message = f"the metric is not defined for these files: {one_line(error)[:200]}"
            else:
                message = f"the grader fails on these files ({kind}): compare TRUTH with the example"
            return Verdict("invalid", message=message, detail=traceback.format_exc())

    @property
    def _file(self) -> str:
        return {"truth": "TRUTH", "predictions": "PREDICTIONS"}.get(self.phase, "PREDICTIONS or TRUTH")

    def _read(self, path: Path, read: Callable[[], Any]) -> Any:
        check_file(path, self.bounds.size_bytes)
        check_columns(path, self.bounds.columns)
        table = read()
        check_cells(table, self.bounds.cell_characters)
        return table

    def _predictions(self) -> Any:
        return self.competition.read_submission(self.predictions, self.edition)

    def _truth(self) -> Any:
        path = self.folder / self.competition.facts.files.answers
        table = self._read(path, lambda: self.competition.answers(self.folder))
        return table if self.columns is None else check_truth(table, self.columns)

    def _scored(self, table: Any, truth: Any) -> Verdict:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ScoreNote)
                score = self.competition.score_table(table, truth, self.edition)
        except InvalidSubmission as error:
            if not self._as_predictions():
                return Verdict("invalid", message=f"PREDICTIONS or TRUTH: {error}{self._where()}")
            if (reason := self._truth_problem()) is not None:
                return Verdict("invalid", message=f"TRUTH: {reason}")
            return Verdict("invalid", message=f"PREDICTIONS: {error}{self._where()}")
        if math.isnan(score):
            message = "the metric is not defined for these files, as with one class only or constant predictions"
            return Verdict("invalid", message=message)
        notes = [str(warning.message) for warning in caught if issubclass(warning.category, ScoreNote)]
        return Verdict("valid", score, message=" ".join(dict.fromkeys(notes)) or None)

    def _where(self) -> str:
        """The row of the predictions that is wrong, as far as that can be told."""
        ids = [name for name, column in (self.columns or {}).items() if column.values == "id"]
        where = ""
        with contextlib.suppress(Exception):  # the message is right without it
            where = wrong_row(self._predictions(), self._truth(), ids, self.competition.facts.submission)
        return f" See {where}." if where else ""

    def _as_predictions(self) -> bool:
        """Whether a truth has the form of predictions, so that it can be graded as such."""
        facts = self.competition.facts
        names = {facts.files.gold_columns.get(name, name) for name in facts.submission if name != OTHER_COLUMNS}
        return facts.files.gold_submission == facts.files.answers and names <= set(self.columns or ())

    def _truth_problem(self) -> str | None:
        """Why the truth is not valid even as predictions of itself; None if it is."""
        try:
            self.competition.score_table(self._truth(), self._truth(), self.edition)
        except InvalidSubmission as error:
            return _of_truth(error)
        return None
