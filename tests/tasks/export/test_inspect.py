"""Logs of Inspect: its own reader loads them, its metrics equal ours, and its viewer shows them in a browser."""

from __future__ import annotations

import statistics
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.tables import read_table
from tests import readers
from tests.grading.page.browser import Browser
from tests.stores import KeptStore, Store
from tests.tasks.export.groups import CONVERSATION, GROUP, asked, dataset, mlebench, once

__all__ = ["asked", "dataset", "once"]
pytestmark = [pytest.mark.slow, pytest.mark.service("readers")]

READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries, list_eval_logs
from inspect_ai.scorer import mean, mean_score, SampleScore

path = sys.argv[1]
log = read_eval_log(path)
header = read_eval_log(path, header_only=True)
assert [each.name.rsplit("/", 1)[1] for each in list_eval_logs(path.rsplit("/", 1)[0])] == [path.rsplit("/", 1)[1]]
computed = {}
for rate in ("any_medal", "gold_medal", "above_median", "valid_submission"):
    by_sample = {}
    for sample in log.samples:
        if sample.error is None:
            by_sample.setdefault(sample.id, []).append(sample.scores[rate])
    reduced = [SampleScore(score=mean_score()(scores)) for scores in by_sample.values()]
    computed[rate] = mean()(reduced)
def plain(usage):
    return usage.model_dump(exclude_none=True)
events = log.samples[0].events
calls = [event for event in events if event.event == "model"]
scores = [event for event in events if event.event == "score" and event.scorer == "score"]
def values(sample):
    return {name: score.value for name, score in (sample.scores or {}).items()}
print(json.dumps({
    "header": json.loads(header.model_dump_json(exclude_none=True)),
    "computed": computed,
    "samples": [[sample.id, sample.epoch, values(sample)] for sample in log.samples],
    "metadata": log.samples[0].scores["any_medal"].metadata,
    "summaries": [[each.id, each.epoch, each.completed] for each in read_eval_log_sample_summaries(path)],
    "messages": [[message.role, message.text] for message in log.samples[0].messages],
    "calls": [
        [[message.text for message in call.input], call.output.completion, plain(call.output.usage), call.error]
        for call in calls
    ],
    "scores": [[event.score.value, event.intermediate, event.working_start] for event in scores],
    "usage": {name: plain(usage) for name, usage in log.stats.model_usage.items()},
}))
"""


@pytest.fixture(scope="module")
def log(once: KeptStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported log."""
    folder = tmp_path_factory.mktemp("inspect") / "logs"
    with once.copied() as store:
        assert mlebench("export", GROUP, "--format", "inspect", "--output-dir", folder, store=store) == 0
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def found(log: Path) -> Any:
    """What Inspect's own reader finds in it."""
    return readers.read(READ, log)


def test_its_reader_loads_the_log_and_its_metrics_equal_ours(asked: Store, found: Any) -> None:
    rates = read_table(asked, "aggregates/rates", [GROUP])
    ours = rates[rates["split"] == "demo"].set_index("rate")
    written = {score["name"]: score["metrics"] for score in found["header"]["results"]["scores"]}
    for rate, computed in found["computed"].items():
        assert computed == pytest.approx(ours.loc[rate, "mean"])
        assert written[rate]["mean"]["value"] == pytest.approx(computed)
        assert written[rate]["sem"]["value"] == pytest.approx(ours.loc[rate, "sem"])
    assert written["any_medal"]["sem"]["value"] == pytest.approx(statistics.stdev([1, 0, 0]) / 3**0.5)

    assert [each[:2] for each in found["samples"]] == [["diabetes", 1], ["diabetes", 2], ["diabetes", 3]]
    grades = read_table(asked, "grades", [GROUP]).sort_values("seed")
    scores = [each[2].get("score") for each in found["samples"]]
    assert scores[:2] == grades["score"].tolist()[:2]
    assert scores[2] is None
    assert found["metadata"]["medal"] == "gold"
    assert found["metadata"]["gold_threshold"] == grades["gold_threshold"].iloc[0]
    assert found["summaries"] == [["diabetes", epoch, True] for epoch in (1, 2, 3)]


def test_calls_snapshots_and_conditions_are_where_inspect_looks_for_them(found: Any) -> None:
    spec = found["header"]["eval"]
    assert (spec["model"], spec["solver"]) == ("gpt-4o", "mine")
    assert spec["config"] == {"epochs": 3, "epochs_reducer": ["mean"], "time_limit": 600, **_defaults(spec["config"])}
    for name, value in {"network": "gateway", "hardware": "a machine", "backend": "process", "edition": "v1"}.items():
        assert spec["metadata"][name] == value
    first, second, failed = found["calls"]
    assert first[0] == ["Be brief.", "Win."]
    assert second[0] == ["Be brief.", "Win.", "Let me look.", "train.csv"]
    assert (first[1], second[1]) == ("Let me look.", "Done.")
    usage = {"input_tokens": 600, "input_tokens_cache_read": 400, "output_tokens": 50, "total_tokens": 1050}
    assert first[2] == {**usage, "total_cost": 0.25}
    assert failed[3] == "out of order"
    assert found["usage"]["gpt-4o"]["total_cost"] == 0.5
    assert found["messages"] == [[each["role"], each["content"]] for each in CONVERSATION]
    on_the_way = [event for event in found["scores"] if event[1]]
    assert [seconds for _, _, seconds in on_the_way] == [15.0, 40.0]
    assert found["scores"][-1][:2] == [on_the_way[-1][0], False], "the last snapshot is the submission"


def _defaults(config: dict[str, Any]) -> dict[str, Any]:
    """What Inspect adds by itself."""
    return {name: value for name, value in config.items() if name not in ("epochs", "epochs_reducer", "time_limit")}


def test_messages_are_written_once_however_often_they_are_sent(log: Path) -> None:
    with zipfile.ZipFile(log) as archive:
        content = archive.read("samples/diabetes_epoch_1.json").decode()
    assert content.count('"Be brief."') == 2, "in the pool of messages and in the conversation"


@pytest.fixture
def viewer(log: Path) -> Iterator[str]:
    """The URL of Inspect's viewer of the log."""
    import socket

    from tests.waiting import listening, until

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(readers.HOME / "bin" / "inspect"), "view", "--log-dir", str(log.parent), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    try:
        until(lambda: listening(port), 120, what="inspect view")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.service("chromium")
def test_inspect_view_shows_it(viewer: str, log: Path, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "chromium")
    try:
        browser.call("Page.navigate", url=f"{viewer}/#/logs/{log.name}")
        text = "document.body ? document.body.innerText : ''"
        browser.wait_for(lambda: {"diabetes", "any_medal"} <= set((browser.run(text) or "").split()))
        browser.call("Page.navigate", url=f"{viewer}/#/logs/{log.name}/samples/sample/diabetes/1/transcript")
        browser.wait_for(lambda: "Let me look." in (browser.run(text) or ""))
        assert [event for event in browser.complaints if event["method"] == "Runtime.exceptionThrown"] == []
    finally:
        browser.close()
