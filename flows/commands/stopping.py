"""Ctrl-C: agents are ended, nothing else starts, and the process ends within seconds, whatever it waits for.

SIGTERM (`kill`) has the same effect. SIGHUP has not: where a connection is lost, nobody has asked for the end of agents
that may have run for a day. They go on, `mlebench ls` calls them interrupted, and the same command continues them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
STOPPED = "stopped. Finished work is kept; run the same command again to continue."
END_SECONDS = 15.0
"""Time that agents have to end: their grace period, at most 3 seconds then, and what a busy machine adds."""
LEAVE_SECONDS = 5.0
"""Time that the flow has for storing what its agents left, once they have ended. It is stored by the next run, too."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


@contextlib.contextmanager
def interruptible(go_on: str) -> Iterator[None]:
    """End the agents at the first Ctrl-C or SIGTERM in the block, then the process; a second one is immediate.

    A flow may wait for anything: a slot, a store that is away, a server. After the agents have ended, it is given a few
    seconds, and then this process exits. That is safe, as every step can be killed at any moment.

    Args:
        go_on: The line that is printed last, which says how to go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    left, stopping = threading.Event(), False

    def stop(_signal: int, _frame: Any) -> None:
        nonlocal stopping
        if stopping:
            _end_containers()
            _exit("Stopped at once. Agents that have not ended yet are being ended.")
        stopping = True
        _tell("stopping: agents are being ended, no others start; Ctrl-C again stops at once")
        threading.Thread(target=_end, args=(left, go_on), name="stopping", daemon=True).start()
        raise KeyboardInterrupt

    before = {each: signal.signal(each, stop) for each in _SIGNALS}
    try:
        yield
    finally:
        left.set()
        if not stopping:
            for each, handler in before.items():
                signal.signal(each, handler)


def _tell(text: str) -> None:
    """Write a line to standard error, which may be a terminal that is gone."""
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())


def _end_containers() -> None:
    """Have the containers of agents ended by another process: they have no supervisors that would."""
    docker = sys.modules.get("sandbox.docker.backend")
    if docker is not None:
        from tasks.wiring.ending import start

        start()


def _end(left: threading.Event, go_on: str) -> None:
    from tasks.wiring.backends import end_agents

    # In a thread of its own, because a container engine may not answer.
    ending = threading.Thread(target=end_agents, args=("stopped by Ctrl-C",), name="ending agents", daemon=True)
    ending.start()
    ending.join(END_SECONDS)
    if not left.wait(LEAVE_SECONDS):
        _exit(go_on)


def _exit(last_words: str) -> None:
    """End this process and those that it has started, but not the supervisors of agents, which are ending these."""
    if sys.stderr.isatty():
        _tell(_SHOW_CURSOR)
    _tell(f"mlebench: {last_words}")
    _end_server()
    _kill_children()
    os._exit(INTERRUPTED)


def _kill_children() -> None:
    """Kill the other processes of this session: those of Dask. Supervisors of agents have sessions of their own."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if os.getsid(child.pid) == os.getsid(0):
                    child.kill()


def keep_server_from_interrupts() -> None:
    """Have Prefect's temporary server start in a session of its own. Otherwise Ctrl-C in a terminal ends it first.

    Without its server, the flow that is to be stopped fails in every step, with a traceback. Idempotent.
    """
    from prefect.settings import PREFECT_API_URL

    if PREFECT_API_URL.value() is not None:
        return
    from prefect.server.api import server

    # There is no setting for this, and the process is made by a private method.
    module: Any = server
    module.subprocess = _Subprocess()


class _OwnSession(subprocess.Popen[Any]):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "start_new_session": True})


class _Subprocess:
    """The module `subprocess`, whose processes have sessions of their own."""

    Popen = _OwnSession

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)


def _end_server() -> None:
    """End the temporary server without waiting for it."""
    server = sys.modules.get("prefect.server.api.server")
    for each in list(server.SubprocessASGIServer._instances.values()) if server else ():
        if each.server_process is not None:
            each.server_process.terminate()
