"""Dask: a local cluster by default, an existing scheduler by address; and the executor that runs chunks on it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from common.errors import UserError
from common.settings import Settings

_PRELOAD = ["storage.datasets.preloaded"]


class ClusterError(UserError):
    """The Dask cluster cannot be reached, or lost its workers."""


@contextlib.contextmanager
def cluster(settings: Settings) -> Iterator[str]:
    """The address of a scheduler: the one in the settings, or that of a local cluster that lives for the block.

    Raises `ClusterError` if the existing scheduler does not answer.
    """
    if settings.dask_address:
        _connect(settings.dask_address)
        yield settings.dask_address
        return
    import dask
    from distributed import LocalCluster

    # Workers that die while the cluster closes are not news, nor is a port that another cluster uses.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    _prepare_forkserver()
    with (
        dask.config.set(
            {"distributed.worker.daemon": False, "distributed.worker.multiprocessing-method": "forkserver"}
        ),
        warnings.catch_warnings(action="ignore", category=UserWarning),
        LocalCluster(
            n_workers=settings.dask_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # a task's error reaches whoever gave it
            env=dict(os.environ),  # the server of forks may have been started with another one
        ) as local,
    ):
        yield local.scheduler_address


def _prepare_forkserver() -> None:
    """Have workers forked from a process that has imported what they need: they start, and stop, in no time.

    distributed would first import all of its optional packages here, to name them to that process.
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
    function, *arguments = pickle.loads(packed)
    return function(*arguments)


class DaskExecutor:
    """Runs functions of this package over values on a Dask scheduler."""

    def __init__(self, address: str) -> None:
        self.address = address

    def map(self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any) -> Iterator[Any]:
        """Results in the order in which they are done. An error of one value cancels the rest and is raised here."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed

        if not values:
            return
        client = _connect(self.address)
        try:
            # Writing a file is done for its effect: equal arguments must not be taken for equal results. As bytes, for
            # Dask would search every list in a value for futures, which takes longer than the work on small files.
            calls = [pickle.dumps((function, value, *fixed)) for value in values]
            keys = [f"{function.__name__}-{uuid.uuid4()}" for _ in calls]
            futures = [
                client.submit(_call, call, key=key, pure=False, retries=2)
                for call, key in zip(calls, keys, strict=True)
            ]
            try:
                for future in as_completed(futures, loop=client.loop):
                    yield future.result()
            except KilledWorker as error:
                raise ClusterError(f"Dask workers died doing {function.__name__}: out of memory? ({error})") from error
            except CancelledError as error:  # nobody else cancels what is waited for
                raise ClusterError(
                    f"the Dask scheduler at {self.address} went away; start it, and run the same command again to go on"
                ) from error
            finally:
                # The scheduler tells every client what was cancelled; one that is just connecting takes that for a
                # broken handshake and fails. So nothing is cancelled that is done.
                unfinished = [future for future in futures if not future.done()]
                if unfinished and client.status == "running":
                    client.cancel(unfinished)
        finally:
            client.close()
