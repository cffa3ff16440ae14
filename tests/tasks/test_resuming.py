"""Agents that can resume continue on another host, with the time and the budget that remain; others begin anew."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from sandbox.isolation import Isolation
from sandbox.serving import ServerThread, listen_tcp
from storage.runs.checkpoints import Checkpoints, abandoned
from storage.runs.evidence.group_manifest import read_manifest
from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder
from storage.store import Store
from tasks.wiring.in_progress import in_progress
from tests import services
from tests.s3.fixtures import Bucket
from tests.sandbox.docker.conftest import base_image
from tests.sandbox.gateway.llm import ScriptedLLM
from tests.tasks.hosts import World

__all__ = ["base_image"]

pytestmark = pytest.mark.slow

AGENT = """\
import json, os, pathlib, shutil, subprocess, time, urllib.request
home = pathlib.Path(os.environ["HOME"])
session = home / ".session" / "steps"
session.parent.mkdir(exist_ok=True)
steps = int(session.read_text()) if session.exists() else 0
told = {name: os.environ.get(name) for name in ("MLEBENCH_RESUMED", "TIME_LIMIT_SECONDS", "LLM_REQUESTS_LIMIT")}
told["resumes"] = "was interrupted" in pathlib.Path(os.environ["INSTRUCTIONS_FILE"]).read_text()
print(json.dumps({"begins": steps, **told}), flush=True)
if "OPENAI_BASE_URL" in os.environ:
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}).encode()
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(address, body, headers)).read()
submission = pathlib.Path(os.environ["SUBMISSION_DIR"], "submission.csv")
shutil.copyfile(os.environ["SAMPLE_SUBMISSION"], submission)
if "PUBLIC_SCORE_SCRIPT" in os.environ:
    subprocess.run(["sh", os.environ["PUBLIC_SCORE_SCRIPT"], submission], check=True)
while not (home / "tmp" / "go").exists():
    steps += 1
    (home / "part").write_text(str(steps))
    (home / "part").replace(session)
    (home / "code" / "steps.txt").write_text(str(steps))
    (home / "tmp" / "works").touch()
    time.sleep(0.02)
print(json.dumps({"ends": steps}))
"""


def counts(folder: Path, resume: str = "resume: [.session]\n") -> str:
    """The folder of an agent that counts its steps in its session."""
    agent = folder / "counts"
    agent.mkdir()
    (agent / "agent.yaml").write_text(f"description: Counts.\ntrusted: true\n{resume}")
    (agent / "start.sh").write_text('exec "$MLEBENCH_PYTHON" "$AGENT_DIR/agent.py"\n')
    (agent / "agent.py").write_text(AGENT)
    return str(agent)


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", str(tmp_path))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_a_run_is_handed_over_before_its_job_ends(store: Store, tmp_path: Path, worlds: list[World]) -> None:
    world = World(store, tmp_path, counts(tmp_path), checkpoint_every=60)
    worlds.append(world)
    end = tmp_path / "end"
    for name in ("one", "two", "three"):
        end.write_text(str(time.time() + 3600))
        host = world.host(name, MLEBENCH_JOB_FILE=str(end))
        host.wait()
        end.write_text(str(time.time()))
        _, errors = host.process.communicate(timeout=60)
        assert host.process.returncode == 1
        assert "handed over because its job ends: run the group again in another job" in errors
        assert not host.layout.workdir.exists()
        newest = world.checkpoint()
        assert newest is not None
        assert newest.host == name, "made when it left"
    end.write_text(str(time.time() + 30))
    late = world.host("late", MLEBENCH_JOB_FILE=str(end))
    _, errors = late.process.communicate(timeout=60)
    assert "the job leaves in" in errors
    assert "and the run needs 1 minute" in errors
    last = world.host("last")
    last.wait()
    begins = [each["begins"] for each in last.finish() if "begins" in each]
    assert begins == sorted(set(begins))
    assert len(begins) == 4
    record = world.folder_of_run().read_run()
    assert record is not None
    assert (record.status, record.tries, record.resumed) == ("completed", 4, 3)


def test_a_run_continues_on_other_hosts_with_what_remains(
    s3: Bucket, tmp_path: Path, worlds: list[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    llm, listener = ScriptedLLM(), listen_tcp("127.0.0.1", None)
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__PRICE_LIST", "openai")
    monkeypatch.setenv("MLEBENCH_LLM_REQUESTS", "5")
    get_settings.cache_clear()
    world = World(Store(s3.url), tmp_path, counts(tmp_path), feedback=0.3)
    worlds.append(world)
    with ServerThread() as thread:
        thread.serve(llm.app(), listener)
        first = world.host("one")
        first.wait()
        one = first.checkpointed()
        first.lose()
        second = world.host("two")
        second.wait()
        two = second.checkpointed()
        second.lose()
        third = world.host("three")
        third.wait()
        said = third.finish()
    begins = [each for each in said if "begins" in each]
    assert begins[0] == {
        "begins": 0,
        "MLEBENCH_RESUMED": None,
        "TIME_LIMIT_SECONDS": "900",
        "LLM_REQUESTS_LIMIT": "5",
        "resumes": False,
    }
    steps = [each["begins"] for each in begins]
    assert 0 < steps[1] < steps[2] <= said[-1]["ends"]
    assert [each["MLEBENCH_RESUMED"] for each in begins[1:]] == ["1", "1"]
    assert [each["LLM_REQUESTS_LIMIT"] for each in begins] == ["5", "4", "3"]
    limits = [float(each["TIME_LIMIT_SECONDS"]) for each in begins]
    assert limits == sorted(limits, reverse=True)
    assert limits[2] < limits[1] < limits[0]
    assert 0 < one.seconds < two.seconds
    assert (one.resumed, two.resumed) == (0, 1)
    folder = world.folder_of_run()
    record = folder.read_run()
    assert record is not None
    assert (record.status, record.tries, record.resumed, record.host) == ("completed", 3, 2, "three")
    assert record.time_limit_seconds == 900
    assert (record.duration_seconds or 0) > two.seconds
    assert str(record.started_at) < str(record.finished_at)
    assert (record.gateway_requests, record.gateway_tokens) == (3, 3150)
    assert len(folder.store.read(f"{folder.files_url}/gateway.jsonl").splitlines()) == 3
    public = [each for each in said if "calls_left" in each]
    assert [(each["submission"], each["calls_left"]) for each in public] == [(1, 4), (2, 3), (3, 2)]
    assert [each["improved"] for each in public] == [True, False, False], "the best file is remembered"
    assert (record.public_score_calls, len({each["best"] for each in public})) == (3, 1)
    assert [folder.store.exists(f"{folder.files_url}/public_scores/{number}.csv") for number in (1, 2, 3)] == [True] * 3
    assert len(folder.store.read(f"{folder.files_url}/public_scores.jsonl").splitlines()) == 3
    assert folder.store.read(f"{folder.files_url}/code/steps.txt").decode() == str(said[-1]["ends"])
    tries = [json.loads(line) for line in folder.store.read(f"{folder.files_url}/tries.jsonl").splitlines()]
    assert [each["resumed_at"] is None for each in tries] == [True, False, False]
    started = [each for each in read_manifest(world.store, "g", None).entries if each["kind"] == "started"]
    assert ["checkpoint" in each for each in started] == [False, True, True]
    assert verify_run(folder, None) == []
    assert not [name for name in s3.names() if name.startswith("checkpoints/")]


def test_an_agent_that_cannot_resume_begins_anew(tmp_path: Path, store: Any, worlds: list[World]) -> None:
    world = World(store, tmp_path, counts(tmp_path, resume=""))
    worlds.append(world)
    first = world.host("one")
    first.wait()
    first.lose()
    assert world.checkpoint() is None
    second = world.host("two")
    second.wait()
    assert [each["begins"] for each in second.finish() if "begins" in each] == [0]
    record = world.folder_of_run().read_run()
    assert record is not None
    assert (record.tries, record.resumed) == (2, None)
    assert in_progress(store, "g") == [], "it has ended, although its tries are stored with it"


def test_a_checkpoint_counts_only_if_it_is_complete(tmp_path: Path, store: Any, worlds: list[World]) -> None:
    world = World(store, tmp_path, counts(tmp_path))
    worlds.append(world)
    folder = RunFolder(store, "g", "diabetes", 0)
    checkpoints = Checkpoints(folder)
    first = world.host("one")
    first.wait()
    made = first.checkpointed()
    first.lose()
    made = world.checkpoint() or made
    assert list(abandoned(store)) == []
    # A host that is lost while it writes one leaves the one before.
    generation, number = map(int, re.findall(r"\d+", made.file)[:2])
    half = f"{generation:08}-{number + 1:08}.tar"
    store.write(f"{checkpoints.url}/{half}", b"half of a checkpoint")
    second = world.host("two")
    second.wait()
    second.checkpointed()
    left = [path.name for path in store.local("checkpoints", "g", "diabetes", 0).glob("*.tar")]
    assert all(name > half for name in left)
    second.lose()
    made = world.checkpoint() or made
    assert made.resumed == 1
    store.write(f"{checkpoints.url}/{made.file}", b"something else")
    third = world.host("three")
    third.wait()
    assert [each["begins"] for each in third.finish() if "begins" in each] == [0]
    record = folder.read_run()
    assert record is not None
    assert (record.tries, record.resumed) == (3, None)
    assert not store.exists(checkpoints.url)
    Store(store.root).write(f"{checkpoints.url}/{made.file}", b"of a host that came back")
    assert list(abandoned(store)) == [folder]


@pytest.mark.parametrize("backend", services.ISOLATING)
@pytest.mark.usefixtures("base_image")
def test_an_isolated_agent_continues_on_another_host(
    tmp_path: Path, store: Any, worlds: list[World], backend: str
) -> None:
    world = World(store, tmp_path, counts(tmp_path), isolation=Isolation(backend, "none"))
    worlds.append(world)
    first = world.host("one")
    first.wait()
    made = first.checkpointed()
    first.lose()
    second = world.host("two")
    second.wait()
    begins = [each for each in second.finish() if "begins" in each]
    assert [each["MLEBENCH_RESUMED"] for each in begins] == [None, "1"]
    assert begins[0]["begins"] < begins[1]["begins"]
    assert float(begins[1]["TIME_LIMIT_SECONDS"]) < 900 - made.seconds + 0.01  # as it is written
    record = world.folder_of_run().read_run()
    assert record is not None
    assert (record.status, record.tries, record.resumed) == ("completed", 2, 1)
