"""The supervisor of an agent in namespaces of its own: ``python -m sandbox.rootless.supervisor WORKDIR LOCK_FD ...``.

It runs outside of the namespaces, as does the run's forwarder. bubblewrap is their child, the first process in the
namespaces is that of bubblewrap, and the others are the agent's. They all end with it, and it ends with the supervisor.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import psutil

from sandbox.confinement import loopback
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.isolation import UNPRIVILEGED
from sandbox.process import processes
from sandbox.process.forking import start_agent
from sandbox.process.supervisor import Supervision, main
from sandbox.rootless import memory, namespaces, syscalls
from sandbox.rootless.limits import Group, bound
from sandbox.supervision import endings
from sandbox.supervision.endings import EndReason

READY_SECONDS = 30.0
FILES = 1024
"""Open files of the forwarder, two for each connection. The services accept fewer connections."""


class RootlessSupervision(Supervision):
    """One run under supervision."""

    mounted_data = True
    _first = 0
    """Process id of the first process in the namespaces."""
    _forwarder = 0
    _group: Group | None = None
    _out_of_memory = False

    def _start(self) -> int:
        if self.launch_spec.cgroup:
            self._group = Group.create(self.launch_spec.marker, self.limits, Path(self.launch_spec.cgroup))
        options = _file("\0".join(self.launch_spec.bubblewrap[1:]).encode())
        program = _file(syscalls.program(counted=self._group is not None))
        reading, writing = os.pipe()
        waiting, going = os.pipe()
        inherited = (options, program, writing, waiting)
        numbers = ("--args", "--seccomp", "--info-fd", "--block-fd")
        passed = [text for name, number in zip(numbers, inherited, strict=True) for text in (name, str(number))]
        bwrap = self.launch_spec.bubblewrap[0]
        self.agent_pid, output = start_agent(
            replace(self.launch_spec, command=[bwrap, *passed, "--", *self.launch_spec.command]),
            Path("/"),
            self.limits,
            inherited=inherited,
            become=self._become,
        )
        for descriptor in inherited:
            os.close(descriptor)
        try:
            with os.fdopen(reading) as info:
                text = info.read()
            self._first = int(json.loads(text)["child-pid"])
            self.tree = processes.ProcessTree(self._first, complete=True)
            if self._group is None:
                self._bound()
            self._await_forwarder()
            os.write(going, b"\n")  # bubblewrap has waited with the command
            if not _was_read(going):
                raise BackendError("bubblewrap ended without a message")
        except BaseException as error:
            # All, before the pipe is closed, on which the first process would go on by itself.
            for pid in filter(None, (self._forwarder, self._first, self.agent_pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if isinstance(error, ValueError | OSError | psutil.Error | BackendError):
                raise BackendError(_last_line(output) or str(error)) from error
            raise
        os.close(going)
        return output

    def _become(self) -> None:
        if self._group is not None:
            self._group.enter()
        if self.launch_spec.staged:
            namespaces.become(UNPRIVILEGED, self.launch_spec.staged)

    def _bound(self) -> None:
        if not self.launch_spec.staged:
            bound(self._first, self.limits)
            return
        child = os.fork()  # root may lack the right to do it to others, in a container
        if child == 0:
            try:
                namespaces.give_up_root(UNPRIVILEGED)
                bound(self._first, self.limits)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def _await_forwarder(self) -> None:
        """Start the forwarder, and wait until it listens."""
        reading, writing = os.pipe()
        self._start_forwarder(writing)
        os.close(writing)
        with os.fdopen(reading) as ready:
            if not (select.select([ready], [], [], READY_SECONDS)[0] and ready.readline()):
                raise BackendError("the forwarder of the run does not start")

    def _start_forwarder(self, output: int) -> None:
        """Start the forwarder in the network of the run."""
        sockets = socket_folder(self.layout.workdir)
        pairs = [f"{port}={sockets / name}" for port, name in loopback.SOCKETS.items()]
        self._forwarder = os.fork()
        if self._forwarder:
            return
        try:  # the child must never return into the supervisor's code
            namespaces.join_network(self._first)
            os.setsid()
            processes.die_with_parent()
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
            for source, target in ((output, 1), (os.open(os.devnull, os.O_WRONLY), 2)):
                os.dup2(source, target)
            os.execve(sys.executable, [sys.executable, "-I", str(loopback.PROGRAM), *pairs], {})  # noqa: S606
        except BaseException as error:
            os.write(2, f"the forwarder cannot be started: {error}\n".encode())
        os._exit(127)

    def _ended(self, pid: int, status: int) -> None:
        super()._ended(pid, status)
        if pid == self._forwarder and self.exit_code is None and self.reason is None:
            null = os.open(os.devnull, os.O_WRONLY)
            self._start_forwarder(null)
            os.close(null)

    def _memory(self, descendants: list[psutil.Process]) -> EndReason | None:
        limit = self.limits.memory_bytes
        if (reason := super()._memory(descendants)) or self._group is not None or not limit:
            return reason
        if memory.shared_bytes(process.pid for process in descendants) > limit:
            return endings.memory_limit(self.limits)
        left = memory.scarce()
        return None if left is None else endings.memory_floor(left)

    def _own_end(self, code: int) -> EndReason | None:
        if code and self._out_of_memory:
            return endings.memory_limit(self.limits)
        return super()._own_end(code)

    def _kill(self) -> int:
        deadline = time.monotonic() + processes.KILL_SECONDS
        ours, forwarder, self._forwarder = processes.ProcessTree(complete=True), self._forwarder, 0
        for pid in (self._first, forwarder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # the kernel kills all processes of a namespace with its first one
        while (alive := ours.processes()) and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.01)
        if self._group is not None:
            self._out_of_memory = self._group.out_of_memory()
            self._group.remove()
        return len(alive)


def _last_line(output: int) -> str:
    """The last line of an output that ends, in which bubblewrap says what it cannot do; empty if there is none."""
    os.set_blocking(output, True)
    lines = os.read(output, 1 << 16).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _file(content: bytes) -> int:
    """A descriptor from which a child reads `content`."""
    descriptor = os.memfd_create("options")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _was_read(pipe: int) -> bool:
    """Wait until nobody can read from a pipe any more; returns whether what was written has been read."""
    poll = select.poll()
    poll.register(pipe, 0)
    poll.poll(READY_SECONDS * 1000)
    unread = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return not int.from_bytes(unread, sys.byteorder)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:], supervision=RootlessSupervision)
    except BackendError as error:
        sys.exit(str(error))
