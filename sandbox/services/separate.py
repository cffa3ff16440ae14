"""Start a run's services in a process of their own, and start them again if it ends."""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox.errors import BackendError
from sandbox.limits import GIB
from sandbox.services.host import HostSpec
from sandbox.services.messages import Sender, received
from sandbox.validation.checker import SubmissionChecker, Verdict
from sandbox.validation.endpoints import ENDPOINTS

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
CLOSE_SECONDS = 10.0
RESTART_SECONDS = 1.0
"""Time between the end of the process and its next start."""
_ROOT = Path(__file__).parents[2]
_ENVIRONMENT = {
    "PATH": "subprocesses of libraries",
    "LD_LIBRARY_PATH": "Python itself, where it is not installed for all",
    "HOME": "libraries that look for their caches",
    "LANG": "encodings",
    "LC_ALL": "encodings",
    "TZ": "times in messages",
    "SSL_CERT_FILE": "certificates of the providers",
    "SSL_CERT_DIR": "certificates of the providers",
    **{
        name: "proxies on the way to the providers"
        for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
        for name in (variable, variable.lower())
    },
}
"""Variables of the orchestrator that the process gets, and what for. It gets none of the operator's secrets."""


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of the process of a run's services."""

    memory_bytes: int = GIB
    descriptors: int = 512


def environment(operator: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process, from the operator's."""
    variables = {name: operator[name] for name in _ENVIRONMENT if name in operator}
    python_path = operator.get("PYTHONPATH")
    return {**variables, "PYTHONPATH": f"{_ROOT}{os.pathsep}{python_path}" if python_path else str(_ROOT)}


class SeparateHost:
    """The services of a run in another process. The sockets stay open here, so that no request is lost in between."""

    def __init__(
        self,
        spec: HostSpec,
        listeners: dict[str, socket.socket],
        checkers: Mapping[str, SubmissionChecker],
        limits: ProcessLimits,
    ) -> None:
        """Start the process and wait until it serves.

        Raises:
            BackendError: it does not start.
        """
        self._spec, self._listeners, self._checkers, self._limits = spec, listeners, checkers, limits
        self._closing = threading.Event()
        self._started, self._reset = threading.Event(), threading.Event()
        self._failure = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._sender: Sender | None = None
        self._keeper = threading.Thread(target=self._keep, name=f"keeps {spec.folder.parent.name}", daemon=True)
        self._keeper.start()
        if not self._started.wait(START_SECONDS) or self._failure:
            self.close()
            raise BackendError(f"the services of the run do not start: {self._failure or 'no sign of life in time'}")

    @property
    def pid(self) -> int:
        """Process id of the services, 0 between two processes."""
        return self._process.pid if self._process is not None else 0

    def reset_limits(self) -> None:
        """Count only requests from now on towards the limits."""
        self._spec = replace(self._spec, since=datetime.now(UTC).isoformat())
        self._reset.clear()
        with contextlib.suppress(OSError):  # a process that ended will be started with the new time
            if self._sender is not None:
                self._sender.send(reset=True)
                self._reset.wait(CLOSE_SECONDS)

    def close(self) -> None:
        """Stop serving. Requests under way are aborted and logged."""
        self._closing.set()
        process, sender = self._process, self._sender
        if process is not None and sender is not None:
            with contextlib.suppress(OSError):
                sender.send(close=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
            process.kill()
        self._keeper.join()
        for listener in self._listeners.values():
            listener.close()
        for checker in self._checkers.values():
            checker.close()

    def _keep(self) -> None:
        """Run the process, and run it again if it ends before `close`."""
        while not self._closing.is_set():
            self._run()
            if self._failure:
                self._started.set()
                return
            if not self._closing.is_set():
                logger.error("the services of %s ended and are started again", self._spec.folder.parent.name)
            self._closing.wait(RESTART_SECONDS)

    def _run(self) -> None:
        numbers = {name: listener.fileno() for name, listener in self._listeners.items()}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sandbox.services.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=list(numbers.values()),
            env=environment(os.environ),
            start_new_session=True,  # Ctrl-C in a terminal is handled by the orchestrator
        )
        assert process.stdin is not None
        assert process.stdout is not None
        sender = Sender(process.stdin.fileno())
        try:
            start = {"spec": self._spec, "listeners": numbers, **asdict(self._limits)}
            process.stdin.write(base64.b64encode(pickle.dumps(start)) + b"\n")
            process.stdin.flush()
            self._process, self._sender = process, sender
            if self._closing.is_set():
                sender.send(close=True)
            for message in received(process.stdout):
                self._handle(message, sender)
        except OSError:  # it ended
            pass
        finally:
            process.kill()
            process.wait()
            self._process = self._sender = None
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()

    def _handle(self, message: dict[str, Any], sender: Sender) -> None:
        if "ready" in message:
            self._started.set()
        elif "failed" in message:
            self._failure = str(message["failed"])
        elif "reset" in message:
            self._reset.set()
        elif "log" in message:
            logging.getLogger(str(message["name"])).log(int(message["level"]), "%s", message["log"])
        elif "check" in message:
            arguments = (message["endpoint"], [Path(file) for file in message["check"]], message["number"], sender)
            threading.Thread(target=self._check, args=arguments, daemon=True).start()

    def _check(self, endpoint: str, files: list[Path], number: int, sender: Sender) -> None:
        verdict: Verdict = ENDPOINTS[endpoint].verdict("failed")
        folder = self._spec.folder.resolve()
        try:
            if all(file.resolve().is_relative_to(folder) for file in files):  # no other file may be checked
                verdict = self._checkers[endpoint](*files)
        except Exception:  # its text is for the log, never for the agent
            logger.exception("a submission could not be validated")
        with contextlib.suppress(OSError, ValueError):  # the process ended meanwhile
            sender.send(number=number, verdict=asdict(verdict))
