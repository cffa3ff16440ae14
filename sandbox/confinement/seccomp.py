"""The system calls that programs of a run may make: a list of our own, the same for every version of the engine.

It is the engine's default list for programs without capabilities, except for calls that no agent needs, and that have
often been used to escape from containers or use tables that all containers share: io_uring, asynchronous I/O and
message queues, ptrace and access to the memory of other processes, filters of system calls and sockets, 32-bit system
calls, mount information, sockets other than those of networks and of this machine. ``ioctl`` cannot change attributes
of files, because the owner of a file could take it out of a quota.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ALLOWED = Path(__file__).with_name("seccomp.txt")
NO_SUCH_CALL = 38
NAMESPACES = 0x7E020000
"""The flags of clone(2) that create namespaces."""
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)
"""The last one is AF_NETLINK, with which programs list network interfaces."""
PERSONALITIES = (0, 0xFFFFFFFF)
"""Linux, and the value that asks for the current personality."""
FILE_ATTRIBUTES = (ord("X"), ord("f"))
"""Types (bits 8 to 15) of the requests to ioctl(2) that read and set attributes of files."""
SET_SECCOMP = 22
"""The operation of prctl(2) that adds a filter of system calls."""
SOCKET_FILTERS = (26, 50, 51, 52)
"""Options of setsockopt(2), at the level SOL_SOCKET, that attach a program. Other levels have other options there."""


@cache
def text() -> str:
    """The profile as JSON."""
    return json.dumps(profile(), allow_nan=False)


def profile() -> dict[str, Any]:
    """The profile in the engine's format."""
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            {"names": ALLOWED.read_text("ascii").split(), "action": "SCMP_ACT_ALLOW"},
            *(_allowed("socket", 0, "SCMP_CMP_EQ", int(family)) for family in FAMILIES),
            *(_allowed("personality", 0, "SCMP_CMP_EQ", personality) for personality in PERSONALITIES),
            _allowed("clone", 0, "SCMP_CMP_MASKED_EQ", NAMESPACES, 0),
            # The flags of clone3 are in memory, where they cannot be checked. Without it, programs use clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": NO_SUCH_CALL},
            *_allowed_but("ioctl", 1, FILE_ATTRIBUTES, shift=8),
            *_allowed_but("prctl", 0, (SET_SECCOMP,)),
            *_allowed_but("setsockopt", 1, (socket.SOL_SOCKET,)),
            *_allowed_but("setsockopt", 2, SOCKET_FILTERS),
        ],
    }


def _allowed(name: str, index: int, comparison: str, value: int, second: int | None = None) -> dict[str, Any]:
    argument = {"index": index, "op": comparison, "value": value}
    if second is not None:
        argument["valueTwo"] = second
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]}


def _allowed_but(name: str, index: int, bytes_: tuple[int, ...], shift: int = 0) -> Iterator[dict[str, Any]]:
    """Rules for a call if a byte of an argument is none of these."""
    for mask, value in _all_but(bytes_):
        yield _allowed(name, index, "SCMP_CMP_MASKED_EQ", mask << shift, value << shift)


def _all_but(bytes_: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Masks and values that together match every byte but these.

    A comparison with "not equal" is not enough: it compares 64 bits, of which the kernel then uses 32.

    >>> list(_all_but((0b11111111,)))[:2]
    [(128, 0), (192, 128)]
    """
    prefixes = [(0, 0)]
    for bit in reversed(range(8)):
        longer = [(mask | 1 << bit, value | digit << bit) for mask, value in prefixes for digit in (0, 1)]
        excluded = [(mask, value) for mask, value in longer if any(byte & mask == value for byte in bytes_)]
        yield from (prefix for prefix in longer if prefix not in excluded)
        prefixes = excluded
