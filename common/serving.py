"""Start Prefect's server with a thread of its own for garbage collection.

    python -P -m common.serving MODULE [ARGUMENT...]

does what `python -P -m common.starting MODULE [ARGUMENT...]` does. On SQLite, Prefect's server could hang for a minute:
a collection in the thread of its event loop frees a cursor, for which it needs the lock of the cursor's connection.
Another thread has that lock while it waits until a second connection has written, and that one waits for the event
loop. The wait ends with a timeout after 60 seconds. A thread that only collects garbage may wait for the lock, because
the other threads run meanwhile.
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
    """Have only one thread collect garbage in this process, whenever Python would."""
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
