"""What Prefect puts first on the path of modules: its own folder with a `storage.py`, and the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import prefect.runner
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.runner._workspace_runtime import PreparedWorkspaceManifest, write_private_model
from prefect.states import Cancelling

import mlebench_pipeline
from flows.attempt import attempt
from flows.fleet.registration import SAFE, entrypoint
from tasks.wiring.requests import Attempt, RunRequest
from tests.docs.blocks import ROOT

RUNNER = Path(prefect.runner.__file__).parent


def hook_of(folder: Path, env: dict[str, str], path: str = entrypoint(attempt)) -> subprocess.CompletedProcess[str]:
    """Run the hooks on the cancellation of an attempt as Prefect's worker does, in the directory of a flow run."""
    request = RunRequest(agent="dummy", run_group="g", store=str(folder / "store"))
    work = Attempt(request=request, competition_id="diabetes", seed=0, key="")
    parameters = {"attempt": work.model_dump(mode="json")}
    manifest = PreparedWorkspaceManifest(
        working_directory=folder,
        runtime_entrypoint=path,
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


USERS = ("common", "competitions", "flows", "grading", "sandbox", "storage", "tasks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory, in which a user has files with the names of our packages."""
    for name in USERS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of a user')\n")
    return tmp_path


@pytest.mark.usefixtures("served")  # as a worker's processes are
@pytest.mark.parametrize("env", [SAFE, {"PYTHONSAFEPATH": ""}], ids=["safe", "unsafe"])
def test_our_hooks_load_beside_prefects_storage_and_a_users_files(folder: Path, env: dict[str, str]) -> None:
    assert (RUNNER / "storage.py").exists(), "what this test is about"
    done = hook_of(folder, {**env, "MLEBENCH_DOWNLOADS": "nonsense"})
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "running hook 'end'" in said
    assert "setting MLEBENCH_DOWNLOADS" in said
    assert "common/settings.py" in said, "our modules were imported"


def test_by_the_path_of_their_own_module_they_would_not(folder: Path) -> None:
    """When this fails, Prefect has changed, and `mlebench_pipeline` may have become needless."""
    done = hook_of(folder, SAFE, f"{attempt.fn.__module__}.{attempt.fn.__name__}")
    assert done.returncode == 1
    assert "the file of a user" in done.stdout + done.stderr


def test_processes_that_a_flow_starts_do_not_look_there_either(folder: Path) -> None:
    """Prefect starts the engine with the working directory first in PYTHONPATH, and inserts it while it imports."""
    script = (
        "import multiprocessing, os, subprocess, sys\n"
        "from prefect.utilities.importtools import import_object\n"
        "if __name__ == '__main__':\n"
        f"    import_object({entrypoint(attempt)!r})\n"
        "    import storage.store\n"
        "    print(storage.store.__file__, os.getcwd() in sys.path)\n"
        "    subprocess.run([sys.executable, '-P', '-c', 'import grading.grade'], check=True)\n"
        "    import common.names\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        pool.apply(eval, ['__import__(\"tasks.grading\")and None'])\n"
    )
    (folder / "engine").mkdir()
    (folder / "engine" / "main.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-P", str(folder / "engine" / "main.py")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [str(ROOT / "storage/store.py"), "False"]


def test_the_process_of_an_attempt_imports_no_other_flow() -> None:
    script = (
        "import sys\n"
        "from prefect.utilities.importtools import import_object\n"
        f"print(import_object({entrypoint(attempt)!r}).name)\n"
        "print([each for each in ('flows.unattended', 'flows.nightly', 'flows.recovery') if each in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["attempt", "[]"]


def test_every_flow_of_the_pipeline_is_found_by_its_name() -> None:
    assert sorted(mlebench_pipeline.__all__) == sorted(mlebench_pipeline._MODULES)
    for name in mlebench_pipeline.__all__:
        flow = getattr(mlebench_pipeline, name)
        assert entrypoint(flow) == f"mlebench_pipeline.{name}"
    with pytest.raises(AttributeError, match="nonsense"):
        mlebench_pipeline.nonsense  # noqa: B018
