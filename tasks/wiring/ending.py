"""End the containers of agents whose process ends at once, at a second Ctrl-C: `python -m tasks.wiring.ending PID`.

Agents of the process backend have supervisors, which end them. A container would go on to the end of its time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from common.starting import search_path

_PATIENCE = 30.0  # seconds for the end of the process


def start() -> None:
    """Have a process of its own end the containers of this one, which is about to end. Returns at once."""
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid())],
            # What lies in the current directory does not hide our packages.
            env={**os.environ, "PYTHONPATH": search_path(), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def main(pid: int) -> int:
    """Wait for the end of a process, and end its containers that are left; returns the exit code."""
    import psutil

    from tasks.wiring.cancelling import end
    from tasks.wiring.host import host_slots

    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).wait(_PATIENCE)
    for holder in host_slots().holders():
        if holder.claim.backend == "docker" and holder.process.get("pid") == pid:
            end(holder)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
