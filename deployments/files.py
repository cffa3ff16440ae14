"""Serve the reports and the files of runs of a local store, so that links in the Prefect UI open in a browser.

    python -m deployments.files --store URL --port N

Browsers do not follow links from pages of the UI to file:// addresses. Only this machine is served, without a password:
what lies below `reports/` and `runs/`, and neither datasets nor answers.
"""

from __future__ import annotations

import argparse
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deployments.server import HOST
from storage.store import Store, browser_type, is_page

SERVED = ("reports", "runs")
"""Folders of the store that are served."""


class _Handler(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        path = unquote(urlsplit(self.path).path)
        # Another host name means that a web page has had its own name resolved to this address.
        same_host = (self.headers.get("Host") or "").partition(":")[0] in (HOST, "localhost")
        if not same_host or path.split("/")[1:2] not in [[each] for each in SERVED] or ".." in path.split("/"):
            self.send_error(404)
            return None
        if not self._is_inside():
            self.send_error(404)
            return None
        return super().send_head()

    def _is_inside(self) -> bool:
        """Whether the file or folder exists, and no link leads out of the folders that are served."""
        tops = [Path(self.directory, each).resolve() for each in SERVED]
        try:
            found = Path(self.translate_path(self.path)).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # none, a name that no file has, or links that form a circle
            return False
        return any(found.is_relative_to(top) for top in tops) and (found.is_file() or found.is_dir())

    @property
    def _relative(self) -> str:
        return unquote(urlsplit(self.path).path).strip("/")

    def guess_type(self, path: Any) -> str:
        """Reports are shown as pages, and everything that agents leave as text."""
        return browser_type(self._relative)

    def end_headers(self) -> None:
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if not is_page(self._relative):  # lists of files are pages too, and names are chosen by agents
            self.send_header("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal ends this process; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve reports and the files of runs of a local store.")
    parser.add_argument("--store", required=True, help="root of the store, a local directory")
    parser.add_argument("--port", type=int, required=True, help=f"port on {HOST}")
    options = parser.parse_args(arguments)
    folder = Store(options.store).local()
    if folder is None:
        parser.error(f"{options.store} is not a local directory")
    folder.mkdir(parents=True, exist_ok=True)
    ThreadingHTTPServer((HOST, options.port), partial(_Handler, directory=str(folder))).serve_forever()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
