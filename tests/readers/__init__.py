"""The programs that read our exports, in an environment of their own: Inspect, Harbor, ATIF, Every Eval Ever, MLflow.

The official clients of OpenAI and Anthropic, which talk to the gateway, are in it, too.

Their dependencies do not fit with ours, and some need a newer Python. `make readers` installs them into
`.venv-readers`; READERS names another place. Scripts run there get arguments and print one JSON value.

The client of OpenEnv, which talks to `mlebench serve`, is in `.venv-openenv`.

The Inspect port of the benchmark imports `mlebench`. It is in `.venv-inspect`, which has our packages as well.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HOME = Path(os.environ.get("READERS", ROOT / ".venv-readers"))
PYTHON = HOME / "bin" / "python"
OPENENV = ROOT / ".venv-openenv" / "bin" / "python"
INSPECT_PORT = ROOT / ".venv-inspect" / "bin" / "python"


def missing() -> str | None:
    """Why the environment cannot be used; None if it can."""
    return None if PYTHON.exists() else f"{PYTHON} does not exist: make readers"


def missing_openenv() -> str | None:
    """Why the client of OpenEnv cannot be used; None if it can."""
    return None if OPENENV.exists() else f"{OPENENV} does not exist: make readers"


def missing_inspect_port() -> str | None:
    """Why the Inspect port cannot be used; None if it can. It needs files at paths that a namespace provides."""
    if not INSPECT_PORT.exists():
        return f"{INSPECT_PORT} does not exist: make readers"
    tried = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "`unshare -rm true` does not work here"


def read(script: str, *arguments: object, **environment: str) -> Any:
    """Run a Python script in the environment; returns the JSON value in the last line that it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    result = subprocess.run(
        [PYTHON, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**clean, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])
