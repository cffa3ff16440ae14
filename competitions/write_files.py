"""The process in which a competition's function writes the files of a dataset; see `preparing.written_files`.

    python -m competitions.write_files FOLDER MODULE FUNCTION RAW PUBLIC PRIVATE FAILURE

If the function fails, the reason is written to the file FAILURE as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

from common import plain_json
from common.errors import UserError, line_of
from competitions import registry

_PR_SET_PDEATHSIG = 1
_MAX_TEXT_CHARACTERS = 500


def main(folder: str, module: str, function: str, raw: str, public: str, private: str, failure: str) -> int:
    """Call the function; returns the exit code."""
    _limit()
    try:
        write = getattr(registry.load(Path(folder)).module(module), function)
        write(Path(raw), Path(public), Path(private))
    except UserError as error:
        return _failed(failure, f"cannot be called: {error}", error.kind or "user input")
    except MemoryError:
        return _failed(failure, "needs more memory than this machine has", "memory")
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:_MAX_TEXT_CHARACTERS]}"
        line = line_of(error)
        return _failed(failure, f"raised {text} ({line})" if line else f"raised {text}", "bug")
    return 0


def _failed(path: str, reason: str, kind: str) -> int:
    Path(path).write_text(plain_json.dumps({"reason": reason, "kind": kind}), "utf-8")
    return 1


def _limit() -> None:
    """End with the parent process, before other processes if memory runs out, and write no core dump."""
    with contextlib.suppress(OSError, AttributeError):  # of Linux only
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit, value in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.getrlimit(limit)
            resource.setrlimit(limit, (value if hard < 0 else min(value, hard), hard))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
