"""The Docker engine: connecting to it, its errors in one line, and the labels by which our containers are found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sandbox.errors import BackendError

if TYPE_CHECKING:
    from docker import DockerClient

PREFIX = "mlebench."
RUN, WORKDIR, ROLE, GPUS = PREFIX + "run", PREFIX + "workdir", PREFIX + "role", PREFIX + "gpus"
AGENT, FORWARDER = "agent", "forwarder"
REQUEST_SECONDS = 60


class EngineGone(BackendError):
    """The engine does not answer (any more)."""


def connect() -> DockerClient:
    """A client of the engine that the environment names (``DOCKER_HOST``, by default this machine's).

    Raises:
        EngineGone: no engine answers there.
    """
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=REQUEST_SECONDS)
        client.ping()
    except (DockerException, OSError) as error:
        raise EngineGone(
            f"no Docker engine answers ({brief(error)}): start it, or set DOCKER_HOST, or use --backend process"
        ) from None
    return client


@contextlib.contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Errors of the engine and of the connection to it as one line that begins with what was being done."""
    import requests
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        raise BackendError(f"{doing}: {brief(error.explanation or error)}") from error
    except (requests.RequestException, DockerException, ConnectionError) as error:
        raise EngineGone(f"{doing}: the Docker engine does not answer ({brief(error)})") from error


def brief(error: Any) -> str:
    """The first line of an error's text, without what Python wraps around it."""
    text = str(error).strip() or type(error).__name__
    for phrase in ("Permission denied", "Connection refused", "No such file or directory", "Read timed out"):
        if phrase in text:
            return phrase.lower()
    return text.splitlines()[0][:300]


def labelled(**labels: str) -> dict[str, str | list[str] | bool]:
    """A filter for lists of containers and networks by our labels: ``labelled(run="x")``."""
    return {"label": [f"{PREFIX}{name}={value}" if value else PREFIX + name for name, value in labels.items()]}
