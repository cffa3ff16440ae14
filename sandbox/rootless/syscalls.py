"""The table of system calls of `sandbox.confinement.seccomp` as the program that the kernel runs, by libseccomp."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from sandbox.confinement import seccomp
from sandbox.errors import BackendError

LIBRARY = "libseccomp.so.2"
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000  # seccomp.h, as are the names of the operators
_OPERATORS = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


UNCOUNTED = ("shmget", "msgget", "memfd_create")
"""Calls that take memory which no process has. Only a cgroup counts it."""


@cache
def program(*, counted: bool = True) -> bytes:
    """The filter for the processor of this machine.

    Calls that the library does not know yet are not allowed.

    Args:
        counted: whether a cgroup limits the memory of the run; otherwise the kernel does not know `UNCOUNTED`, so that
            programs do without them.

    Raises:
        BackendError: the library is missing.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise BackendError(
            f"{LIBRARY} is missing, which makes the filter of system calls: install libseccomp2 (RPM: libseccomp)"
        ) from error
    library.seccomp_init.restype = ctypes.c_void_p
    profile = seccomp.profile()
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ERRNO | profile["defaultErrnoRet"])))
    try:
        for rule in profile["syscalls"]:
            _add(library, context, rule, () if counted else UNCOUNTED)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _add(library: ctypes.CDLL, context: ctypes.c_void_p, rule: dict[str, Any], without: Sequence[str]) -> None:
    unknown = _ERRNO | seccomp.NO_SUCH_CALL
    action = _ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else _ERRNO | rule["errnoRet"]
    comparisons = [
        _Comparison(part["index"], _OPERATORS[part["op"]], part["value"], part.get("valueTwo", 0))
        for part in rule.get("args", ())
    ]
    array = (_Comparison * len(comparisons))(*comparisons)
    for name in rule["names"]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # not known, or not on this processor
            continue
        if code := library.seccomp_rule_add_array(
            context, ctypes.c_uint32(unknown if name in without else action), number, len(comparisons), array
        ):
            raise BackendError(f"{LIBRARY} refuses a rule for {name}: {os.strerror(-code)}")


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    descriptor = os.memfd_create("filter")
    try:
        if code := library.seccomp_export_bpf(context, descriptor):
            raise BackendError(f"{LIBRARY} cannot write the filter of system calls: {os.strerror(-code)}")
        return os.pread(descriptor, 1 << 20, 0)
    finally:
        os.close(descriptor)
