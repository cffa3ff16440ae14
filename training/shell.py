"""A shell in a sandbox that runs commands one after the other and returns the output of each.

The shell reads commands from a pipe, which saves the time to start a program of the container engine for each of them.
After a command it writes a mark to both outputs: a random text that is new for every command. Programs in the sandbox
may end the shell, or write the mark themselves. Either only changes what their own agent is told.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shlex
import shutil
import socket
import struct
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sandbox.docker import runs
from sandbox.docker.engine import EngineUnreachable, connect, engine_errors
from sandbox.errors import BackendError, RunLost
from sandbox.process import processes

COMMAND_CHARACTERS = 100_000
"""The longest command. The kernel limits an argument to 128 KiB."""
_GRACE_SECONDS = 10.0
"""Time that a shell has to write its mark after a command's time limit."""
_MARK_BYTES = 100
"""More than a mark has."""
_OUTPUTS = (1, 2)
_HEADER = struct.Struct(">BxxxL")
_READ_BYTES = 65536
_FAST_BYTES, _BYTES_PER_SECOND = 4 << 20, 4 << 20
"""Output of a command that is read at once, and how fast the rest is. A command that prints faster has to wait."""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    exit_code: int | None
    """137 if it was killed, as at its time limit; None if the command ended the shell."""
    stdout: str
    stderr: str
    seconds: float
    cut: bool
    """Whether the middle of an output was left out."""


class Pipe(Protocol):
    """The inputs and outputs of a shell."""

    def send(self, text: bytes) -> None:
        """Write to its input. Raises `OSError` if it has ended."""
        ...

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """The next piece of output 1 or 2, or None at the end of both. Raises `TimeoutError`."""
        ...

    def end(self) -> None:
        """End the shell, so that a `receive` of another thread returns."""
        ...

    def close(self) -> None:
        """Free what it uses, once no thread is in `receive`."""
        ...


class Shell:
    """Runs commands in a sandbox. A shell that a command has ended is replaced by a new one."""

    def __init__(self, opened: Callable[[], Pipe], variables: Mapping[str, str]) -> None:
        """Run commands in a shell that `opened` starts, with further environment variables."""
        self._opened, self._pipe = opened, opened()
        self._mutex = threading.RLock()
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        self._start = f'{exports}mlebench_shell="$(command -v bash || command -v sh)"\n'.encode()
        self._pipe.send(self._start)

    def run(self, command: str, seconds: float, output_bytes: int) -> Ran:
        """Run a command and wait until it ends or is killed.

        Processes that it leaves in the background go on, and what they write later is part of later outputs.

        Args:
            command: for bash, or for sh where there is none; its input is empty.
            seconds: time limit.
            output_bytes: bytes that are kept of each output, of its beginning and its end.

        Raises:
            RunLost: the shell does not answer, or no new one can be started.
            EngineUnreachable: no new one can be started, because the container engine does not answer.
        """
        mark, began = secrets.token_hex(16), time.monotonic()
        lines = (
            f'timeout -s KILL {seconds:.3f} "$mlebench_shell" -c {shlex.quote(command)} </dev/null\n'
            f"printf '\\n{mark} %d\\n' $?; printf '\\n{mark} \\n' >&2\n"
        )
        outputs = {number: _Output(mark.encode(), output_bytes) for number in _OUTPUTS}
        with self._mutex:
            try:
                self._pipe.send(lines.encode("utf-8", "surrogateescape"))
                self._read(outputs, began + seconds + _GRACE_SECONDS)
            except TimeoutError:
                raise RunLost("a command could not be ended at its time limit") from None
            except OSError:
                pass  # the shell has ended
            if not all(output.complete for output in outputs.values()):
                self._restart()
        texts = [output.text() for output in outputs.values()]
        cut = any(output.left_out for output in outputs.values())
        return Ran(outputs[1].exit_code, texts[0], texts[1], time.monotonic() - began, cut)

    def _read(self, outputs: Mapping[int, _Output], deadline: float) -> None:
        received = 0
        while not all(output.complete for output in outputs.values()):
            piece = self._pipe.receive(deadline - time.monotonic())
            if piece is None:
                return
            outputs[piece[0]].add(piece[1])
            received += len(piece[1])
            if received > _FAST_BYTES:  # or one command could keep this process and the engine busy
                time.sleep(len(piece[1]) / _BYTES_PER_SECOND)

    def _restart(self) -> None:
        self.close()
        try:
            self._pipe = self._opened()
            self._pipe.send(self._start)
        except EngineUnreachable:
            raise
        except (BackendError, OSError) as error:
            raise RunLost(f"the sandbox has ended: {error}") from None

    def close(self) -> None:
        """End the shell, also during a command; programs in the background go on."""
        self._pipe.end()
        with self._mutex:
            self._pipe.close()


class _Output:
    """An output of a command: its beginning and its end, up to the mark."""

    def __init__(self, mark: bytes, keep: int) -> None:
        self._mark, self._keep = b"\n" + mark + b" ", keep
        self._first, self._last = b"", bytearray()
        self.left_out = 0
        self.complete = False
        self.exit_code: int | None = None

    def add(self, piece: bytes) -> None:
        """Add what the command wrote next."""
        if self.complete:
            return
        self._last += piece
        start = self._last.find(self._mark, max(0, len(self._last) - len(piece) - _MARK_BYTES))
        end = self._last.find(b"\n", start + 1) if start >= 0 else -1
        if end >= 0:
            code = bytes(self._last[start + len(self._mark) : end])
            self.exit_code = int(code) if code.isdigit() else None
            self.complete = True
            del self._last[start:]
        spare = self._keep // 2 + (0 if self.complete else _MARK_BYTES)
        if len(self._last) > spare:
            excess = len(self._last) - spare
            moved = min(excess, max(self._keep // 2 - len(self._first), 0))
            self._first += bytes(self._last[:moved])
            self.left_out += excess - moved
            del self._last[:excess]

    def text(self) -> str:
        """What is kept, with a note where something was left out."""
        middle = f"\n[... {self.left_out:,} bytes left out ...]\n".encode() if self.left_out else b""
        return (self._first + middle + bytes(self._last)).decode("utf-8", "replace")


class ContainerPipe:
    """A shell in the container of a run. It has the rights, the limits and the network of the agent."""

    def __init__(self, workdir: Path) -> None:
        """Start a shell. Raises `BackendError` if there is no such container, or if it has ended."""
        client = connect()
        container = runs.find(client, workdir)
        if container is None:
            raise BackendError("it has no container")
        with engine_errors("a shell cannot be started"):
            created = client.api.exec_create(container.id, ["/bin/sh"], stdin=True)
            response: Any = client.api.exec_start(created["Id"], socket=True)
        self._client, self._response = client, response
        self._socket: socket.socket = getattr(response, "_sock", response)
        self._rest = b""

    def send(self, text: bytes) -> None:
        """Write to the shell; see `Pipe.send`."""
        self._socket.settimeout(_GRACE_SECONDS)
        self._socket.sendall(text)

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """Read from the shell; see `Pipe.receive`. The engine sends frames: output, three zeros, length, bytes."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self._rest) >= _HEADER.size:
                output, length = _HEADER.unpack_from(self._rest)
                end = _HEADER.size + length
                if len(self._rest) >= end:
                    piece, self._rest = self._rest[_HEADER.size : end], self._rest[end:]
                    return output, piece
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            received = self._socket.recv(_READ_BYTES)
            if not received:
                return None
            self._rest += received

    def end(self) -> None:
        """End the connection; the shell ends with its input."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._client.close()


class ProcessPipe:
    """A shell as a process of this machine, for agents that are trusted."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Start a shell in a home, with the environment of an agent."""
        self._marker = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [shutil.which("sh") or "/bin/sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env={**env, processes.RUN_MARKER: self._marker},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._selector = selectors.DefaultSelector()
        for number, output in ((1, self._process.stdout), (2, self._process.stderr)):
            assert output is not None
            self._selector.register(output, selectors.EVENT_READ, number)

    def send(self, text: bytes) -> None:
        """Write to the shell; see `Pipe.send`."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """Read from the shell; see `Pipe.receive`."""
        deadline = time.monotonic() + seconds
        while self._selector.get_map():
            ready = self._selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            key, _ = ready[0]
            if piece := os.read(key.fd, _READ_BYTES):
                return int(key.data), piece
            self._selector.unregister(key.fileobj)
        return None

    def end(self) -> None:
        """Kill the shell and all that it has started: `timeout` makes process groups of its own."""
        processes.kill_by_marker(self._marker)

    def close(self) -> None:
        """Close its inputs and outputs."""
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
