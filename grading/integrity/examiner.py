"""Call functions on agents' files in a process with limits, which is replaced if a file is too much for it.

A parser may need quadratic time, gigabytes of memory or a deep stack for a file that was made for that. Such a file
must not stop the examination of a whole group, and it is a finding itself.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO, Any, ParamSpec, Self, TypeVar

from common.starting import search_path

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SECONDS = 30.0
"""Time for one file. Honest ones take milliseconds."""
START_SECONDS = 120.0
MEMORY_BYTES = 4 * 1024**3


class Unreadable(Exception):
    """A file could not be examined; the message says why."""


class Examiner:
    """A process for calls with limits. Use it in a `with` statement."""

    def __init__(self, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES) -> None:
        self._seconds, self._memory = seconds, memory_bytes
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

    def call(
        self, function: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        """Call a function of a module with values that can be pickled.

        Raises:
            Unreadable: it took too long or too much memory, it failed, or it ended the process.
        """
        process = self._start()
        assert process.stdin is not None
        try:
            _write(process.stdin, (function.__module__, function.__qualname__, args, options))
            result, error = self._answer(process, self._seconds)
        except (OSError, EOFError, TimeoutError) as failure:
            self._end()
            late = isinstance(failure, TimeoutError)
            reason = f"it takes longer than {self._seconds:g} seconds" if late else "it ends the process that reads it"
            raise Unreadable(reason) from None
        if error:
            raise Unreadable(error)
        return result

    @staticmethod
    def _answer(process: subprocess.Popen[bytes], seconds: float) -> tuple[Any, str]:
        assert process.stdout is not None
        deadline, content, expected_bytes = time.monotonic() + seconds, bytearray(), 8
        while len(content) < expected_bytes:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            chunk = os.read(process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise EOFError
            content += chunk
            if expected_bytes == 8 and len(content) >= 8:
                expected_bytes += struct.unpack("!Q", content[:8])[0]
        answer: tuple[Any, str] = pickle.loads(bytes(content[8:]))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "grading.integrity.examiner", str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={
                    # for the interpreter; a parser of agents' files gets none of the operator's secrets
                    **{name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ},
                    "PYTHONPATH": search_path(),
                },
                start_new_session=True,  # Ctrl-C in a terminal is handled by the parent process
            )
            self._answer(self._process, START_SECONDS)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _write(stream: IO[bytes], value: Any) -> None:
    content = pickle.dumps(value)
    stream.write(struct.pack("!Q", len(content)) + content)
    stream.flush()


def main() -> None:
    """Answer the calls on standard input."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _write(answers, (None, ""))  # the process is ready, and the time limit begins
    while size := calls.read(8):
        module, name, args, options = pickle.loads(calls.read(struct.unpack("!Q", size)[0]))
        try:
            answer = getattr(importlib.import_module(module), name)(*args, **options), ""
        except MemoryError:
            answer = None, "it takes too much memory"
        except RecursionError:
            answer = None, "it is nested too deeply"
        except Exception as error:  # a parser may raise any exception for hostile content
            answer = None, f"{type(error).__name__} while it was read"
        _write(answers, answer)


if __name__ == "__main__":
    main()
