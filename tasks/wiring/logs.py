"""The output of a flow run's process goes to a file, so that it does not depend on the worker that started it."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

from common.settings import get_settings

_FLOW_RUN = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect's workers for the processes of flow runs."""
_KEPT_SECONDS = 30 * 86400.0


def outlast_worker() -> None:
    """Have this process write to `logs/<flow run>.log` below MLEBENCH_SCRATCH instead of to its worker. Idempotent.

    A worker reads the output of its flow runs through a pipe. If the worker is killed, the next line that Prefect logs
    meets a broken pipe and ends the process. The log is in the Prefect UI as before.
    """
    if _FLOW_RUN not in os.environ or not stat.S_ISFIFO(os.fstat(2).st_mode):
        return
    folder = get_settings().scratch / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    _remove_old(folder)
    log = os.open(folder / f"{os.environ[_FLOW_RUN]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _remove_old(folder: Path) -> None:
    for path in folder.glob("*.log"):
        try:
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()
        except FileNotFoundError:  # removed by another flow run
            continue
