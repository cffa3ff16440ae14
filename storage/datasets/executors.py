"""Executors of chunks on this machine: in this process, or in several. `storage.datasets.cluster` has that for Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from common.errors import keep_line
from common.temporary import named_in_errors

MAX_PROCESSES = 8


class Executor(Protocol):
    """Maps a function over values, in any order, and yields results as they complete."""

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """`function(value, *fixed)` for each value. `heavy` means that a call may need several GiB of memory."""
        ...


class Serial:
    """An executor that runs everything in this process, in order."""

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """`function(value, *fixed)` for each value. `heavy` means that a call may need several GiB of memory."""
        for value in values:
            try:
                with named_in_errors():
                    result = function(value, *fixed)
            except SystemExit as error:  # a prepare.py raised it, and it must not end the caller
                raise RuntimeError(f"{function.__name__} tried to end the process ({error})") from error
            yield result


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        keep_line(error)
        raise


class ProcessPool:
    """An executor that starts processes for several values, and runs a heavy function or a single value in this one.

    The processes are those of joblib. They do not import the main module of the caller, so a script needs no
    `if __name__ == "__main__"`.
    """

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """`function(value, *fixed)` for each value. The first error ends the processes, and is raised here."""
        if heavy or len(values) < 2:
            yield from Serial().map(function, values, *fixed)
            return
        from joblib.externals.loky import ProcessPoolExecutor, as_completed

        pool = ProcessPoolExecutor(min(os.cpu_count() or 1, MAX_PROCESSES, len(values)))
        try:
            for future in as_completed([pool.submit(_call, function, value, *fixed) for value in values]):
                yield future.result()
        except BaseException:
            pool.shutdown(kill_workers=True)
            raise
        pool.shutdown()
