"""Jobs on a real Slurm, with the scripts of docs/clusters.md: each hands over what it cannot end to the next one."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.runs.folders import RunFolder
from storage.store import Store
from tests import ordinary_user, roots
from tests.agents import write_agent
from tests.deployments.fleet import COUNTING, POOL, WAITING, Fleet, ScriptedAgent, until_states
from tests.deployments.installation import until_served
from tests.docs.blocks import ROOT, blocks
from tests.slurm import Slurm, slurm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.service("slurm")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    folder = Path(tempfile.mkdtemp(prefix="mlebench-slurm-"))
    folder.chmod(0o1777)  # the jobs of all users write their output there
    with slurm(folder) as started:
        yield started
    shutil.rmtree(folder)


@pytest.fixture
def home() -> Iterator[Path]:
    """The folder of an ordinary user."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-user-"))
    ordinary_user.interpreter(folder / "venv")
    ordinary_user.own(folder)
    yield folder
    shutil.rmtree(folder)


def script(name: str, command: str, python: str = sys.executable, shared: Path | None = None) -> str:
    """A job script of the documentation for this machine: with our environment, and another command of `mlebench`."""
    (found,) = (block.text for block in blocks(ROOT / "docs" / "clusters.md") if block.value == name)
    of_a_cluster = ("module load", ". ~/mlebench", "#SBATCH --array")
    lines = [line for line in found.splitlines() if not line.startswith(of_a_cluster)]
    kept = [re.sub(r"--(cpus-per-task|mem)=\w+", r"--\1=1" if "cpus" in line else "--mem=1G", line) for line in lines]
    assert kept[-1].startswith("exec mlebench "), kept
    text = "\n".join([*kept[:-1], f"exec {python} -m flows.cli {command}"]) + "\n"
    return text.replace("/shared/$USER/scratch", str(shared)) if shared else text


def resuming(agent: ScriptedAgent) -> ScriptedAgent:
    """An agent whose only checkpoints are those that are made when its host leaves."""
    definition = agent.folder / "agent.yaml"
    definition.write_text(definition.read_text() + "resume: [.session]\ncheckpoint_every_seconds: 5\n")
    return agent


def continued(begins: list[str]) -> None:
    """The agent has begun twice, and went on with what it had the first time."""
    (first, second) = map(str.split, begins)
    assert first == ["0", "0"]
    assert int(second[0]) > 0
    assert second[1] == "1"


@pytest.mark.service("postgres")
def test_a_worker_hands_over_to_that_of_the_next_job(fleet: Fleet, cluster: Slurm) -> None:
    counting, long = resuming(fleet.agent("counting", COUNTING)), fleet.agent("long", WAITING)
    job_script = script("worker.sbatch", f"worker --slots 2 --pool {POOL}")
    env = {**fleet.env, "SLURM_TMPDIR": str(fleet.folder / "node")}
    first = cluster.submit(job_script, "--time=30", **env)
    until_served("the first worker", lambda: "started!" in cluster.output(first), 400)
    assert f"-job{first}: 2 slots, cpu;" in cluster.output(first), "each job is a host of its own"
    with fleet.detached(counting, "over"), fleet.start(
        "run", "-c", "digits", "--agent", "long", "--pool", POOL, "--run-group", "long", "--time-limit", "1h"
    ):  # fmt: skip
        until_served("an attempt that waits", lambda: fleet.flow_runs("group:long"))
        until_served("some steps", lambda: len(counting.processes()) == 2)
        cluster.signal(first, "USR1")
        until_served("the end of the first job", lambda: cluster.has_ended(first), 200)
        assert cluster.result(first) == "COMPLETED 0:0", cluster.output(first)
        assert re.search(r"It leaves at \S+ \S+, before its job ends\.", cluster.output(first))
        assert fleet.states("group:over") == ["SCHEDULED"]
        assert not counting.processes()
        assert not long.starts(), "an hour was more than its job had"
        second = cluster.submit(job_script, "--time=120", **env)
        until_served("the next try", lambda: len(counting.note("begins")) == 2, 200)
        until_served("the long one", long.starts, 200)
        for agent in (counting, long):
            agent.let_go()
        until_states(fleet, "over", ["COMPLETED"])
        until_states(fleet, "long", ["COMPLETED"])
    continued(counting.note("begins"))
    record = fleet.record("over", "digits")
    assert (record.status, record.tries, record.resumed) == ("completed", 2, 1)
    assert record.host.endswith(f"-job{second}")
    cluster.signal(second, "TERM")
    until_served("the end of the second job", lambda: cluster.has_ended(second), 200)
    assert cluster.result(second) == "COMPLETED 0:0", cluster.output(second)


ISOLATED = """\
mkdir -p "$HOME/.session"
steps=$(cat "$HOME/.session/steps" 2>/dev/null || echo 0)
echo "begins $steps ${MLEBENCH_RESUMED:-0}"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
until [ -e "$HOME/tmp/go" ]; do
    steps=$((steps + 1))
    echo $steps > "$HOME/part"
    mv "$HOME/part" "$HOME/.session/steps"
    sleep 0.1
done
"""


@pytest.mark.service("rootless")
def test_jobs_without_a_server_go_on_where_the_one_before_has_stopped(cluster: Slurm, home: Path) -> None:
    """As an ordinary user, with an agent that is not trusted."""
    agent = write_agent(home / "counting", ISOLATED, trusted=False) / "agent.yaml"
    agent.write_text(agent.read_text() + "resume: [.session]\ncheckpoint_every_seconds: 5\n")
    store, scratch = Store(str(home / "store")), home / "node"
    env = {
        "HOME": str(home), "MLEBENCH_STORE": store.root, "SLURM_TMPDIR": str(scratch), "MLEBENCH_DASK_WORKERS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    user = (*ordinary_user.JOB, f"--export={','.join(['PATH', *env])}")
    command = f"run -c digits --agent {agent.parent} --backend rootless --run-group first"
    job_script = script("run.sbatch", command, str(home / "venv" / "bin" / "python"), roots.scratch())

    def begun() -> list[Path]:
        return [*scratch.glob("runs/*/home/.session/steps")]

    first = cluster.submit(job_script, "--time=2", *user, **env)
    until_served("the agent", begun, 100)
    until_served("the end of the first job", lambda: cluster.has_ended(first), 180)
    assert cluster.result(first) == "FAILED 1:0", cluster.output(first)
    assert "digits seed 0: handed over because its job ends" in cluster.output(first)
    assert not begun()
    second = cluster.submit(job_script, "--time=10", *user, **env)
    until_served("the next try", begun, 100)
    (begun()[0].parents[1] / "tmp" / "go").touch()
    until_served("the end of the second job", lambda: cluster.has_ended(second), 120)
    assert cluster.result(second) == "COMPLETED 0:0", cluster.output(second)
    folder = RunFolder(store, "first", "digits", 0)
    record, grade = folder.read_run(), folder.read_grade()
    assert record is not None
    assert grade is not None
    assert (record.status, record.tries, record.resumed, grade.outcome) == ("completed", 2, 1, "valid")
    assert record.backend == "rootless"
    log = store.read(f"{folder.files_url}/logs/agent.log").decode()
    continued(re.findall("^begins (.*)", log, re.M))
