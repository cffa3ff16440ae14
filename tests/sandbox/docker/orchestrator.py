"""An orchestrator to be killed: starts the run pickled in the file, and waits for it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from sandbox.docker.backend import DockerBackend

if __name__ == "__main__":
    backend = DockerBackend()
    spec = pickle.loads(Path(sys.argv[1]).read_bytes())
    handle = backend.start(spec)
    print("started", flush=True)
    backend.wait(handle, lambda line: print(line, flush=True))
