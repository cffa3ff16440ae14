"""The Docker engine: the connection, its errors as one-line messages, and the labels that identify our containers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.foreign_errors import network_reason
from common.patience import request_timeout
from sandbox.errors import BackendError

if TYPE_CHECKING:
    from docker import DockerClient

PREFIX = "mlebench."
RUN, WORKDIR, ROLE, GPUS = PREFIX + "run", PREFIX + "workdir", PREFIX + "role", PREFIX + "gpus"
AGENT, FORWARDER, BACKSTOP = "agent", "forwarder", "backstop"
REQUEST_SECONDS = 60


class EngineUnreachable(BackendError):
    """The engine does not answer."""

    kind = "engine"


def connect() -> DockerClient:
    """Connect to the engine at ``DOCKER_HOST``, by default to that of this machine.

    Raises:
        EngineUnreachable: no engine answers there.
    """
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=int(request_timeout(REQUEST_SECONDS)))
        client.ping()
        client.api.timeout = REQUEST_SECONDS  # creating a container takes longer
    except (DockerException, OSError) as error:
        raise EngineUnreachable(
            f"no Docker engine answers ({first_line(error)}): start it, or set DOCKER_HOST, or use another --backend"
        ) from None
    return client


@contextlib.contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Raise errors of the engine as `BackendError`, and lost connections as `EngineUnreachable`.

    The message is one line that begins with `doing`, e.g. "run x cannot be started".
    """
    import requests
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        raise BackendError(f"{doing}: {first_line(error.explanation or error)}") from error
    except (requests.RequestException, DockerException, ConnectionError) as error:
        raise EngineUnreachable(f"{doing}: the Docker engine does not answer ({first_line(error)})") from error


def first_line(error: Any) -> str:
    """The first line of an error's text, or the system error in it without the text of the libraries that wrap it."""
    text = str(error).strip() or type(error).__name__
    for phrase in ("Permission denied", "Connection refused", "No such file or directory", "Read timed out"):
        if phrase in text:
            return phrase.lower()
    return network_reason(text) or text.splitlines()[0][:300]


def labelled(**labels: str) -> dict[str, str | list[str] | bool]:
    """A filter by our labels for lists of containers.

    >>> labelled(run="x")
    {'label': ['mlebench.run=x']}
    """
    return {"label": [f"{PREFIX}{name}={value}" if value else PREFIX + name for name, value in labels.items()]}


def parse_time(text: str) -> datetime:
    """Parse the engine's format of times, with nanoseconds and Z, as UTC.

    >>> parse_time("2024-10-09T08:07:06.123456789Z").isoformat()
    '2024-10-09T08:07:06.123456+00:00'
    """
    text = re.sub(r"(\.\d{6})\d+", r"\1", text).replace("Z", "+00:00")
    return datetime.fromisoformat(text).astimezone(UTC)


def out_of_memory_kills() -> int:
    """How many processes the kernel of this machine has killed for lack of memory, in containers and outside."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text("ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
