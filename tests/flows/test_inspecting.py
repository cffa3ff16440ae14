"""`mlebench ls`, `show` and `logs`: what lies in a store, in words; and a run that is still going."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from flows.commands.options import StoreOptions
from flows.watching.outcome import capture_errors
from sandbox.isolation import Isolation
from storage.runs.folders import RunFolder
from storage.schemas import SCHEMA_VERSION
from tasks.wiring.requests import RunRequest
from tests.flows.gates import Gate
from tests.stores import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with one graded run of the dummy agent, and one that left nothing."""
    from flows.full_benchmark import full_benchmark

    place = Store(str(tmp_path_factory.mktemp("inspected")))
    silent = tmp_path_factory.mktemp("agents") / "silent"
    silent.mkdir()
    (silent / "agent.yaml").write_text("name: silent\ndescription: leaves nothing\ntrusted: true\n")
    (silent / "start.sh").write_text("#!/bin/bash\nprintf 'gave up \\xff early'\nexit 3\n")
    full_benchmark(["diabetes"], RunRequest(agent="dummy", run_group="good", store=place.root))
    full_benchmark(
        ["diabetes"],
        RunRequest(agent=str(silent), run_group="bad", store=place.root, isolation=Isolation(allow_untrusted=True)),
    )
    return place


def remote(store: Store, name: str) -> Store:
    """The same files in an object store."""
    place = Store(f"memory://{name}")
    for path in store.local().rglob("*"):
        if path.is_file():
            place.put(place.url(*path.relative_to(store.local()).parts), path)
    return place


@pytest.fixture(params=["directory", "object store"])
def place(request: pytest.FixtureRequest, finished: Store, tmp_path: Path) -> Store:
    return finished if request.param == "directory" else remote(finished, tmp_path.name)


def shown(capfd: pytest.CaptureFixture[str], *arguments: str, store: Store) -> str:
    capfd.readouterr()
    assert main([*arguments, "--store", store.root]) == 0
    return capfd.readouterr().out


def test_groups_and_runs_are_listed(place: Store, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in shown(capfd, "ls", store=place).splitlines()]
    assert [row[:2] for row in rows[1:]] == [["bad", "1"], ["good", "1"], ["in", place.root]]
    assert rows[2][2].startswith("dummy")
    assert "good/diabetes/0  completed" in shown(capfd, "ls", "good", store=place)
    bad = re.split("  +", shown(capfd, "ls", "bad", store=place).splitlines()[1])
    assert (bad[:2], bad[3]) == (["bad/diabetes/0", "crashed"], "missing")


def test_a_run_is_shown_with_its_files(place: Store, capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(capfd, "show", "good/diabetes/0", store=place)
    assert "status              completed" in text
    assert "thresholds          gold" in text
    files = {line.split()[-1] for line in text.splitlines() if line}
    assert {"run.json", "grade.json", "submission.csv", "logs/agent.log"} <= files
    assert "exit_code           3" in shown(capfd, "show", "bad/diabetes/0", store=place)


def test_the_log_of_a_finished_run_comes_from_the_store(place: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, "logs", "bad/diabetes/0", "-f", store=place) == "gave up � early"


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["ls", "nobody"], "no finished runs of group 'nobody'", 1),
        (["show", "good"], "give GROUP/COMPETITION/SEED", 2),
        (["show", "good/diabetes/x"], "give GROUP/COMPETITION/SEED", 2),
        (["show", "good/diabetes/7"], "no run good/diabetes/7", 1),
        (["logs", "good/diabetes/7"], "no run good/diabetes/7", 1),
    ],
)
def test_what_is_not_there_is_one_line(
    finished: Store, capfd: pytest.CaptureFixture[str], arguments: list[str], says: str, code: int
) -> None:
    capfd.readouterr()
    assert main([*arguments, "--store", finished.root]) == code
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["ls"], ["show", "a/b/0"], ["logs", "a/b/0"]])
def test_a_store_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    capfd.readouterr()
    assert main([*arguments, "--store", "s3://bucket/prefix"]) == 1
    err = capfd.readouterr().err
    assert "store s3://bucket/prefix cannot be read" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["ls"], ["show", "a/b/0"], ["logs", "a/b/0"], ["du"], ["gc", "--orphans"]])
def test_a_store_that_is_a_file_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "file").touch()
    capfd.readouterr()
    assert main([*arguments, "--store", str(tmp_path / "file")]) == 1
    assert capfd.readouterr().err.count("\n") == 1


def test_a_bug_that_work_outlives_is_shown_with_its_traceback(
    recorded_store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def buggy(_: StoreOptions) -> Store:
        with capture_errors("digits", {}):
            raise ZeroDivisionError
        return recorded_store

    monkeypatch.setattr("flows.commands.options.StoreOptions.open", buggy)
    assert main(["ls", "--store", recorded_store.root]) == 0
    first, second, *_, last = capfd.readouterr().err.splitlines()
    assert (first, second, last) == ("mlebench: digits", "Traceback (most recent call last):", "ZeroDivisionError")


DAMAGES = {
    "truncated": '{"key": ',
    "a list": "[]",
    "newer": f'{{"schema_version": {SCHEMA_VERSION + 1}}}',
    "nested": "[" * 100_000,
}


class TestADamagedRecord:
    """old-docker/digits/0 is damaged: a line about it, in commands about other groups a warning."""

    @pytest.fixture(params=DAMAGES)
    def damaged(self, request: pytest.FixtureRequest, recorded_store: Store) -> Store:
        recorded_store.write(
            RunFolder(recorded_store, "old-docker", "digits", 0).run_url, DAMAGES[request.param].encode()
        )
        return recorded_store

    def test_leaves_other_groups_listed(self, damaged: Store, capfd: pytest.CaptureFixture[str]) -> None:
        assert main(["ls", "--store", damaged.root]) == 0
        out, err = capfd.readouterr()
        assert [line.split()[:2] for line in out.splitlines()[1:-1]] == [
            ["old-copy", "1"],
            ["old-docker", "0"],
            ["old-process", "1"],
            ["old-services", "1"],
        ]
        assert err.startswith("mlebench: a record is skipped: runs/old-docker/digits/0/run.json")
        assert err.count("\n") == 1

    def test_leaves_other_groups_compared(self, damaged: Store, capfd: pytest.CaptureFixture[str]) -> None:
        assert main(["examine", "--only", "plagiarism", "old-process", "--store", damaged.root]) == 0
        out, err = capfd.readouterr()
        assert "1 run compared" in out
        assert err.startswith("mlebench: a record is skipped: runs/old-docker/digits/0/run.json")
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        "arguments", [["ls", "old-docker"], ["show", "old-docker/digits/0"], ["regrade", "old-docker"]]
    )
    def test_ends_commands_about_its_group(
        self, damaged: Store, capfd: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert main([*arguments, "--store", damaged.root]) == 1
        err = capfd.readouterr().err
        assert err.startswith("mlebench: runs/old-docker/digits/0/run.json")
        assert err.count("\n") == 1

    def test_of_a_grade_ends_commands_about_its_group_only(
        self, recorded_store: Store, capfd: pytest.CaptureFixture[str]
    ) -> None:
        recorded_store.write(RunFolder(recorded_store, "old-docker", "digits", 0).grade_url(), b"[]")
        assert main(["ls", "--store", recorded_store.root]) == 0
        assert capfd.readouterr().err == ""
        assert main(["show", "old-docker/digits/0", "--store", recorded_store.root]) == 1
        assert capfd.readouterr().err == "mlebench: runs/old-docker/digits/0/grade.json is not a JSON object\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_text_that_the_terminal_cannot_show_is_escaped(
    recorded_store: Store, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    folder = RunFolder(recorded_store, "old-process", "digits", 0)
    grade = folder.read_grade()
    assert grade is not None
    folder.write_grade(grade.replace(message="no \ud800\x1b[31m \u65e5 end"))
    written = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, content in written.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(content, encoding, errors="strict"))
    assert main(["show", folder.name, "--store", recorded_store.root]) == 0
    assert main(["show", "\udc80\u65e5/digits/0", "--store", recorded_store.root]) == 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    [line] = [line for line in written["stdout"].getvalue().splitlines() if line.startswith(b"grader says")]
    assert line.endswith(b" end")
    assert b"\x1b" not in line
    assert b"no run " in written["stderr"].getvalue()


def test_an_empty_store_says_what_to_do(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--store", store.root]) == 2
    assert "there is no store at" in capfd.readouterr().err
    Path(str(store.local())).mkdir()
    assert main(["ls", "--store", store.root]) == 1
    assert "no runs in" in capfd.readouterr().err


@pytest.mark.usefixtures("served")
def test_a_run_that_is_still_going_is_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "slow"
    agent.mkdir()
    (agent / "agent.yaml").write_text("name: slow\ndescription: waits\ntrusted: true\n")
    (agent / "start.sh").write_text(
        f"#!/bin/bash\necho first line\necho > {tmp_path}/started\nread < {tmp_path}/go\nprintf 'last words'\n"
    )
    started, go = Gate(tmp_path / "started"), Gate(tmp_path / "go")
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "s"))
    get_settings.cache_clear()
    store = Store(str(tmp_path / "store"))

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *arguments, "--store", store.root],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )

    running = start("run", "-c", "diabetes", "--run-group", "live", "--agent", str(agent))
    assert running.stdout is not None
    assert any(": running" in line for line in running.stdout)
    started.wait()
    assert shown(capfd, "logs", "live/diabetes/0", store=store) == "first line\n"

    following = start("logs", "live/diabetes/0", "-f")
    assert following.stdout is not None
    assert following.stdout.readline() == "first line\n"
    go.open()
    rest, _ = following.communicate(timeout=120)
    assert (rest, following.returncode) == ("last words\n", 0)
    running.communicate(timeout=240)
    assert running.returncode == 0
    assert shown(capfd, "logs", "live/diabetes/0", store=store) == "first line\nlast words"
