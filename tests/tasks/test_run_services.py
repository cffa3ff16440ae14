"""An agent validates, asks a language model, and submits: end to end with the process backend and real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from sandbox import serving
from sandbox.docker.engine import connect
from sandbox.docker.network import remove
from sandbox.gateway.prices import version_of_prices
from sandbox.isolation import PROCESSES, Isolation
from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder
from storage.tables import read_table
from tasks.agent_run import run_agent
from tasks.report import write_tables
from tasks.wiring.backends import stop_all
from tasks.wiring.requests import Attempt, RunRequest
from tests import roots, services
from tests.sandbox.docker.conftest import base_image
from tests.sandbox.gateway.llm import KEY, ScriptedLLM
from tests.stores import Store, put_dataset
from tests.waiting import until

__all__ = ["base_image"]

AGENT = """\
#!/bin/bash
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
sh "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv" > "$LOGS_DIR/valid.json"
echo a,b > "$TMPDIR/bad.csv"
sh "$VALIDATE_SCRIPT" "$TMPDIR/bad.csv" > "$LOGS_DIR/invalid.json"
env > "$LOGS_DIR/environment"
cp "$INSTRUCTIONS_FILE" "$LOGS_DIR/instructions"
cat > "$CODE_DIR/ask.py" <<'END'
import json, os, sys, urllib.error, urllib.request

base, key, model, path = sys.argv[1:]
body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "Predict."}]}
request = urllib.request.Request(base + path, json.dumps(body).encode(), {"x-api-key": key})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["error"]["message"])
END
ask="$MLEBENCH_PYTHON $CODE_DIR/ask.py"
$ask "$OPENAI_BASE_URL" "$OPENAI_API_KEY" gpt-4o /chat/completions >> "$LOGS_DIR/answers"
$ask "$ANTHROPIC_BASE_URL" "$ANTHROPIC_API_KEY" claude-3-5-sonnet /v1/messages >> "$LOGS_DIR/answers"
$ask "$OPENAI_BASE_URL" "$OPENAI_API_KEY" gpt-4o /chat/completions >> "$LOGS_DIR/answers"
"""


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    llm = ScriptedLLM()
    listener = serving.listen_tcp("127.0.0.1", None)
    llm.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with serving.ServerThread() as thread:
        thread.serve(llm.app(), listener)
        yield llm


@pytest.fixture
def store(store: Store) -> Store:
    """A store with the competition diabetes, prepared."""
    put_dataset(store, "diabetes")
    return store


@pytest.fixture
def attempt(
    tmp_path: Path, llm: ScriptedLLM, store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Let an agent with this start.sh run on diabetes; returns the run's record."""
    settings = {"SCRATCH": str(tmp_path / "scratch"), "AGENT_DIRS": json.dumps([str(tmp_path / "agents")])}
    settings |= {"LLM_REQUESTS": "2", "LLM_TRANSCRIPTS": "true"}
    for name, api, path in (("OPENAI", "openai", "/v1"), ("CLAUDE", "anthropic", "")):
        provider = f"PROVIDERS__{name}__"
        settings |= {f"{provider}API": api, f"{provider}BASE_URL": llm.url + path, f"{provider}API_KEY": KEY}
        settings |= {f"{provider}PRICE_LIST": api}
    for name, value in settings.items():
        monkeypatch.setenv(f"MLEBENCH_{name}", value)
    get_settings.cache_clear()
    folder = tmp_path / "agents" / "asking"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        "description: Asks.\ntrusted: true\nlimits: {time_limit_seconds: 120, grace_seconds: 1}\n"
    )

    def attempt(script: str, isolation: Isolation = PROCESSES) -> dict[str, Any]:
        (folder / "start.sh").write_text(script)
        request = RunRequest(agent="asking", run_group="group", store=store.root, isolation=isolation)
        run_agent(Attempt(request=request, competition_id="diabetes", seed=0, key="key"))
        record: dict[str, Any] = store.read_json(store.run("group", "diabetes", 0) + "/run.json")
        return record

    yield attempt
    stop_all()
    get_settings.cache_clear()


def test_an_agent_validates_asks_and_submits(
    attempt: Callable[..., dict[str, Any]], store: Store, llm: ScriptedLLM, tmp_path: Path
) -> None:
    record = attempt(AGENT)
    assert record["status"] == "completed"
    assert record["submission_exists"]
    assert record["validation_calls"] == 2
    assert record["gateway_requests"] == 2
    assert record["gateway_tokens"] == 2100
    assert record["gateway_cost_usd"] > 0
    assert record["prices"] == version_of_prices()

    run = store.local("runs", "group", "diabetes", 0)
    assert run is not None
    assert json.loads((run / "logs" / "valid.json").read_text()) == {"result": "Submission is valid."}
    invalid = json.loads((run / "logs" / "invalid.json").read_text())["result"]
    assert invalid.startswith("Submission invalid! ")
    assert (run / "logs" / "answers").read_text().splitlines() == [
        "200",
        "200",
        "429 the budget of this run, 2 requests to language models, is used up",
    ]
    told = (run / "logs" / "instructions").read_text()
    assert "Language models: at most 2 requests for the whole run" in told
    assert "You can use it 2,000 times, at most 20 times per minute." in told
    verdicts = [json.loads(line)["verdict"] for line in (run / "validation.jsonl").read_text().splitlines()]
    assert verdicts == ["valid", "invalid"]
    assert len((run / "transcripts.jsonl").read_text().splitlines()) == 2
    trajectory = json.loads((run / "trajectory.json").read_text())
    assert [step["source"] for step in trajectory["steps"]] == ["user", "agent", "agent", "system"]
    assert trajectory["final_metrics"]["total_cost_usd"] == pytest.approx(record["gateway_cost_usd"])
    assert "def solve(): return 42" in (run / "trajectory.html").read_text()
    assert verify_run(RunFolder(store, "group", "diabetes", 0), None) == []
    for path in run.rglob("*"):  # the agent's environment among them
        assert path.is_dir() or KEY not in path.read_text()
    assert [seen.path for seen in llm.requests] == ["/v1/chat/completions", "/v1/messages"]
    assert not list((tmp_path / "scratch" / "runs").glob("*/records"))

    write_tables(store, "group")
    usage = read_table(store, "usage")
    assert usage["model"].tolist() == ["gpt-4o", "claude-3-5-sonnet"]
    assert set(usage["run_id"]) == {record["run_id"]}
    assert usage["input_tokens"].tolist() == [1000, 1000]
    assert usage["cost_usd"].sum() == pytest.approx(record["gateway_cost_usd"])
    assert {"competition_id", "seed", "output_tokens", "latency_seconds", "started_at", "status"} <= set(usage)
    runs = read_table(store, "runs")
    assert (runs["validation_calls"].tolist(), runs["prices"].tolist()) == ([2], [version_of_prices()])


LOST = """
import sys
from sandbox.isolation import Isolation
from tasks.agent_run import run_agent
from tasks.wiring.requests import Attempt, RunRequest
request = RunRequest(agent="asking", run_group="group", store=sys.argv[1], isolation=Isolation(sys.argv[2]))
run_agent(Attempt(request=request, competition_id="diabetes", seed=0, key="key"))
"""

# It goes on when told that the orchestrator is dead, and then knocks until the services are back.
PATIENT = """\
#!/bin/bash
ask() {
    curl --silent --output /dev/null --write-out '%{http_code} ' -H "Authorization: Bearer $OPENAI_API_KEY" \\
        --json '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Predict."}]}' \\
        "$OPENAI_BASE_URL/chat/completions" >> "$LOGS_DIR/codes"
}
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
sh "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"
ask
touch "$LOGS_DIR/before"
until [ -e "$TMPDIR/dead" ]; do sleep 0.1; done
until sh "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv" > "$LOGS_DIR/after" 2>> "$LOGS_DIR/refused"; do
    touch "$LOGS_DIR/knocked"
    sleep 0.2
done
ask
ask
"""


@pytest.fixture
def isolation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Isolation]:
    if request.param == "docker":
        request.getfixturevalue("base_image")
    if request.param == "rootless":
        roots.lend(tmp_path / "scratch")
    yield Isolation(request.param)
    if request.param == "docker":
        for workdir in (tmp_path / "scratch" / "runs").iterdir():  # of a test that failed half-way
            remove(connect(), workdir)


@pytest.mark.parametrize("isolation", services.BACKENDS, indirect=True)
def test_services_are_back_when_a_killed_orchestrator_is(
    attempt: Callable[..., dict[str, Any]], store: Store, tmp_path: Path, isolation: Isolation
) -> None:
    """The agent goes on meanwhile, finds both services where they were, and what it used before counts."""
    (tmp_path / "agents" / "asking" / "start.sh").write_text(PATIENT)
    runs = tmp_path / "scratch" / "runs"
    command = [sys.executable, "-c", LOST, store.root, isolation.backend]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as orchestrator:
        until(lambda: list(runs.glob("*/home/logs/before")), may_yet=lambda: orchestrator.poll() is None)
        orchestrator.kill()
    [home] = runs.glob("*/home")
    (home / "tmp" / "dead").touch()
    until(lambda: (home / "logs" / "knocked").exists())
    record = attempt(PATIENT, isolation)
    logs = store.local("runs", "group", "diabetes", 0, "logs")
    assert logs is not None
    assert (record["status"], record["validation_calls"], record["gateway_requests"]) == ("completed", 2, 2)
    assert json.loads((logs / "after").read_text()) == {"result": "Submission is valid."}
    assert (logs / "codes").read_text().split() == ["200", "200", "429"]  # a budget of two
    assert record["backend"] == isolation.backend
