"""Prefect runs hooks as a script in its own folder, beside a `storage.py`: ours load there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import prefect.runner
from prefect.client.schemas.objects import FlowRun
from prefect.runner._workspace_runtime import PreparedWorkspaceManifest, write_private_model
from prefect.states import Cancelling

from flows.attempt import attempt
from flows.fleet.setup import JOB_VARIABLES
from tasks.wiring.requests import Attempt, RunRequest
from tests.docs.blocks import ROOT

RUNNER = Path(prefect.runner.__file__).parent


def hook_of(folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the hooks on the cancellation of an attempt as Prefect's worker does, in the empty directory of a flow run.

    The store of the attempt has an unknown protocol: the hook ends with our message about it.
    """
    request = RunRequest(agent="dummy", run_group="g", store="nonsense://x")
    work = Attempt(request=request, competition_id="diabetes", seed=0, key="")
    parameters = {"attempt": work.model_dump(mode="json")}
    manifest = PreparedWorkspaceManifest(
        working_directory=folder,
        runtime_entrypoint=f"{attempt.fn.__module__}.{attempt.fn.__name__}",
        hook_command=None,
        environment={},
    )
    written = {
        "manifest": manifest,
        "flow_run": FlowRun(flow_id=uuid4(), parameters=parameters),
        "state": Cancelling(),
    }
    for name, model in written.items():
        write_private_model(folder / name, model)
    script = [str(RUNNER / "_workspace_runtime_bootstrap.py"), "hook", "cancellation"]
    return subprocess.run(
        [sys.executable, *script, *(str(folder / name) for name in written)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_our_hooks_load_beside_prefects_storage(tmp_path: Path) -> None:
    assert (RUNNER / "storage.py").exists(), "what this test is about"
    done = hook_of(tmp_path, JOB_VARIABLES["env"])
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "running hook 'end'" in said
    assert "nonsense" in said
    assert "storage/store.py" in said, "our storage was asked"


def test_without_the_variable_they_would_not(tmp_path: Path) -> None:
    """When this fails, Prefect has changed, and the variable may have become needless."""
    done = hook_of(tmp_path, {"PYTHONSAFEPATH": ""})
    assert done.returncode == 1
    assert "prefect/runner/storage.py" in done.stdout + done.stderr or "'storage' is not a package" in done.stderr
