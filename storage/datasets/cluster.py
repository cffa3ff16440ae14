"""Dask: a local cluster or an existing scheduler, and an executor that runs chunks on it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from common.causes import HOUR
from common.errors import UserError

_LOOK_SECONDS = 5.0
_SAY_SECONDS = 60.0
_PRELOAD = ["storage.datasets.preloaded"]


class ClusterError(UserError):
    """The Dask cluster cannot be reached, or lost its workers."""

    kind = "scheduler"


@contextlib.contextmanager
def cluster(address: str | None = None, workers: int = 1) -> Iterator[str]:
    """Yield the address of a scheduler: `address`, or that of a local cluster with `workers` processes for the block.

    Raises `ClusterError` if no scheduler answers at `address`.
    """
    if address:
        _connect(address).close()
        yield address
        return
    import dask
    from distributed import LocalCluster

    # Hide warnings about workers that end while the cluster closes, and about a port that another cluster uses.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    _prepare_forkserver()
    with (
        dask.config.set(
            {"distributed.worker.daemon": False, "distributed.worker.multiprocessing-method": "forkserver"}
        ),
        warnings.catch_warnings(action="ignore", category=UserWarning),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # errors of tasks are raised in the caller
            env=dict(os.environ),  # the fork server may have a different environment
        ) as local,
    ):
        yield local.scheduler_address


def _prepare_forkserver() -> None:
    """Fork workers from a process that has imported their modules, so that they start quickly.

    Without this, distributed would import all of its optional packages in this process first.
    """
    import distributed.utils

    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOAD)
    distributed.utils._forkserver_preload_set = True


def _connect(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address}; start it or unset MLEBENCH_DASK_ADDRESS"
        ) from error


def _call(packed: bytes) -> Any:
    set_up, function, *arguments = pickle.loads(packed)
    if set_up is not None:
        _set_up_once(set_up)
    return function(*arguments)


@cache  # global, because it must run once per worker process
def _set_up_once(set_up: Callable[[], None]) -> None:
    set_up()


class _Watch:
    """Notices that a scheduler has no workers: it would wait for some without a word."""

    def __init__(self, client: Any, executor: DaskExecutor) -> None:
        self._client, self._executor = client, executor
        self._since: float | None = None
        self._next = time.monotonic() + _LOOK_SECONDS

    def look(self) -> None:
        """Say that there are no workers, once a minute. Raises `ClusterError` when it has lasted too long."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LOOK_SECONDS
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
        if gone >= _SAY_SECONDS:
            self._executor.on_wait(f"for Dask workers at {address}; giving up in {(patience - gone) / 60:.0f} min")

    def _workers(self) -> int:
        """How many workers there are; 0 if the scheduler does not answer."""
        try:
            found = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=10)
        except (OSError, TimeoutError):
            return 0
        return len(found["workers"])


class DaskExecutor:
    """Maps functions of this package over values on a Dask scheduler.

    Args:
        address: address of the scheduler.
        set_up: called once in each worker process before its first task. It is pickled by name, so it must be a
            module-level function.
        on_wait: told what is waited for when there has been no worker for a minute.
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

    def map(self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any) -> Iterator[Any]:
        """Yield results in the order of completion. An error cancels the remaining tasks and is raised here."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed

        if not values:
            return
        client = _connect(self.address)
        try:
            # Values are sent as bytes, because Dask searches every list in a value for futures, which takes longer than
            # the work on small files. Tasks write files, so random keys and pure=False prevent their deduplication.
            calls = [pickle.dumps((self.set_up, function, value, *fixed)) for value in values]
            keys = [f"{function.__name__}-{uuid.uuid4()}" for _ in calls]
            futures = [
                client.submit(_call, call, key=key, pure=False)  # it repeats what a lost worker did, no errors
                for call, key in zip(calls, keys, strict=True)
            ]
            try:
                finished = as_completed(futures, loop=client.loop)
                watch = _Watch(client, self)
                while not finished.is_empty():
                    if finished.has_ready():
                        yield next(finished).result()
                        continue
                    watch.look()
                    with finished.thread_condition:
                        finished.thread_condition.wait(timeout=0.1)
            except KilledWorker as error:
                raise ClusterError(f"Dask workers died doing {function.__name__}: out of memory? ({error})") from error
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
