"""Prefect's server behind a guard; on this machine only, unless it is told otherwise.

    python -P -m common.serving flows.prefect_server (--port N [--host ADDRESS] | --socket FD) [--log-level LEVEL]

does what `prefect server start` does, and refuses requests of foreign pages and to foreign names. Its login is
PREFECT_SERVER_API_AUTH_STRING, without which it does not start. FD is an inherited socket of `common.guard.listen`. It
listens before this process has imported Prefect, so that no other program can take the port in the meantime.
"""

from __future__ import annotations

import argparse
import os
import socket

from common.guard import HOST, Guard, listen, names
from common.settings import get_settings

MODULE = "flows.prefect_server"


def main() -> None:
    """Serve until a signal ends this process."""
    parser = argparse.ArgumentParser(description="Prefect's server behind a guard.")
    address = parser.add_mutually_exclusive_group(required=True)
    address.add_argument("--port", type=int)
    address.add_argument("--socket", type=int, metavar="FD")
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--log-level")
    options = parser.parse_args()
    if not os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        parser.error("PREFECT_SERVER_API_AUTH_STRING, its login USER:PASSWORD, is not set")
    listener = socket.socket(fileno=options.socket) if options.socket else listen(options.port, options.host)
    known_names = names(listener.getsockname()[1], get_settings().server_hosts)
    # Pages of this server may call its API by any of its names. By default, Prefect allows all pages.
    origins = sorted(f"{scheme}://{name}" for name in known_names for scheme in ("http", "https"))
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    server = get_current_settings().server
    config = uvicorn.Config(
        Guard(create_app(final=True), known_names),
        lifespan="on",
        timeout_keep_alive=server.api.keepalive_timeout,
        ws_ping_interval=server.api.websocket_ping_interval,
        ws_ping_timeout=server.api.websocket_ping_timeout,
        log_level=(options.log_level or server.logging_level).lower(),
    )
    running = uvicorn.Server(config)
    running.run(sockets=[listener])
    if not running.started:
        raise SystemExit(3)  # as `uvicorn.run` does


if __name__ == "__main__":
    main()
