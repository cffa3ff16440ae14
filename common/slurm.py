"""The Slurm job that this process belongs to: what it has of its machine, and when it ends.

`mlebench` asks the environment that Slurm gives to jobs, and `squeue` for what older versions leave out.
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from datetime import datetime

_SQUEUE_SECONDS = 60.0


def job() -> str | None:
    """The number of the job; None outside of a job."""
    return os.environ.get("SLURM_JOB_ID") or None


def forget_ended() -> None:
    """Unset the number of the job for this process and those that it starts, if the job has ended.

    A shell may outlive the job that it names, for example in tmux. What runs there is not ended with a job.
    """
    number = job()
    if number is None:
        return
    command = ["squeue", "--noheader", "--job", number, "--format", "%T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SQUEUE_SECONDS, check=False)
        ended = not answer.stdout.strip() if not answer.returncode else "Invalid job id" in answer.stderr
    except (OSError, subprocess.SubprocessError, ValueError):  # no squeue, as in a container
        ended = (_number("SLURM_JOB_END_TIME") or math.inf) < time.time()
    if ended:
        del os.environ["SLURM_JOB_ID"]


def cpus() -> int | None:
    """The number of cores that the job has on this machine; None outside of a job."""
    return _number("SLURM_CPUS_ON_NODE") if job() else None


def memory_bytes() -> int | None:
    """The memory that the job may use on this machine; None outside of a job, or if it may use all."""
    if not job():
        return None
    mebibytes = _number("SLURM_MEM_PER_NODE") or (_number("SLURM_MEM_PER_CPU") or 0) * (cpus() or 0)
    return mebibytes << 20 or None


def seconds_left() -> float | None:
    """The time until the job reaches its time limit; None outside of a job, without a limit, or if it is not known."""
    number = job()
    if number is None:
        return None
    end = _number("SLURM_JOB_END_TIME") or _end_in_queue(number)  # Slurm 23.02 and later set the variable
    left = None if end is None else end - time.time()
    return None if left is None or left < 0 else left  # a shell may have outlived the job that it names


def _end_in_queue(number: str) -> float | None:
    command = ["squeue", "--noheader", "--job", number, "--format", "%e"]
    environment = {**os.environ, "SLURM_TIME_FORMAT": "standard"}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SQUEUE_SECONDS, check=True
        )
        return datetime.fromisoformat(answer.stdout.strip()).timestamp()  # in local time, like squeue
    except (OSError, subprocess.SubprocessError, ValueError):  # no squeue in a container; N/A for a job without a limit
        return None


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else None
