"""Read and score one submission, inside a worker process."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.notes import ScoreNote
from grading.workers.endings import Phase, Verdict, grader_error, out_of_memory, too_large
from grading.workers.limits import Bounds, check_cells, check_columns, check_file

_OUT_OF_MEMORY = "C error: out of memory"  # message of pandas' parser for a failed allocation


def score_submission(
    read: Callable[[Path], Any],
    score: Callable[[Any], float],
    submission: Path,
    bounds: Bounds,
    scoring: Callable[[], None],
    lift_memory_limit: Callable[[], None],
) -> Verdict:
    """Read and score `submission`. Never raises because of its content.

    `read` reads the file, and `score` scores what was read, or checks it. `scoring` is called after the submission has
    been read. `lift_memory_limit` is called after the limit was exceeded, so that there is memory to report it.
    """
    phase: Phase = "reading"
    try:
        check_file(submission, bounds.size_bytes)
        check_columns(submission, bounds.columns)
        # Reading and scoring are separate steps, because the phase decides the outcome of an exceeded limit.
        table = read(submission)
        check_cells(table, bounds.cell_characters)
        phase = "grading"
        scoring()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ScoreNote)
            value = score(table)
        notes = [str(warning.message) for warning in caught if issubclass(warning.category, ScoreNote)]
        return Verdict("valid", value, message=" ".join(dict.fromkeys(notes)) or None)
    except InvalidSubmission as error:
        if _OUT_OF_MEMORY in str(error):
            return too_large(bounds)
        return Verdict("invalid", message=str(error), detail=error.detail)
    except MemoryError:
        lift_memory_limit()
        return too_large(bounds) if phase == "reading" else out_of_memory(bounds)
    except Exception as error:  # a bug in grading is reported as such, and never counted as the agent's failure
        return grader_error(error, traceback.format_exc())
