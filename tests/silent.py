"""A server that accepts connections and never answers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Its address, as HOST:PORT. The system accepts connections for it."""
    with socket.create_server(("127.0.0.1", 0), backlog=500) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"
