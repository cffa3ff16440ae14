"""Every step can be called as a plain function: outside of a flow, and without a Prefect server."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.store import Store
from storage.tables import read_table
from tasks.agent_run import run_agent
from tasks.checksum import verify_checksums
from tasks.download import download_archive
from tasks.grading import grade_run
from tasks.plagiarism import find_plagiarism
from tasks.report import aggregate_group
from tasks.split import split_dataset, split_recipe
from tasks.violations import find_violations
from tasks.wiring.attempts import attempts_of, finished_run
from tasks.wiring.context import RunContext
from tasks.wiring.grades import finished_grade, grade_request
from tasks.wiring.requests import RunRequest


@pytest.mark.usefixtures("no_server")
def test_the_whole_pipeline_in_plain_calls(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    download_hash = download_archive("diabetes", store.root)
    key = split_dataset("diabetes", store.root, "v1", download_hash)
    assert key == split_recipe("diabetes", download_hash, "v1").key
    assert verify_checksums("diabetes", store.root, "v1", key) > 0
    assert not store.exists(store.raw("diabetes"))

    request = RunRequest(agent="dummy", run_group="plain", store=store.root, seeds=2)
    for attempt in attempts_of(RunContext.of(request), "diabetes"):
        assert run_agent(attempt) == "completed"
        assert finished_run(store, attempt) is not None
        assert run_agent(attempt) == "completed", "decided by the record"
        assert finished_grade(store, grade_request(attempt)) is None
        grade_run(grade_request(attempt))
        assert finished_grade(store, grade_request(attempt)) is not None

    assert find_plagiarism(store, "plain") == []
    assert find_violations(store, "plain").runs == 2
    report = aggregate_group(store, "plain")
    assert report is not None
    assert store.exists(report)
    assert read_table(store, "grades")["outcome"].tolist() == ["valid", "valid"]
