"""Run pytest, and leave nothing behind when it ends or is interrupted: `python -m tests.session [PYTEST ARGUMENTS]`.

Tests start servers, clusters, agents and containers that outlive their parents on purpose. This process adopts those
whose parents have ended (Linux), and ends them when pytest has ended, whatever ended it. Temporary files have a folder
of the session's own, by which its containers are found. The folder is kept if a test has failed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psutil

from sandbox.docker.engine import WORKDIR
from sandbox.process.processes import ProcessTree, adopt_orphans

INTERRUPT_SECONDS = 30.0
"""How long pytest may take to end after Ctrl-C before it is killed."""
TERMINATE_SECONDS = 5.0
"""How long a process that was left behind may take to end before it is killed."""


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments; returns its exit code."""
    descendants = ProcessTree(complete=adopt_orphans())
    folder = Path(tempfile.mkdtemp(prefix="t-"))  # short: paths of sockets have at most 107 characters
    folder.chmod(0o711)  # PostgreSQL, and agents of the process backend, run as other users below it
    # In a process group of its own, so that Ctrl-C in the terminal reaches it once, through this process.
    command = [sys.executable, "-m", "pytest", *arguments]
    pytest = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, process_group=0)
    with _forwarding_signals(pytest):
        code = _wait(pytest)
    _end_processes(descendants)
    _remove_containers(folder)
    _unmount(folder)
    if code == 0:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"Temporary files of this session: {folder}", file=sys.stderr)
    return code


@contextlib.contextmanager
def _forwarding_signals(pytest: subprocess.Popen[bytes]) -> Iterator[None]:
    """Interrupt pytest on SIGTERM and Ctrl-C, and kill it on the second one, or if it takes too long to end."""
    received = 0

    def forward(number: int, _: FrameType | None) -> None:
        nonlocal received
        received += 1
        if number == signal.SIGALRM or received > 1:
            pytest.kill()
            return
        signal.alarm(int(INTERRUPT_SECONDS))
        pytest.send_signal(signal.SIGINT)

    earlier = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    yield
    signal.alarm(0)
    for number in earlier:
        signal.signal(number, signal.SIG_IGN)  # nothing interrupts the end


def _wait(pytest: subprocess.Popen[bytes]) -> int:
    """Wait for pytest; meanwhile, take note of the ends of adopted processes, which would stay zombies."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == pytest.pid:
            pytest.returncode = os.waitstatus_to_exitcode(status)
            return pytest.returncode if pytest.returncode >= 0 else 128 - pytest.returncode


def _end_processes(descendants: ProcessTree) -> None:
    """End what is left: politely, since servers and supervisors end their own children, then by force."""
    descendants.send(signal.SIGTERM)
    give_up = time.monotonic() + TERMINATE_SECONDS
    while descendants.processes() and time.monotonic() < give_up:
        _reap()
        time.sleep(0.1)
    descendants.kill(_reap)


def _reap() -> None:
    """Take note of the ends of children and adopted processes."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _remove_containers(folder: Path) -> None:
    """Remove the containers of runs whose work directories are in the folder of the session."""
    if shutil.which("docker") is None:
        return
    layout = f'{{{{.ID}}}} {{{{.Label "{WORKDIR}"}}}}'
    containers = _docker("ps", "--all", "--filter", f"label={WORKDIR}", "--format", layout)
    ours = [line.split()[0] for line in containers.splitlines() if line.split()[1].startswith(f"{folder}/")]
    if ours:
        _docker("rm", "--force", "--volumes", *ours)


def _unmount(folder: Path) -> None:
    """Unmount the file systems that a test has mounted in the folder of the session."""
    mounts = {disk.mountpoint for disk in psutil.disk_partitions(all=True) if disk.mountpoint.startswith(f"{folder}/")}
    for path in sorted(mounts, reverse=True):
        subprocess.run(["umount", path], check=False)


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
