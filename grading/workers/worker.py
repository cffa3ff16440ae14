"""The worker process: forked with the answers in memory, limited by the kernel, and gone after one submission.

A grader may change the answers that it is given. In a process of its own, that changes no other score.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import os
import resource
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from common import plain_json
from competitions.truth import columns_of
from grading.workers.endings import Phase
from grading.workers.halves import Halves, score_halves
from grading.workers.limits import Bounds
from grading.workers.own_truth import OwnTruth
from grading.workers.parts import Parts, score_parts
from grading.workers.scoring import score_submission

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

_STATM = Path("/proc/self/statm")


def serve(
    channel: socket.socket,
    job: dict[str, Any],
    competition: Competition,
    answers: Any,
    edition: Edition,
    bounds: Bounds,
    validating: bool,
) -> NoReturn:
    """Grade the submission at the `path` of the job, write the verdict to `channel`, and end the process.

    With `validating` it is checked only, and has NaN for a score. `further` options of the job ask for its scores on
    halves or on the public and private part of the test set; with `validating`, on the public part alone. With a
    `truth` among them, that is used in place of the answers.
    """
    code = 1
    try:
        _prefer_for_oom_killer()
        file = channel.makefile("wb")

        def send(message: dict[str, Any]) -> None:
            file.write(plain_json.dumps(message).encode() + b"\n")
            file.flush()

        def enter(phase: Phase) -> None:
            send({"phase": phase})

        def scoring() -> None:
            enter("grading")

        def read(path: Path) -> Any:
            return competition.read_submission(path, edition)

        def score(table: Any) -> float:
            truth = answers
            if further:  # scoring may change its arguments
                parsed["table"] = table
                table, truth = copy.deepcopy(table), copy.deepcopy(answers)
            if not validating:
                return competition.score_table(table, truth, edition)
            competition.check_table(table, truth, edition)
            return math.nan

        path, further = Path(job["path"]), job.get("further")
        parsed: dict[str, Any] = {}
        _limit(bounds)
        if further and "truth" in further:
            columns = columns_of(further["columns"])
            verdict = OwnTruth(competition, edition, path, Path(further["truth"]), columns, bounds).score(
                enter, _lift_memory_limit
            )
        else:
            verdict = score_submission(read, score, path, bounds, scoring, _lift_memory_limit)
        valid = verdict.outcome == "valid" and verdict.score is not None and "truth" not in (further or {})
        if further and valid and (math.isfinite(verdict.score or 0.0) or (validating and "share" in further)):
            send({"phase": "further", "verdict": dataclasses.asdict(verdict)})
            scored_by = partial(competition.score_table, edition=edition)
            tables, facts = (parsed["table"], answers), competition.facts
            found: Halves | Parts
            if "share" in further:
                found = score_parts(scored_by, tables, facts, whole=None if validating else verdict.score, **further)
            else:
                found = score_halves(scored_by, *tables, facts.resampling, whole=verdict.score or 0.0, **further)
            verdict = dataclasses.replace(verdict, further=dataclasses.asdict(found))
        _lift_memory_limit()
        send({"verdict": dataclasses.asdict(verdict)})
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        code = 0  # the server has ended
    finally:
        os._exit(code)  # skip the clean-up of the parent process


def _limit(bounds: Bounds) -> None:
    """Limit memory beyond the current usage, and CPU time in case the server, which enforces deadlines, has ended."""
    with contextlib.suppress(OSError, ValueError):  # a system without /proc, or with lower limits
        size = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = size + bounds.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    with contextlib.suppress(OSError, ValueError):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent = usage.ru_utime + usage.ru_stime
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(spent + bounds.read_seconds + bounds.grade_seconds) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (limit if hard < 0 else min(limit, hard), hard))


def _lift_memory_limit() -> None:
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _prefer_for_oom_killer() -> None:
    """Make the kernel kill this process first if memory runs out, and disable core dumps."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
