"""The command line as a user meets it: a process, its exit code, its lines; killed and started again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from common.settings import get_settings
from flows.cli import main
from storage.datasets import prepare
from tests.agents import write_agent
from tests.bundles import bundle
from tests.flows.gates import Gate
from tests.stores import Store, put_dataset

ROOT = Path(__file__).parents[2]
MLEBENCH = [sys.executable, "-m", "flows.cli"]


def start(*arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MLEBENCH, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MLEBENCH_DASK_WORKERS": "1", **env},
    )


def mlebench(*arguments: str, **env: str) -> tuple[int, str]:
    process = start(*arguments, **env)
    output, _ = process.communicate()
    return process.returncode, output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    get_settings.cache_clear()
    return tmp_path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with diabetes prepared."""
    folder = tmp_path_factory.mktemp("prepared")
    put_dataset(Store(str(folder)), "diabetes")
    return folder


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["prepare", "-c", "leaf-clasification"], "Did you mean leaf-classification"),
            (["prepare", "--split", "lo"], "unknown split 'lo'"),
            (["prepare"], "nothing selected"),
            (["run", "-c", "digits", "--agent", "baselin"], "baseline"),
            (["run", "-c", "digits", "--run-group", "../up"], "run group"),
            (["run", "-c", "digits", "--store", "nonsense://x"], "nonsense"),
            (["run", "-c", "digits", "--store", "/proc/nowhere"], "cannot be written"),
            (["grade-sample", "x.csv", "digits"], "is not prepared"),
            (["grade", "--submission", "nowhere.jsonl", "--output-dir", "out"], "does not exist"),
            (["report", "nobody"], "there is no store at"),
            (
                ["prepare", "-c", "leaf-classification", "--raw-dir", "/nowhere"],
                "--raw-dir /nowhere is not a directory",
            ),
            (["frobnicate"], "No such command"),
        ],
    )
    def test_one_clear_line_and_a_failure(
        self, here: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        code = main(arguments)
        output = "".join(capfd.readouterr())
        assert code != 0
        assert says in output
        assert "Traceback" not in output

    def test_an_untrusted_agent_needs_the_operators_word(self, here: Path) -> None:
        (here / "wild").mkdir()
        (here / "wild" / "agent.yaml").write_text("name: wild\ndescription: somebody's\n")
        (here / "wild" / "start.sh").write_text("true\n")
        code, output = mlebench("run", "-c", "digits", "--agent", str(here / "wild"))
        assert code != 0
        assert "--allow-untrusted" in output

    def test_trust_that_does_not_count_is_told_with_the_remedy(
        self, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        agent = write_agent(here / "claims", 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n')
        broken = here / "broken"
        broken.mkdir()
        (broken / "agent.yaml").write_text("nonsense")

        def told(directories: str, *command: str) -> tuple[int, str]:
            monkeypatch.setenv("MLEBENCH_AGENT_DIRS", directories)
            get_settings.cache_clear()
            return main(command), "".join(capfd.readouterr())

        command = ("run", "-c", "diabetes", "--agent", str(agent))
        code, output = told("", *command)
        assert code != 0
        (remedy,) = re.findall(r"MLEBENCH_AGENT_DIRS=(\S+)", output)
        assert "`trusted: true` in agent.yaml is ignored" in " ".join(output.split())
        # What it says helps, and neither a broken folder nor a missing one hides the agent.
        directories = os.pathsep.join([str(broken), str(here / "nowhere"), remedy])
        code, output = told(directories, *command)
        assert code == 0, output
        assert "nowhere, which is not a directory" in output
        code, output = told(directories, "agents")
        assert code == 0
        assert re.search("^broken +broken ", output, re.MULTILINE)
        assert re.search("^claims +trusted ", output, re.MULTILINE)

    def test_a_wrong_setting_is_named(self, here: Path) -> None:
        code, output = mlebench("prepare", "-c", "digits", MLEBENCH_AGENTS="none")
        assert code == 1
        assert "MLEBENCH_AGENTS" in output
        assert "Traceback" not in output

    def test_no_submission_breaks_grading(self, prepared: Path, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
        for content in (b"", b"\x00\xff" * 500, b"PK\x03\x04", b"id,progression\n1,x\n", b"a" * 10_000):
            (here / "submission.csv").write_bytes(content)
            code = main(["grade-sample", str(here / "submission.csv"), "diabetes", "--store", str(prepared)])
            output = "".join(capfd.readouterr())
            assert code == 0, "an invalid submission is a result"
            assert "invalid: " in output
            assert "Traceback" not in output


def test_listing_and_help_know_every_command(here: Path) -> None:
    (here / "ids.txt").write_text("digits\ndiabetes\n")
    _, output = mlebench("list", "--list", str(here / "ids.txt"))
    assert [line.split()[0] for line in output.splitlines()] == ["COMPETITION", "diabetes", "digits"]
    assert "leaf-classification" in mlebench("list", "--split", "low")[1]
    result = subprocess.run(
        [sys.executable, "-m", "flows.full_benchmark", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "--run-group" in result.stdout


def until(process: subprocess.Popen[str], seen: Callable[[str], bool]) -> str:
    """The output up to the first line that `seen` accepts."""
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if seen(line):
            return "".join(lines)
    raise AssertionError("ended before: " + "".join(lines))


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL. What it started lives on and holds the pipe open, so that waiting for its end would be for ever."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.usefixtures("served")
class TestKilledAndStartedAgain:
    RUN = ("run", "-c", "digits", "-c", "diabetes", "--run-group", "killed", "--agent")

    def test_killed_in_the_middle_of_preparing(self, here: Path) -> None:
        process = start("prepare", "-c", "digits", "-c", "diabetes")
        until(process, lambda line: "split" in line)
        kill(process)

        code, output = mlebench("prepare", "-c", "digits", "-c", "diabetes")
        assert code == 0, output
        alone = here / "alone"
        (here / "raw.zip").write_bytes(bundle("digits"))
        expected = prepare("digits", here / "raw.zip", alone)
        (path,) = (here / "store/prepared/v1/digits").glob("*/manifest.parquet")
        manifest = pd.read_parquet(path)
        pd.testing.assert_frame_equal(manifest, expected)

    def slow_agent(self, here: Path) -> tuple[str, Gate, Gate]:
        """An agent that counts its starts, opens the first gate, and waits for the second."""
        folder = here / "slow"
        folder.mkdir()
        (folder / "agent.yaml").write_text("name: slow\ndescription: waits\ntrusted: true\n")
        (folder / "start.sh").write_text(
            f"""#!/bin/bash
echo start >> {here}/starts
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo waiting
echo > {here}/started
read < {here}/go
"""
        )
        return str(folder), Gate(here / "started"), Gate(here / "go")

    def test_killed_in_the_middle_of_an_agents_run(self, here: Path) -> None:
        agent, started, go = self.slow_agent(here)
        arguments = ("run", "-c", "diabetes", "--run-group", "killed", "--agent", agent)
        process = start(*arguments)
        until(process, lambda line: "running waiting" in line or "running" in line)
        started.wait()
        kill(process)

        again = start(*arguments)
        until(again, lambda line: "found running" in line)
        go.open()
        output, _ = again.communicate()

        assert again.returncode == 0, output
        assert (here / "starts").read_text() == "start\n", "the agent was attached to, not started anew"
        assert pd.read_parquet(here / "store/tables/grades")["outcome"].tolist() == ["valid"]
