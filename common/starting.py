"""Start modules in processes of their own, with rare garbage collections, so that they start and end faster.

    python -P -m common.starting MODULE [ARGUMENT...]

does what `python -P -m MODULE [ARGUMENT...]` does. Imported modules stay until the end of a process. Python's garbage
collector traverses all of them repeatedly while they are imported, and once more at the end, which is useless.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Where programs and libraries are, the language and time zone of texts, and the directory for temporary files."""
COLLECTIONS = (50_000, 20, 20)
"""Thresholds of `gc`: how many new objects, and how many collections of younger ones, lead to a collection."""


def command(module: str, *arguments: str) -> list[str]:
    """The command that starts a module.

    >>> command("grading.workers.server")[1:]
    ['-P', '-m', 'common.starting', 'grading.workers.server']
    """
    return [sys.executable, "-P", "-m", "common.starting", module, *arguments]


def search_path(own: Mapping[str, str] = os.environ) -> str:
    """The PYTHONPATH with which a process finds our packages wherever it starts, followed by that of `own`.

    >>> search_path({"PYTHONPATH": "/a:/b"}).endswith(os.pathsep + "/a:/b"), os.pathsep in search_path({})
    (True, False)
    """
    return os.pathsep.join(filter(None, [str(_ROOT), own.get("PYTHONPATH")]))


def without_secrets(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that runs foreign code or reads hostile input, made from that of this process.

    It has no secrets of the operator: no key of a store, a provider or the evidence.
    """
    return {
        **{name: own[name] for name in _PASSED_VARIABLES if name in own},
        # A file that is edited twice in a second, to the same length, would be read from the cache of the first.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": search_path(own),
    }


def collect_seldom() -> None:
    """Make garbage collections rare in this process, and leave the last one out: the memory is freed anyway."""
    gc.set_threshold(*COLLECTIONS)
    atexit.register(gc.freeze)  # called last: what registers later is called earlier


def main() -> None:
    """Run the module that the first argument names."""
    collect_seldom()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
