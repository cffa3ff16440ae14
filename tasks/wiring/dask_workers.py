"""The executors that write the files of datasets: in the flow's own process, or on Dask workers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from common.settings import get_settings
from storage.datasets.cluster import ClusterError, DaskExecutor, cluster
from storage.datasets.executors import Executor, Serial
from storage.datasets.job import forget_downloads
from tasks.wiring.process import apply_settings

if TYPE_CHECKING:
    from types import TracebackType

SMALL_DOWNLOAD_BYTES = 4 << 20
"""A download of this size is prepared in this process before the first worker of a local cluster would be ready."""


class Workers:
    """The Dask workers of a flow run, as a context: those of the settings, or a local cluster when one is needed.

    Its methods may be called from any thread. `tell` gets the address of the workers' dashboard.
    """

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        settings = get_settings()
        # Workers that run already take no time to start.
        self._small = -1 if settings.dask_address or settings.dask_dashboard else SMALL_DOWNLOAD_BYTES
        self._patience = settings.patience
        self._tell = tell
        self._lock, self._open, self._ended, self._address = threading.Lock(), contextlib.ExitStack(), False, ""

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True  # before the lock, at which a second Ctrl-C may arrive
        with self._lock:
            self._open.close()
        forget_downloads()

    def start(self) -> str:
        """Start or find the workers, unless that has been done; returns the address of their scheduler.

        Raises:
            ClusterError: they cannot be reached, or the flow run has ended.
            UserError: they run other code or other versions of libraries than this process.
        """
        with self._lock:
            if not self._address and not self._ended:
                self._address = self._open.enter_context(self._cluster())
            if self._ended:
                self._open.close()
                raise ClusterError("the flow run of this task has ended; run it again to resume").of_kind("missing")
            return self._address

    def _cluster(self) -> contextlib.AbstractContextManager[str]:
        settings = get_settings()
        return cluster(
            settings.dask_address,
            settings.dask_workers,
            apply_settings,
            settings.dask_dashboard,
            lambda link: self._tell(f"Dask dashboard: {link}"),
        )

    def executor_for(self, size: int, on_wait: Callable[[str], None]) -> Executor:
        """The executor for a download of `size` bytes; `on_wait` gets what Dask waits for. Raises as `start` does."""
        if size <= self._small:
            return Serial()
        return DaskExecutor(self.start(), set_up=apply_settings, on_wait=on_wait, patience=self._patience)
