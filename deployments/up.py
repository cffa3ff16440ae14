"""A complete local installation without containers: Prefect server, work pool and worker, Dask scheduler and workers.

    python -m deployments.up [--state DIR] [--port N] [--dask-workers N]     # make up
    python -m deployments.up --down [--state DIR]                            # make down

Everything runs in the background and writes below the state directory: logs, process ids, and Prefect's SQLite database
(unless MLEBENCH_DATABASE_URL names a PostgreSQL database). Servers ask for the login in `login` of that directory, and
Dask for the certificate in `dask.pem`; only this user can read them. Starting again starts only missing services.
`--down` ends exactly what was started, beginning with the worker, which stops its flow runs while the server is still
running.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

import psutil

from common import starting
from common.errors import UserError
from common.guard import HOST, address, listen, new_credential, origin, write_private
from common.settings import get_settings
from deployments.background import BackgroundProcesses, ServiceError, free_port
from deployments.server import CREDENTIAL, answers, ask, start_server
from storage.datasets.cluster import worker_memory
from storage.datasets.cluster_access import certificate_environment, certificate_security, write_certificate
from storage.datasets.workers import ONE_MACHINE

_POOL = "mlebench"


class Installation:
    """The services of a state directory, and their addresses."""

    def __init__(self, state: Path, port: int = 4200, dask_workers: int = 2) -> None:
        self.state = state.absolute()
        self.processes = BackgroundProcesses(self.state)
        self.dask_workers = dask_workers
        self._ports, self._files = self.state / "port", self.state / "files-url"
        self.login, self.certificate, self.exports = self.state / "login", self.state / "dask.pem", self.state / "env"
        # A second `up` must use the running server, whichever port it requests.
        if "server" in self.processes.running() and self._ports.exists():
            self.port = int(self._ports.read_text())
        else:
            self.port = port or free_port()

    @property
    def url(self) -> str:
        """The address of the Prefect UI."""
        return origin(self.port)

    @property
    def scheduler_file(self) -> Path:
        """The file that the Dask scheduler writes once it is listening."""
        return self.state / "dask-scheduler.json"

    def dask_address(self) -> str:
        """The address of the Dask scheduler. Raises `FileNotFoundError` before it is listening."""
        return str(json.loads(self.scheduler_file.read_text())["address"])

    def dashboard(self) -> str:
        """The URL of Dask's dashboard."""
        services = json.loads(self.scheduler_file.read_text())["services"]
        return f"{origin(services['dashboard'])}/status"

    @property
    def credential(self) -> str:
        """The login of all servers, USER:PASSWORD. Raises `FileNotFoundError` before the first start."""
        return self.login.read_text().strip()

    def environment(self) -> dict[str, str]:
        """The environment of a process that uses this installation."""
        return {
            "PREFECT_HOME": str(self.state / "prefect"),
            "PREFECT_API_URL": f"{self.url}/api",
            CREDENTIAL: self.credential,
            # Without this the UI would use the default port.
            "PREFECT_UI_API_URL": f"{self.url}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            # The minimum of Prefect. A dead flow run is found after three intervals.
            "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        }

    def dask_environment(self) -> dict[str, str]:
        """The environment of a process that prepares on the Dask cluster of this installation."""
        return {"MLEBENCH_DASK_ADDRESS": self.dask_address(), **certificate_environment(self.certificate)}

    def up(self) -> None:
        """Start the services that are not running, in the order of their dependencies, and register the deployments."""
        self.state.mkdir(parents=True, exist_ok=True)
        if not _is_own(self.state):
            raise ServiceError(f"{self.state} belongs to another user, who can exchange the login: choose another")
        self.state.chmod(0o700)
        running = self.processes.running()
        if not self.login.exists():
            write_private(self.login, f"{new_credential()}\n")
            # Running servers have an earlier login, which was removed, for example because others could read it.
            self.processes.stop()
            running.clear()
        if not _is_own(self.login) or self.login.stat().st_mode & 0o077:
            raise ServiceError(f"others know {self.login}: remove it, and run make up again for a new login")
        if "server" not in running:
            self._start_server()
        if "files" not in running:
            self._start_files()
        if "dask-scheduler" not in running:
            self.processes.stop("dask-workers")
            running.pop("dask-workers", None)
            self._start_scheduler()
        if "dask-workers" not in running:
            self._start_dask_workers()
        self._deploy()
        if "worker" not in running:
            self.start_worker()
        exports = {name: self.environment()[name] for name in ("PREFECT_API_URL", CREDENTIAL)} | self.dask_environment()
        lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
        write_private(self.exports, "\n".join(lines) + "\n")

    def down(self) -> list[str]:
        """End the services that `up` started; returns their names."""
        return self.processes.stop()

    def _start_server(self) -> None:
        self._ports.write_text(str(self.port))
        start_server(self.processes, self.port, self.environment(), os.environ.get("MLEBENCH_DATABASE_URL"))

    def _start_files(self) -> None:
        """Serve the reports of a local store; those in a bucket have signed addresses."""
        from storage.store import Store
        from tasks.wiring.context import open_store

        store: Store = open_store()
        if not store.top.local:
            return
        listener = listen()
        url = origin(listener.getsockname()[1])
        self._files.write_text(url)
        command = starting.command("deployments.files", "--store", store.root, "--socket", str(listener.fileno()))
        command += ["--credential", str(self.login)]
        self.processes.start("files", command, {}, lambda: answers(url), listener)

    def _start_scheduler(self) -> None:
        self.scheduler_file.unlink(missing_ok=True)
        write_certificate(self.certificate)
        command = starting.command("distributed.cli.dask_scheduler", "--host", HOST, "--port", "0", "--protocol", "tls")
        command += ["--dashboard-address", address(0), "--scheduler-file", str(self.scheduler_file)]
        command += ["--preload", "deployments.dashboard"]
        env = certificate_environment(self.certificate) | {CREDENTIAL: self.credential}
        self.processes.start("dask-scheduler", command, env, lambda: bool(self.dask_address()))

    def _start_dask_workers(self) -> None:
        command = starting.command("distributed.cli.dask_worker", self.dask_address())
        # Workers have an HTTP server even without a dashboard. It has no pages, and listens on this machine only.
        command += ["--no-dashboard", "--dashboard-address", address(0)]
        env = certificate_environment(self.certificate) | {"DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}
        command += ["--nworkers", str(self.dask_workers), "--nthreads", "1", "--host", HOST]
        command += ["--memory-limit", str(worker_memory(self.dask_workers, psutil.virtual_memory().total))]
        # By this name, workers know that they share the memory of one machine, see `storage.datasets.workers`.
        command += ["--name", ONE_MACHINE, "--local-directory", str(self.state / "dask")]
        self.processes.start("dask-workers", command, env, lambda: self._dask_worker_count() >= self.dask_workers)

    def _dask_worker_count(self) -> int:
        from distributed import Client

        security = certificate_security(self.certificate)
        with Client(self.dask_address(), timeout="5s", set_as_default=False, security=security) as client:
            return len(client.scheduler_info(n_workers=-1)["workers"])

    def _deploy(self) -> None:
        import subprocess

        # This runs in a separate process, because Prefect reads its settings when it is imported.
        result = subprocess.run(
            starting.command("deployments.deploy", "--pool", _POOL),
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise ServiceError(f"cannot register the deployments: {result.stderr.strip()[-1000:]}")

    def start_worker(self) -> None:
        """Start the Prefect worker; it is ready once the server lists it as online."""
        name = f"{os.uname().nodename}-{os.getpid()}"
        command = starting.command("prefect", "worker", "start", "--pool", _POOL, "--type", "process")
        env = {**self.environment(), **self.dask_environment()}
        if "files" in self.processes.running():
            env["MLEBENCH_FILES_URL"] = self._files.read_text()
        # A worker gives up after twelve failed queries in a row, whose intervals grow: after a quarter of an hour.
        env["PREFECT_WORKER_QUERY_SECONDS"] = os.environ.get("PREFECT_WORKER_QUERY_SECONDS", "20")
        self.processes.start("worker", [*command, "--name", name], env, lambda: name in self._workers())

    def _workers(self) -> set[str]:
        workers = ask(f"{self.url}/api/work_pools/{_POOL}/workers/filter", {}, credential=self.credential)
        return {worker["name"] for worker in workers if worker["status"] == "ONLINE"}


def _is_own(path: Path) -> bool:
    return path.stat().st_uid == os.geteuid()


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description="A complete local installation: Prefect, a worker, Dask.")
    parser.add_argument("--down", action="store_true", help="end what was started")
    parser.add_argument("--state", type=Path, default=Path(".mlebench"), help="state directory (default: .mlebench)")
    parser.add_argument("--port", type=int, default=4200, help="port of the UI and API; 0: a free one (default: 4200)")
    parser.add_argument("--dask-workers", type=int, default=2, help="Dask worker processes (default: 2)")
    options = parser.parse_args(arguments)
    try:
        get_settings()  # rewrites proxies and certificates for the services, too
    except UserError as error:
        print(f"up: {error}", file=sys.stderr)  # noqa: T201
        return 2
    installation = Installation(options.state, options.port, options.dask_workers)
    if options.down:
        print("ended: " + (", ".join(installation.down()) or "nothing was running"))  # noqa: T201
        return 0
    try:
        installation.up()
    except (ServiceError, UserError) as error:
        installation.down()
        print(f"up: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"Prefect UI  {installation.url}")  # noqa: T201
    print(f"Dask        {installation.dask_address()}")  # noqa: T201
    print(f"Dashboard   {installation.dashboard()}")  # noqa: T201
    print(f"Login       {installation.login}; the UI asks for the whole line")  # noqa: T201
    print(f"Logs        {installation.state}")  # noqa: T201
    print(f"\n. {shlex.quote(str(installation.exports))}  # for programs: the addresses and the login")  # noqa: T201
    print("prefect deployment run nightly/nightly-lite --param split=demo")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
