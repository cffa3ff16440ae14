"""`mlebench serve` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.stores import Store
from tests.waiting import until

ROOT = Path(__file__).parents[2]


@dataclass
class Served:
    """A server, the URL of its clients, and where its sandboxes are."""

    process: subprocess.Popen[str]
    url: str
    scratch: Path

    @property
    def folders(self) -> list[Path]:
        """The work directories of its sandboxes."""
        return [path for path in self.scratch.glob("episodes/*/*") if path.is_dir()]

    def post(self, path: str, **body: Any) -> httpx.Response:
        """Send a JSON object."""
        return httpx.post(f"{self.url}/{path}", json=body, timeout=60)

    def act(self, episode_id: str, type: str, **fields: Any) -> dict[str, Any]:
        """Have an episode carry out an action; returns the answer."""
        answer: dict[str, Any] = self.post("step", episode_id=episode_id, action={"type": type, **fields}).json()
        return answer


@contextlib.contextmanager
def served(
    store: Store, scratch: Path, *options: str, agents: int = 4, host: str | None = None, first: str = "pass"
) -> Iterator[Served]:
    """A server whose sandboxes are processes, unless `options` say otherwise. It executes `first` when it starts."""
    backend = () if "--backend" in options else ("--backend", "process", "--allow-untrusted")
    command = ["serve", "--port", "0", "--store", store.root, "--allow-test-scores", *backend, *options]
    environment = {
        **os.environ,
        "MLEBENCH_SCRATCH": str(scratch),
        "MLEBENCH_HOST_NAME": host or f"serve-{scratch.name}-{os.getpid()}",
        "MLEBENCH_AGENTS": str(agents),
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"{first}; from flows.cli import main; raise SystemExit(main())", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), url
        until(lambda: _healthy(url), what="an answer of the server")
        yield Served(process, url, scratch)
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def _healthy(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/health").status_code == 200
    return False
