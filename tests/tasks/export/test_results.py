"""Results in the schema of Every Eval Ever, trajectories in ATIF, and what no export contains."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from storage.tables import read_table
from tasks.export.every_eval_ever import write_results
from tasks.export.gathered import file_name, gather
from tasks.export.inspect_log import write_log
from tasks.export.leaderboard import write_submission
from tasks.export.mlflow_store import write_runs
from tasks.report import write_tables
from tests import readers
from tests.grading.page.browser import Browser
from tests.sandbox.trajectory.test_atif import READ as READ_ATIF
from tests.stores import Store
from tests.tasks.export.groups import GROUP, SECRET, answers_of, asked, dataset, mlebench, once

__all__ = ["asked", "dataset", "once"]

READ = """
import json, sys
from importlib import resources
import jsonschema
from every_eval_ever.eval_types import EvaluationLog
content = json.load(open(sys.argv[1]))
schema = json.loads(resources.files("every_eval_ever").joinpath("schemas/eval.schema.json").read_text())
jsonschema.validate(content, schema)
log = EvaluationLog.model_validate(content)
print(json.dumps({each.evaluation_result_id: each.score_details.score for each in log.evaluation_results}))
"""


def export(store: Store, name: str, folder: Path, *options: str) -> list[Path]:
    out = folder / "exported"
    assert mlebench("export", GROUP, "--format", name, "--output-dir", out, *options, store=store) == 0
    return sorted(out.iterdir())


@pytest.mark.service("readers")
def test_the_schema_takes_the_results_and_they_equal_ours(asked: Store, tmp_path: Path) -> None:
    (path,) = export(asked, "every-eval-ever", tmp_path)
    found = readers.read(READ, path)
    rates = read_table(asked, "aggregates/rates", [GROUP])
    for row in rates[(rates["by"] == "complexity") & (rates["split"] == "demo")].to_dict("records"):
        if row["rate"] != "submission_exists":
            assert found[f"{row['rate']}/demo"] == pytest.approx(row["mean"])
    grades = read_table(asked, "grades", [GROUP])
    assert found["score/diabetes"] == pytest.approx(grades["score"].mean())
    content = json.loads(path.read_text())
    assert content["model_info"]["name"] == "gpt-4o"
    (medals,) = (each for each in content["evaluation_results"] if each["evaluation_result_id"] == "any_medal/demo")
    uncertainty = medals["score_details"]["uncertainty"]
    sem = rates[(rates["rate"] == "any_medal") & (rates["by"] == "complexity")]["sem"].iloc[0]
    assert uncertainty["standard_error"]["value"] == pytest.approx(sem)
    assert uncertainty["num_samples"] == 3
    assert medals["generation_config"]["additional_details"]["network"] == "gateway"


@pytest.mark.service("readers")
def test_trajectories_are_exported_and_shown_in_the_report(asked: Store, tmp_path: Path) -> None:
    (path,) = export(asked, "atif", tmp_path)
    assert path.name == f"{GROUP}+diabetes+0.trajectory.json"
    assert readers.read(READ_ATIF, path) == ["system", "user", "agent", "agent", "agent"]
    stored = asked.local("runs", GROUP, "diabetes", 0, "trajectory.json").read_text()
    assert json.loads(path.read_text())["steps"] == json.loads(stored)["steps"]


@pytest.mark.service("chromium")
def test_the_report_leads_to_the_trajectory(asked: Store, tmp_path: Path) -> None:
    report = asked.local("reports", GROUP, "report.html")
    assert "trajectory.html" in report.read_text()
    browser = Browser(tmp_path / "chromium")
    try:
        browser.open(report, 1280)
        browser.run("document.querySelector('a[href$=\"trajectory.html\"]').click()")
        browser.wait_for(lambda: "Let me look." in (browser.run("document.body.innerText") or ""))
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith(("file:", "data:,"))] == []
        browser.open(report, 1280)
        log = browser.run("document.querySelector('#all a[href$=\"logs/agent.log\"]').href")
        assert Path(url2pathname(urlsplit(log).path)).is_file()
    finally:
        browser.close()


FORMATS = ("report", "inspect", "atif", "every-eval-ever", "leaderboard", "mlflow")


def test_no_answers_keys_or_other_runs_are_in_an_export(asked: Store, tmp_path: Path) -> None:
    """What would give them away is put wherever an export could find it."""
    run_url = asked.run(GROUP, "diabetes", 0)
    run = asked.read_json(f"{run_url}/run.json")
    asked.write_json(f"{run_url}/run.json", {**run, "ledger_signature": SECRET, "signature": SECRET, "key": SECRET})
    grade = asked.read_json(f"{run_url}/grade.json")
    asked.write_json(f"{run_url}/grade.json", {**grade, "detail": SECRET, "signature": SECRET, "key": SECRET})
    assert mlebench("regrade", GROUP, "--as", "a-group-of-others", store=asked) == 0
    rows = {row for content in answers_of(asked) for row in content.splitlines() if row.count(b",")}
    rows -= {row for row in rows if row[:1].isalpha()}
    assert rows
    for name in FORMATS:
        export(asked, name, tmp_path / name)
        exported = b"".join(map(contents_of, filter(Path.is_file, (tmp_path / name).rglob("*"))))
        assert exported, name
        assert SECRET.encode() not in exported, name
        assert b"a-group-of-others" not in exported, name
        assert not [row for row in rows if row in exported], name
        if name not in ("report", "leaderboard"):  # the published format names the path of the submission
            assert str(asked.local()).encode() not in exported, name


def contents_of(path: Path) -> bytes:
    """The bytes of a file, or of the members of an archive."""
    if path.suffix != ".eval":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(each) for each in archive.namelist())


def test_agents_have_files_of_their_own_with_names_that_every_system_takes() -> None:
    def named(agent: str) -> str:
        return file_name("g", agent, "v1")

    assert named("x-y_1.0") == "g+x-y_1.0+v1"
    assert named("x/y") != named("x-y"), "the second would replace the first"
    assert named("x/y").startswith("g+x-y+v1-")
    for agent in ("a\0b", "a\nb", "a" * 300, "ä" * 200, "\N{GRINNING FACE}", "\ud800", "../../x"):
        assert re.fullmatch(r"[\w.+-]{1,120}", named(agent), re.ASCII)
    assert named("a" * 300) != named("a" * 301)


def test_groups_and_agents_with_similar_names_share_a_folder(asked: Store, tmp_path: Path) -> None:
    """`a-b` of the agent `c`, and `a` of `b-c`; the names of reports have the time only."""
    formats = ("report", "inspect", "leaderboard", "every-eval-ever")
    for run_group, agent in (("a-b", "c"), ("a", "b-c")):
        assert mlebench("regrade", GROUP, "--as", run_group, store=asked) == 0
        for record in asked.local("runs", run_group).rglob("*.json"):
            record.write_text(record.read_text().replace('"mine"', json.dumps(agent)))
        write_tables(asked, run_group)
        for name in formats:
            options = ("--format", name, "--output-dir", tmp_path / name)
            assert mlebench("export", run_group, *options, store=asked) == 0
    assert {name: len(list((tmp_path / name).glob("*.*"))) for name in formats} == dict.fromkeys(formats, 2)


def test_an_agent_may_have_any_name(asked: Store, tmp_path: Path) -> None:
    (series,) = gather(asked, GROUP)
    series = replace(series, agent="x/y\0\n\x85\N{GRINNING FACE}" + "a" * 300)
    written, _ = write_submission(asked, series, {}, tmp_path)
    paths = [
        *written,
        write_results(asked, series, tmp_path),
        write_log(series, tmp_path),
        write_runs(series, tmp_path),
    ]
    assert all(each.exists() and each.parent == tmp_path for each in paths)
