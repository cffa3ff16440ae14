"""The whole command as an ordinary user, without a daemon: from the root file system of an image to grades."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sandbox.definitions import BASE_IMAGE
from sandbox.rootless.roots import root_of
from storage.tables import read_table
from tests import roots
from tests.agents import write_agent
from tests.ordinary_user import BECOME, interpreter, own
from tests.stores import Store

pytestmark = [pytest.mark.service("rootless"), pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The folder of an ordinary user, of this one if that is not root: an interpreter, and the base image's root."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-user-"))
    interpreter(folder / "venv")
    own(folder)
    mlebench(folder, "build", "base", "--rootless", "--from", str(root_of(BASE_IMAGE, roots.scratch()).path))
    yield folder
    shutil.rmtree(folder)


def mlebench(home: Path, *arguments: str, within: Sequence[str] = ()) -> None:
    """Run a command, which is started by another one if `within` says so."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PREFECT_HOME": str(home / "prefect"),
        "MLEBENCH_SCRATCH": str(home / "scratch"),
        "MLEBENCH_STORE": str(home / "store"),
        "MLEBENCH_HOST_NAME": home.name,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*within, *BECOME, str(home / "venv" / "bin" / "python"), "-m", "flows.cli", *arguments]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_untrusted_agent_on_several_competitions_from_the_command_to_the_grades(home: Path, packs: Path) -> None:
    downloads, names = home / "downloads", ["diabetes", "leaf-classification", "spooky-author-identification"]
    downloads.mkdir()
    for name in names[1:]:
        shutil.copy(packs / name / "raw.zip", downloads / f"{name}.zip")
    (home / "names.txt").write_text("\n".join(names))
    agent = write_agent(
        home / "stranger",
        'id -u; cp "$SAMPLE_SUBMISSION" submission/submission.csv; sh "$VALIDATE_SCRIPT" submission/submission.csv',
        trusted=False,
    )
    given = ("--list", str(home / "names.txt"), "--raw-dir", str(downloads), "--skip-verification")  # miniatures
    mlebench(home, "run", *given, "--agent", str(agent), "--backend", "rootless", "--run-group", "mine")
    store = Store(str(home / "store"))
    runs = read_table(store, "runs", ["mine"])
    assert sorted(runs["competition_id"]) == names
    for run in runs.to_dict("records"):
        assert (run["status"], run["backend"], run["network"]) == ("completed", "rootless", "gateway")
        assert run["enforcement"].startswith("memory: "), "what holds is recorded"
        assert (run["image"], run["validation_calls"]) == (BASE_IMAGE, 1)
        log = store.local("runs", "mine", run["competition_id"], 0) / "logs" / "agent.log"
        assert (log.read_text().splitlines()[0], "valid" in log.read_text()) == ("1000", True)
    assert list(read_table(store, "grades", ["mine"])["outcome"]) == ["valid"] * 3
    report = (store.local("reports", "mine") / "report.md").read_text().replace("\\", "")
    assert all(name in report for name in names)


FAR = """
ip link set lo up
ip route add local 9.9.9.9 dev lo
{ cat /etc/hosts; echo 9.9.9.9 far.example; } > "$0/hosts"
mount --bind "$0/hosts" /etc/hosts
python3 -m http.server 80 --directory "$0" 2>/dev/null &
trap 'kill $!' EXIT
until curl --silent http://far.example/page; do sleep 0.1; done
"$@"
"""
"""Start a command where a server is at a public address, in a network without any other machine."""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network of its own")
def test_an_untrusted_agent_under_the_policy_open(home: Path) -> None:
    (page := home / "far").mkdir()
    (page / "page").write_text("hello from far away\n")
    agent = write_agent(
        home / "reader",
        """
        curl --silent http://far.example/page
        "$MLEBENCH_PYTHON" -c 'import urllib.request as r; print(r.urlopen("http://far.example/page").read(9))'
        curl --silent --proxytunnel http://far.example/page
        curl --silent --noproxy '*' http://9.9.9.9/page || echo "not directly"
        curl --silent http://192.168.0.1/page
        cp "$SAMPLE_SUBMISSION" submission/submission.csv
        """,
        trusted=False,
    )
    options = ("--agent", str(agent), "--backend", "rootless", "--network", "open", "--run-group", "far")
    within = ("unshare", "--net", "--mount", "sh", "-ec", FAR, str(page))
    mlebench(home, "run", "-c", "diabetes", *options, within=within)
    store = Store(str(home / "store"))
    [run] = read_table(store, "runs", ["far"]).to_dict("records")
    assert (run["status"], run["network"]) == ("completed", "open")
    log = (store.local("runs", "far", "diabetes", 0) / "logs" / "agent.log").read_text()
    assert log.splitlines() == [
        "hello from far away",
        "b'hello fro'",
        "hello from far away",
        "not directly",
        "192.168.0.1 has the address 192.168.0.1, which is private",
    ]
    assert list(read_table(store, "grades", ["far"])["outcome"]) == ["valid"]
