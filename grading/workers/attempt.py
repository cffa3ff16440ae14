"""One submission, read and scored: what happens inside a worker process."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from competitions.scoring.errors import InvalidSubmission
from grading.report import Outcome
from grading.workers.limits import Bounds, check_columns, check_file

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

Phase = Literal["reading", "grading"]
_OUT_OF_MEMORY = "C error: out of memory"  # how pandas' parser words a failed allocation


@dataclass(frozen=True)
class Verdict:
    """What became of a submission: `message` says why there is no score, `detail` is the traceback of our own bugs.

    `spoilt` is set when the worker should not serve another one.
    """

    outcome: Outcome
    score: float | None = None
    message: str | None = None
    detail: str | None = None
    spoilt: bool = False


def attempt(
    competition: Competition,
    answers: Any,
    submission: Path,
    edition: Edition,
    bounds: Bounds,
    scoring: Callable[[], None],
    relieve: Callable[[], None],
) -> Verdict:
    """Read and score `submission`; never raises for what it contains.

    `scoring` is called when the submission is read, `relieve` lifts the memory limit once it was hit, so that the
    cause can be told. Memory that runs out while reading is the submission's fault, while scoring it is ours.
    """
    phase: Phase = "reading"
    try:
        check_file(submission, bounds.size_bytes)
        check_columns(submission, bounds.columns)
        # Read and score apart: whose fault an exhausted limit is hangs on which of the two it was.
        table = competition.read_submission(submission)
        phase = "grading"
        scoring()
        return Verdict("valid", competition.score_table(table, answers, edition))
    except InvalidSubmission as error:
        if _OUT_OF_MEMORY in str(error):
            return Verdict("invalid", message=too_large(bounds), spoilt=True)
        return Verdict("invalid", message=str(error))
    except MemoryError:
        relieve()
        if phase == "reading":
            return Verdict("invalid", message=too_large(bounds), spoilt=True)
        message = f"grading failed: it needs more than {_gigabytes(bounds.memory_bytes)} of memory"
        return Verdict("failed", message=message, detail=traceback.format_exc(), spoilt=True)
    except Exception as error:  # a bug of ours is reported as such, and never booked as the agent's failure
        message = " ".join(f"grading failed: {type(error).__name__}: {error}".split())[:500]
        return Verdict("failed", message=message, detail=traceback.format_exc(), spoilt=True)


def too_large(bounds: Bounds) -> str:
    """The rejection of a file that does not fit in the memory a worker is given."""
    return f"the file cannot be read as a table within {_gigabytes(bounds.memory_bytes)} of memory"


def too_slow(bounds: Bounds) -> str:
    """The rejection of a file that takes too long to read."""
    return f"the file cannot be read as a table within {bounds.read_seconds:g} seconds"


def _gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 29 else f"{count / (1 << 20):.0f} MiB"
