"""The process that grades: forked with the answers in memory, limited by the kernel, replaced whenever in doubt."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from grading.workers.limits import Bounds
from grading.workers.scoring import score_submission

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

_STATM = Path("/proc/self/statm")


def serve(channel: socket.socket, competition: Competition, answers: Any, edition: Edition, bounds: Bounds) -> NoReturn:
    """Grade the submissions that `channel` names, one JSON line each, until it closes. Ends the process."""
    code = 1
    try:
        _prefer_for_oom_killer()
        file = channel.makefile("rwb")

        def send(message: dict[str, Any]) -> None:
            file.write(json.dumps(message).encode() + b"\n")
            file.flush()

        def scoring() -> None:
            send({"phase": "grading"})

        for line in file:
            _limit(bounds)
            verdict = score_submission(
                competition, answers, Path(json.loads(line)["path"]), edition, bounds, scoring, _lift_memory_limit
            )
            _lift_memory_limit()
            send({"verdict": dataclasses.asdict(verdict)})
            if verdict.recycle:
                break
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        code = 0  # the server is gone
    finally:
        os._exit(code)  # skips clean-up that belongs to the parent process


def _limit(bounds: Bounds) -> None:
    """Limit memory beyond what the process has now, and CPU time in case the server that watches deadlines is gone."""
    with contextlib.suppress(OSError, ValueError):  # a system without /proc or with tighter limits of its own
        size = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = size + bounds.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (wanted if most < 0 else min(wanted, most), most))
    with contextlib.suppress(OSError, ValueError):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent = usage.ru_utime + usage.ru_stime
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        wanted = int(spent + bounds.read_seconds + bounds.grade_seconds) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (wanted if most < 0 else min(wanted, most), most))


def _lift_memory_limit() -> None:
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _prefer_for_oom_killer() -> None:
    """Have the kernel end this process first if memory runs out, and write no core dumps."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
