"""A service of this machine on all its addresses, which agents must not reach."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def serving(answer: Callable[[socket.socket], bytes]) -> Iterator[int]:
    """Serve on a free port, which is yielded: each connection is sent what `answer` makes of it, and is closed."""
    server = socket.create_server(("0.0.0.0", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(answer(connection))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()
