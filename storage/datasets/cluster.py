"""Dask: a local cluster or an existing scheduler, and an executor that runs chunks on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import pickle
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from common.causes import cause_of
from common.errors import UserError
from common.guard import HOST, new_credential
from common.guard import address as address_of
from common.patience import HOUR, request_timeout
from common.temporary import named_in_errors

POLL_SECONDS = 5.0
REPORT_SECONDS = 60.0
_CONNECT_SECONDS = 30.0
"""A scheduler whose machine is busy takes more than ten."""
_own: dict[str, Any] = {}
"""The certificates (`distributed.Security`) of this process's local clusters, by address."""
_log = logging.getLogger(__name__)


class ClusterError(UserError):
    """The Dask cluster cannot be reached, or lost its workers."""

    kind = "scheduler"


def worker_memory(workers: int, memory: int) -> int:
    """Memory limit of each of `workers` processes on a machine with `memory` bytes, in bytes.

    It is an equal share, but enough for a prepare.py if the machine has it. Chunks need little, and how many processes
    run a prepare.py at the same time is limited separately, so the sum may exceed the memory of the machine.

    >>> worker_memory(2, 64 << 30) >> 30, worker_memory(16, 32 << 30) >> 30, worker_memory(4, 3 << 30) >> 30
    (32, 5, 3)
    """
    from storage.datasets.workers import DECLARING_BYTES

    return max(memory // workers, min(DECLARING_BYTES, memory))


@contextlib.contextmanager
def cluster(
    address: str | None = None,
    workers: int = 1,
    set_up: Callable[[], None] | None = None,
    dashboard: str | None = None,
    on_dashboard: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Yield the address of a scheduler: `address`, or that of a local cluster with `workers` processes for the block.

    Only this process can use the local cluster, because no other process has its certificate.

    Args:
        address: address of an existing scheduler.
        workers: number of processes of the local cluster.
        set_up: called once in each worker process. It is pickled by name, so it must be a module-level function.
        dashboard: address at which the local cluster serves Dask's dashboard, such as 127.0.0.1:8787; None: no
            dashboard.
        on_dashboard: called with the URL of the dashboard, if the scheduler has one; for that of the local cluster, the
            file with its login follows.

    Raises:
        ClusterError: no scheduler answers at `address`.
        UserError: workers run other code or other versions of libraries than this process.
    """
    from storage.datasets.cluster_access import guard_dashboard
    from storage.datasets.workers import WorkerSetup, declaring_at_once

    if address:
        with contextlib.closing(connect(address)) as client:
            _set_up(client, WorkerSetup(set_up))
            _report_dashboard(client, on_dashboard)
        yield address
        return
    import dask
    import psutil
    from distributed import LocalCluster
    from distributed.security import Security

    # Hide warnings about workers that end while the cluster closes, and about a port that another cluster uses. Not for
    # a block: it may begin and end in different threads, and the filters are those of the process.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=UserWarning, module=r"distributed\b")
    _prepare_forkserver()
    with (
        contextlib.ExitStack() as opened,
        dask.config.set(
            {
                "distributed.worker.daemon": False,
                "distributed.worker.multiprocessing-method": "forkserver",
                # Also without a dashboard, they have HTTP servers.
                "distributed.worker.http.routes": [],
                **({} if dashboard else {"distributed.scheduler.http.routes": []}),
            }
        ),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=worker_memory(workers, psutil.virtual_memory().total),
            host=HOST,
            dashboard_address=dashboard or address_of(0),
            scheduler_kwargs={"dashboard": dashboard is not None},
            security=(security := Security.temporary()),
            silence_logs=logging.CRITICAL,  # errors of tasks are raised in the caller
            env=dict(os.environ),  # the fork server may have a different environment
        ) as local,
    ):
        opened.callback(_own.pop, local.scheduler_address)
        _own[local.scheduler_address] = security
        with contextlib.closing(connect(local.scheduler_address)) as client:
            _set_up(client, WorkerSetup(set_up, declaring=declaring_at_once()))
            if dashboard:
                login = opened.enter_context(tempfile.NamedTemporaryFile("w+", prefix="mlebench-login-"))  # mode 0600
                guard_dashboard(local.scheduler, credential := new_credential())
                login.write(credential + "\n")
                login.flush()
                _report_dashboard(client, lambda link: on_dashboard(f"{link} (login: {login.name})"))
        yield local.scheduler_address


def _set_up(client: Any, plugin: Any) -> None:
    """Set up the workers with a `WorkerSetup`, those that start later included."""
    try:
        client.register_plugin(plugin)
    except UserError:
        raise
    except Exception as error:  # errors of any type: a worker with any code raised it
        if cause_of(error).kind == "scheduler":
            return  # a worker is just ending; the others are set up with their first task
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise ClusterError(
            f"a Dask worker cannot be set up ({text}); restart the workers with this process's installation"
        ) from error


def _report_dashboard(client: Any, on_dashboard: Callable[[str], None]) -> None:
    if "dashboard" in client.scheduler_info(n_workers=0)["services"]:
        on_dashboard(client.dashboard_link)


def _prepare_forkserver() -> None:
    """Fork workers from a process that has imported their modules, so that they start quickly.

    Without this, distributed would import all of its optional packages in this process first.
    """
    import distributed.utils

    from storage.datasets.workers import PRELOADED

    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    distributed.utils._forkserver_preload_set = True


def connect(address: str) -> Any:
    """A `distributed.Client` of a scheduler, also of a local cluster of this process.

    Raises:
        ClusterError: no scheduler answers at the address.
    """
    from distributed import Client

    try:
        if address not in _own:
            _require_answer(address, request_timeout(_CONNECT_SECONDS))
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, security=_own.get(address))
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without a certificate
        raise ClusterError(
            f"no Dask scheduler answers at {address}; start it or unset MLEBENCH_DASK_ADDRESS"
        ) from error


def _require_answer(address: str, seconds: float) -> None:
    """Raise `OSError` unless a scheduler answers: `distributed` waits for ever for one that accepts and is silent."""
    from distributed.comm import connect as connected
    from distributed.security import Security

    async def ask() -> None:
        security = Security().get_connection_args("client")
        comm = await asyncio.wait_for(connected(address, timeout=seconds, **security), seconds)
        await comm.close()

    with ThreadPoolExecutor(1, "dask-address") as thread:  # this one may have an event loop
        thread.submit(asyncio.run, ask()).result()


def _call(packed: bytes) -> Any:
    from storage.datasets.workers import set_up_once

    set_up, client, function, *arguments = pickle.loads(packed)
    client.require()
    set_up_once(set_up)
    with named_in_errors():
        return function(*arguments)


class _Watch:
    """Notices that a scheduler has no workers, because the scheduler waits for them without a message."""

    def __init__(self, client: Any, executor: DaskExecutor, resources: Mapping[str, float] | None) -> None:
        self._client, self._executor, self._resources = client, executor, resources or {}
        self._since: float | None = None
        self._next = time.monotonic() + POLL_SECONDS

    def look(self) -> None:
        """Report once a minute that there are no workers. Raises `ClusterError` after too long a time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + POLL_SECONDS
        if self._workers():
            self._since = None
            return
        self._since = now if self._since is None else self._since
        gone, patience, address = now - self._since, self._executor.patience, self._executor.address
        if gone >= patience:
            # Final: the retries of the task would wait as long again.
            raise ClusterError(
                f"the Dask scheduler at {address} has had no workers for {gone / 60:.0f} minutes; start some, and run "
                "the same command again to resume"
            ).of_kind("missing")
        if gone >= REPORT_SECONDS:
            self._executor.on_wait(f"for Dask workers at {address}; giving up in {(patience - gone) / 60:.0f} min")

    def _workers(self) -> int:
        """The number of workers that could do the work; 0 if the scheduler does not answer."""
        try:
            info = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=10)
        except (OSError, TimeoutError):
            return 0
        offers = (worker["resources"] for worker in info["workers"].values())
        return sum(all(offer.get(name, 0) >= need for name, need in self._resources.items()) for offer in offers)


class DaskExecutor:
    """Maps functions of this package over values on a Dask scheduler.

    Args:
        address: address of the scheduler.
        set_up: called once in each worker process before its first task, unless `cluster` has registered it. It is
            pickled by name, so it must be a module-level function.
        on_wait: called with what it waits for when there has been no worker for a minute.
        patience: seconds without any worker after which the work is given up.
    """

    def __init__(
        self,
        address: str,
        set_up: Callable[[], None] | None = None,
        on_wait: Callable[[str], None] = lambda _: None,
        patience: float = HOUR,
    ) -> None:
        self.address, self.set_up, self.on_wait, self.patience = address, set_up, on_wait, patience

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """Yield results in the order of completion. An error cancels the remaining tasks and is raised here.

        Raises:
            ClusterError: the workers or the scheduler are lost.
            UserError: a worker runs other code or other versions of libraries than this process.
        """
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed

        from storage.datasets.workers import DECLARING, DECLARING_BYTES, WorkerSetup, environment

        if not values:
            return
        client = connect(self.address)
        try:
            _set_up(client, WorkerSetup(self.set_up))
            resources = {DECLARING: 1} if heavy and _offered(client, DECLARING) else None
            # Values are sent as bytes, because Dask searches every list in a value for futures, which takes longer than
            # the work on small files. Tasks write files, so random keys and pure=False prevent their deduplication.
            calls = [pickle.dumps((self.set_up, environment(), function, value, *fixed)) for value in values]
            keys = [f"{function.__name__}-{uuid.uuid4()}" for _ in calls]
            futures = [
                # Dask repeats what a lost worker did. Errors are raised here at once.
                client.submit(_call, call, key=key, pure=False, resources=resources)
                for call, key in zip(calls, keys, strict=True)
            ]
            try:
                finished = as_completed(futures, loop=client.loop)
                watch = _Watch(client, self, resources)
                while not finished.is_empty():
                    if finished.has_ready():
                        future = next(finished)
                        result = future.result()
                        future.release()  # the worker would keep the result until the last chunk is done
                        yield result
                        continue
                    watch.look()
                    with finished.thread_condition:
                        finished.thread_condition.wait(timeout=0.1)
            except KilledWorker as error:
                raise ClusterError(
                    f"Dask workers died doing {function.__name__}, probably because they ran out of memory; give each "
                    f"{DECLARING_BYTES >> 30} GiB with dask worker --memory-limit, or start fewer with "
                    f"MLEBENCH_DASK_WORKERS ({error})"
                ).of_kind("memory") from error
            except CancelledError as error:  # only the loss of the scheduler cancels these futures
                raise ClusterError(
                    f"the connection to the Dask scheduler at {self.address} was lost; start it, and run the same "
                    "command again to resume"
                ) from error
            finally:
                # Cancel unfinished futures only. The scheduler announces every cancellation to all clients, and one
                # that is just connecting mistakes the announcement for a broken handshake and fails.
                unfinished = [future for future in futures if not future.done()]
                if unfinished and client.status == "running":
                    client.cancel(unfinished)
        finally:
            client.close()


def _offered(client: Any, resource: str) -> bool:
    """Whether a worker offers the resource. A task that requires a resource of no worker would wait forever."""
    from storage.datasets.workers import DECLARING_BYTES

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if any(worker["resources"].get(resource) for worker in workers):
        return True
    _log.warning(
        "No Dask worker has a memory limit of %d GiB; the tables of large competitions may not fit "
        "(dask worker --memory-limit)",
        DECLARING_BYTES >> 30,
    )
    return False
