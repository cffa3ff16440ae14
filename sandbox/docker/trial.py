"""A trial of an engine: a real run of a small agent that shows which limits hold, for `mlebench doctor`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.agent_registry import load_agent
from sandbox.backend import RunSpec
from sandbox.definitions import BASE_IMAGE
from sandbox.docker.backend import DockerBackend
from sandbox.docker.containers import find_image
from sandbox.errors import BackendError
from sandbox.limits import MIB, Limits
from sandbox.supervision import openfiles

if TYPE_CHECKING:
    from docker import DockerClient

_LIMITS = Limits(
    time_limit_seconds=60, grace_seconds=0, memory_bytes=256 * MIB, disk_bytes=16 * MIB, processes=64, cpus=1
)
# The last of them ends the run.
_SCRIPT = """
echo id >"$SUBMISSION_DIR/submission.csv" || echo "it cannot write to its folders"
[ "$(ls /sys/class/net)" = lo ] || echo "it has a network"
[ "$(grep -cE '^(CapEff:.0{16}|NoNewPrivs:.1|Seccomp:.2)$' /proc/self/status)" = 3 ] || echo "it has too many rights"
[ "$(ulimit -n)" = @files@ ] || echo "its open files are not limited"
exec "$MLEBENCH_PYTHON" -c '
import threading
event, threads = threading.Event(), []
try:
    for _ in range(100):
        threads.append(threading.Thread(target=event.wait))
        threads[-1].start()
    print("its processes are not limited", flush=True)
except RuntimeError:
    pass
event.set()
held = bytearray(b"x") * (1 << 30)
print("its memory is not limited", flush=True)
'
"""


def problems(client: DockerClient) -> list[str] | None:
    """Run the agent; returns what does not hold, in words.

    Returns None if there is no base image to run it in.
    """
    try:
        find_image(client, BASE_IMAGE, "base")
    except BackendError:
        return None
    with tempfile.TemporaryDirectory(prefix="mlebench-trial-") as temporary:
        folder = Path(temporary)
        spec = _spec(folder)
        try:
            with DockerBackend(client=client) as backend:
                handle = backend.start(spec)
                lines: list[str] = []
                result = backend.wait(handle, lines.append)
                has_submission = result.submission is not None
                backend.discard(handle)
        except BackendError as error:
            return [str(error)]
    found = [f"in a trial, {line}" for line in lines if line.startswith("it")]
    if result.status != "memory" and "its memory is not limited" not in lines:
        found.append(f"a trial ended as {result.status} instead of memory ({result.message})")
    if not has_submission:
        found.append("the submission of a trial was not collected")
    return found


def _spec(folder: Path) -> RunSpec:
    """A run of the agent, whose files are made in `folder`."""
    agent, data = folder / "trial", folder / "prepared" / "public"
    agent.mkdir()
    files = openfiles.limit(_LIMITS.processes, 1)
    (agent / "start.sh").write_text(_SCRIPT.replace("@files@", str(files)), encoding="utf-8")
    (agent / "agent.yaml").write_text("description: A trial of the engine.\n", encoding="utf-8")
    data.mkdir(parents=True)
    return RunSpec(
        run_id="trial",
        competition_id="trial",
        seed=0,
        agent=load_agent(agent, [agent]),
        data=data,
        workdir=folder / "run",
        limits=_LIMITS,
    )
