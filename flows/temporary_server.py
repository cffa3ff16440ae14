"""Prefect's temporary server, for commands of users who run none.

Prefect would start one itself, but only when a flow begins and by a module that takes longer to import than the rest of
Prefect. Here it starts first, while this process imports what the flow needs, and in a session of its own: Ctrl-C in a
terminal would end it before the flow that is to be stopped.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from common import serving, starting, temporary
from common.errors import UserError
from common.guard import listen, new_credential, origin
from common.processes import start_time
from flows.prefect_server import MODULE

START_SECONDS = 300.0
"""Time that the server has to answer: it takes a few seconds, and far more on a busy machine."""
_STARTED_BY = "MLEBENCH_STARTED_BY"


class TemporaryServer:
    """A Prefect server that is a child of this process, listens on this machine only, and has a login of its own.

    Raises:
        UserError: It does not start; only `wait` raises this.
    """

    def __init__(self) -> None:
        self.credential = new_credential()
        """Its login, the value for PREFECT_API_AUTH_STRING."""
        self._start()

    @property
    def api_url(self) -> str:
        """Its API's address, the value for PREFECT_API_URL."""
        return f"{origin(self._port)}/api"

    def wait(self) -> None:
        """Return once it answers."""
        give_up = time.monotonic() + START_SECONDS
        while not self._answers():
            code = self._process.poll()
            if code is not None or time.monotonic() > give_up:
                self.stop()
                self._output.seek(0)
                lines = self._output.read().decode(errors="replace").split("\n")
                reason = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
                raise UserError(
                    f"Prefect's temporary server did not start: {reason}; its database is in {_home()}, which "
                    "PREFECT_HOME sets"
                )
            time.sleep(0.05)

    def terminate(self) -> None:
        """End it without waiting for its end."""
        self._process.terminate()

    def stop(self) -> None:
        """End it. Idempotent."""
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (the server writes to it as long as it runs)
        with listen() as listener:
            self._port = listener.getsockname()[1]
            self._process = subprocess.Popen(
                serving.command(MODULE, "--socket", str(listener.fileno()), "--log-level", "error"),
                env={
                    **os.environ,
                    "PYTHONPATH": starting.search_path(),
                    "PREFECT_UI_ENABLED": "0",
                    "PREFECT__SERVER_EPHEMERAL": "1",
                    # All users of the machine can read a command line, so the login is here.
                    "PREFECT_SERVER_API_AUTH_STRING": self.credential,
                    **({"PREFECT_HOME": os.path.abspath(home)} if (home := os.environ.get("PREFECT_HOME")) else {}),  # noqa: PTH100  # of text
                },
                cwd="/",  # Prefect's settings in a file of the current directory are those of another server
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
                pass_fds=[listener.fileno()],
            )

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not reach this machine
            with opener.open(f"{self.api_url}/health", timeout=10) as answer:
                return bool(answer.status == 200)
        return False


_running: TemporaryServer | None = None


def start() -> TemporaryServer | None:
    """Start the temporary server of this process, unless it runs, or a server is configured.

    Flows use it from now on; call `wait` before the first one. It ends with this process, at the latest.
    """
    global _running
    if _running is not None:
        return _running
    if not os.environ.get("PREFECT_API_URL"):  # before Prefect is imported, which warns of its home
        temporary.require_room()
        _require_home()
    from prefect.settings import get_current_settings

    if get_current_settings().api.url:
        return None
    end_orphans()
    _running = TemporaryServer()
    atexit.register(stop)
    _use(_running)
    return _running


def _home() -> Path:
    return Path(os.environ.get("PREFECT_HOME") or os.path.expanduser("~/.prefect"))  # noqa: PTH111  # no error


def _require_home() -> None:
    """Raise `UserError` if the server could not write its database."""
    try:
        _home().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=_home()) as file:
            file.write(bytes(1 << 20))
    except OSError as error:
        raise UserError(
            f"Prefect's temporary server cannot write its database in {_home()} ({error.strerror}): set "
            "MLEBENCH_SCRATCH or PREFECT_HOME to a directory of your own with room"
        ) from error


def stop() -> None:
    """End the temporary server of this process, if there is one."""
    global _running
    if _running is not None:
        _running.stop()
        _running = None
        _use(None)


def terminate() -> None:
    """End the temporary server of this process, if there is one, without waiting for it."""
    if _running is not None:
        _running.terminate()


def _use(server: TemporaryServer | None) -> None:
    """Make Prefect use this server in this process, or with None the one of its settings."""
    from prefect.context import refresh_global_settings_context

    from tasks.wiring.prefect_server import set_temporary

    set_temporary(server.api_url if server else None)
    # Child processes must not take it for a server that stays, so it does not remain in the environment.
    server_variables = (
        {"PREFECT_API_URL": server.api_url, "PREFECT_API_AUTH_STRING": server.credential} if server else {}
    )
    previous = {name: os.environ[name] for name in server_variables if name in os.environ}
    os.environ.update(server_variables)
    try:
        refresh_global_settings_context()
    finally:
        for name in server_variables:
            del os.environ[name]
        os.environ.update(previous)


def end_orphans() -> None:
    """End temporary servers whose parent was killed. Otherwise they run forever and share one database.

    In a container, the parent of a server that is in use can be process 1, which inherits orphans, too. Therefore the
    environment of a server names the process that started it.
    """
    import psutil

    for process in psutil.process_iter(["ppid", "cmdline"]):
        if process.info["ppid"] != 1 or MODULE not in (process.info["cmdline"] or ()):
            continue
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            started_by = environment.get(_STARTED_BY)
            if environment.get("PREFECT__SERVER_EPHEMERAL") == "1" and started_by and not _lives(started_by):
                process.terminate()
    os.environ[_STARTED_BY] = f"{os.getpid()} {start_time(os.getpid())}"


def _lives(started_by: str) -> bool:
    """Whether the process that has started a server lives."""
    pid, _, started = started_by.partition(" ")
    return str(start_time(int(pid))) == started
