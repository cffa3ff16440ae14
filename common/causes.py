"""Why work fails: a table of causes, which says whether to try again, whose fault it is, and what to do about it.

    cause = cause_of(error)
    if cause.passes: ...            # try again, for at most `patience()` seconds without progress
    print(explain(error))           # one line: what happened, and the remedy

`cause_of` finds the kind of an error in this order:

1. for our own errors, `kind`: a class attribute of `UserError` that subclasses override and instances may set;
2. for errors of libraries and of the system, `common.foreign_errors`: first the class, which says whose error it is,
   then the answer of that server, or `errno`.

An error without a kind of its own, for example "cannot be written" around a refused connection, has that of its cause.
Everything else is a bug.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from common.errors import Kind, UserError, line_of
from common.foreign_errors import kind_of
from common.patience import HOUR

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cause:
    """One row of the table.

    Args:
        kind: its name.
        passes: whether the same work may succeed later without a change by the operator.
        fault: where the cause lies: in the surroundings, with the operator, in the download, or in this program.
        remedy: what to do about it if it does not pass by itself; empty if the error's own message says so.
    """

    kind: Kind
    passes: bool
    fault: Literal["surroundings", "operator", "download", "program"]
    remedy: str = ""


CAUSES: Mapping[Kind, Cause] = MappingProxyType(
    {
        cause.kind: cause
        for cause in (
            Cause("network", True, "surroundings", "check the network, and run the same command again to resume"),
            Cause("dns", True, "surroundings", "check the host name and the name server, and run again to resume"),
            Cause(
                "store",
                True,
                "surroundings",
                "is the server up, and AWS_ENDPOINT_URL right? In a folder: is its disk up?",
            ),
            Cause("prefect", True, "surroundings", "is the Prefect server up, and PREFECT_API_URL right?"),
            Cause("scheduler", True, "surroundings", "start the Dask scheduler and workers, and run again to resume"),
            Cause("engine", True, "surroundings", "is the Docker engine up? Its log says more; run again to resume"),
            Cause("limits", True, "surroundings", "raise the limits of open files and processes, or use fewer workers"),
            Cause("tls", False, "operator", "check http or https in the address, the certificate and SSL_CERT_FILE"),
            Cause("disk full", False, "operator", "make room (mlebench gc), and run the same command again to resume"),
            Cause("refused", False, "operator", "check credentials and permissions"),
            Cause("clock", False, "operator", "set the clock of this machine, and run again to resume"),
            Cause("missing", False, "operator", "check the path or the bucket"),
            Cause("memory", False, "operator", "use fewer workers, or a machine with more memory"),
            Cause("user input", False, "operator"),
            Cause("damaged data", False, "download"),
            Cause("bug", False, "program"),
        )
    }
)
_AWAITED: Mapping[Kind, str] = MappingProxyType(
    {
        "dns": "name server",
        "prefect": "Prefect server",
        "scheduler": "Dask scheduler",
        "engine": "Docker engine",
        "limits": "limits of this machine",
    }
)


def cause_of(error: BaseException) -> Cause:
    """The row of the table for an error.

    >>> import errno
    >>> cause_of(OSError(errno.ENOSPC, "No space left on device")).kind
    'disk full'
    >>> cause_of(ConnectionResetError()).passes
    True
    >>> cause_of(KeyError("x")).kind
    'bug'
    """
    return CAUSES[_kind(error) or "bug"]


def explain(error: BaseException) -> str:
    """What happened, in one line, with the remedy unless the message says what to do.

    For an exception in the code of a competition, with the file and the line.

    >>> import errno
    >>> explain(OSError(errno.ENOSPC, "No space left on device", "/data/x"))
    'No space left on device: /data/x; make room (mlebench gc), and run the same command again to resume'
    >>> explain(OSError(errno.EROFS, "Read-only file system", "/data/tables/.5f3a.partial"))
    'Read-only file system: /data/tables; check credentials and permissions'
    >>> explain(ValueError("wrong"))
    'ValueError: wrong'
    """
    cause = cause_of(error)
    text = _text(error)
    if isinstance(error, UserError):
        return text
    if cause.kind in ("bug", "user input", "damaged data"):
        text = text if text.startswith(type(error).__name__) else f"{type(error).__name__}: {text}"
        line = line_of(error)
        return f"{text} ({line})" if line else text
    return f"{text}; {cause.remedy}" if cause.remedy else text


def retrying(
    function: Callable[[], Result],
    *,
    seconds: float = HOUR,
    on_wait: Callable[[str], None] = lambda _: None,
    max_pause_seconds: float = 60.0,
    pause: Callable[[float], None] = time.sleep,
    passes: Callable[[Exception], bool] = lambda error: cause_of(error).passes,
    what: str = "",
) -> Result:
    """Call `function`, again and again after errors that pass, for at most `seconds` since the first of them.

    Between two calls it waits 1, 2, 4, ... seconds, at most `max_pause_seconds`, more or less. `on_wait` gets a line
    that says what is waited for; `passes` and `what` replace the table's answers. An error that does not pass is raised
    at once, any other one when the time is over.
    """
    first_error_at: float | None = None
    attempts = 0
    while True:
        try:
            return function()
        except Exception as error:
            now = time.monotonic()
            first_error_at = now if first_error_at is None else first_error_at
            remaining_seconds = first_error_at + seconds - now
            if not passes(error) or remaining_seconds <= 0:
                raise
            wait = min(max_pause_seconds, 2.0**attempts * random.uniform(0.5, 1.0), remaining_seconds)
            attempts += 1
            on_wait(waiting_for(error, remaining_seconds, what))
            pause(wait)


def waiting_for(error: BaseException, left: float, what: str = "") -> str:
    """A line on what is waited for; by default what the table says.

    >>> waiting_for(TimeoutError("no answer"), 3600)
    'for the network (no answer); giving up in 60 min'
    """
    kind = cause_of(error).kind
    what = what or _AWAITED.get(kind, kind)
    remaining = f"{left / 60:.0f} min" if left >= 60 else f"{max(left, 0):.0f} s"
    return f"for the {what} ({_text(error)[:200]}); giving up in {remaining}"


def _kind(error: BaseException | None, depth: int = 0) -> Kind | None:
    if error is None or depth > 8:
        return None
    if isinstance(error, UserError):
        own_kind: Kind | None = error.kind
        return own_kind or _kind(error.__cause__, depth + 1) or "user input"
    kind = kind_of(error)
    if kind is None and isinstance(error, OSError):
        kind = _kind(error.__cause__, depth + 1)
        # Reading failed for a reason that has no number, such as a response that was cut short.
        kind = kind or ("store" if type(error) is OSError and error.errno is None else None)
    return kind


def _without_hidden_name(path: Any) -> Any:
    """The path; the folder of a file with a hidden name, such as those that are written before they are renamed."""
    folder, _, name = str(path).rpartition("/")
    return folder if folder and name.startswith(".") else path


def _text(error: BaseException) -> str:
    """The first line of an error's text; an error of the system is shown without its number."""
    if isinstance(error, OSError) and error.strerror:
        name = f": {_without_hidden_name(error.filename)}" if error.filename else ""
        return f"{error.strerror}{name}"
    text = (str(error).splitlines() or [""])[0].strip()
    return type(error).__name__ if text in ("", "None") else text
