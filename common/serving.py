"""Start Prefect's server, whose garbage is collected by a thread of its own.

    python -P -m common.serving MODULE [ARGUMENT...]

does what `python -P -m common.starting MODULE [ARGUMENT...]` does. On SQLite, Prefect's server stood still for a minute
now and then: a collection in the thread of its event loop frees a cursor, for which it needs the lock of the cursor's
connection. A thread has that lock while it waits until another connection has written, and the other one waits for the
event loop. After 60 seconds, it gives up. A thread that does nothing else may wait there, as it does not keep the
interpreter from the others.
"""

from __future__ import annotations

import gc
import sys
import threading
import time

from common import starting

_PAUSE_SECONDS = 0.25


def command(module: str, *arguments: str) -> list[str]:
    """The command that starts a module of Prefect's server.

    >>> command("uvicorn")[1:]
    ['-P', '-m', 'common.serving', 'uvicorn']
    """
    return [sys.executable, "-P", "-m", __name__, module, *arguments]


def collect_aside() -> None:
    """Have a thread collect garbage in this process whenever Python would, and no other thread."""
    gc.disable()
    threading.Thread(target=_collect, name="garbage", daemon=True).start()


def _collect() -> None:
    while True:
        time.sleep(_PAUSE_SECONDS)
        counts, thresholds = gc.get_count(), gc.get_threshold()
        due = [number for number in range(3) if counts[number] > thresholds[number]]
        if due:
            gc.collect(due[-1])


if __name__ == "__main__":
    collect_aside()
    starting.main()
