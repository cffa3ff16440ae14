from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from common.units import duration, size
from sandbox.backend import Allowance, RunSpec, ScorerTexts
from sandbox.definitions import Agent
from sandbox.errors import BackendError
from sandbox.world import files
from sandbox.world.files import bytes_on_disk, copy_data, remove_tree
from sandbox.world.instructions import instructions
from sandbox.world.layout import environment, lay_out, start_command


@pytest.fixture
def spec(make_spec: Callable[..., RunSpec]) -> RunSpec:
    return make_spec("true\n")


@pytest.fixture
def home(spec: RunSpec, tmp_path: Path) -> Path:
    lay_out(spec, tmp_path / "home")
    return tmp_path / "home"


def test_the_world_is_as_published(home: Path) -> None:
    assert sorted(path.name for path in home.iterdir()) == [
        "agent",
        "code",
        "data",
        "instructions.txt",
        "logs",
        "submission",
        "tmp",
    ]
    assert (home / "agent" / "start.sh").read_text() == "true\n"
    assert (home / "data" / "images" / "1.png").read_bytes() == b"pixels"
    assert not any(path.is_symlink() for path in home.rglob("*"))


def test_nothing_in_it_leads_to_the_dataset(home: Path, spec: RunSpec) -> None:
    assert not (home / "data" / ".." / "private").exists()
    original = spec.data / "sample_submission.csv"
    before = original.read_text()
    copy = home / "data" / "sample_submission.csv"
    copy.chmod(0o644)
    copy.write_text("changed")
    assert original.read_text() == before


def test_the_data_are_read_only(home: Path) -> None:
    for path in [home / "data", *(home / "data").rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o222


def test_links_inside_the_data_become_files_and_others_are_refused(spec: RunSpec, tmp_path: Path) -> None:
    (spec.data / "again.md").symlink_to("description.md")
    lay_out(spec, tmp_path / "home")
    assert not (tmp_path / "home" / "data" / "again.md").is_symlink()
    assert (tmp_path / "home" / "data" / "again.md").read_text() == "Predict the label."
    (spec.data / "answers.csv").symlink_to("../private/test.csv")
    with pytest.raises(BackendError, match=r"answers\.csv is a link"):
        lay_out(spec, tmp_path / "other")


def test_a_pipe_among_the_data_is_refused(spec: RunSpec, tmp_path: Path) -> None:
    os.mkfifo(spec.data / "pipe")
    with pytest.raises(BackendError, match="neither a file nor a folder"):
        lay_out(spec, tmp_path / "home")


def _unsupported(*_arguments: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "not supported")


def test_large_data_are_linked_only_where_read_only_and_allowed(
    spec: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "COPY_BYTES", 1)
    monkeypatch.setattr("fcntl.ioctl", _unsupported)  # a file system that cannot clone
    (spec.data / "description.md").chmod(0o444)
    for name, may_link in (("linked", True), ("copied", False)):
        copy_data(spec.data, tmp_path / name, may_link=may_link)
    same = {
        (name, file): (tmp_path / name / file).samefile(spec.data / file)
        for name in ("linked", "copied")
        for file in ("description.md", "sample_submission.csv")
    }
    assert [key for key, is_same in same.items() if is_same] == [("linked", "description.md")]


def test_a_work_directory_in_the_dataset_is_refused(spec: RunSpec) -> None:
    with pytest.raises(BackendError, match="could reach the answers"):
        lay_out(spec, spec.data.parent / "work")


def test_data_that_do_not_exist_are_one_clear_line(spec: RunSpec, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="is not prepared"):
        lay_out(replace(spec, data=tmp_path / "nowhere"), tmp_path / "home")


def test_the_environment_is_built_from_scratch(spec: RunSpec, make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("true", env={"OMP_NUM_THREADS": "7", "HOME": "/root", "OWN": "yes"})
    spec = replace(spec, agent=agent, env={"RUN": "1", "DATA_DIR": "/etc"}, sample_submission="sample_submission.csv")
    env = environment(spec, PurePosixPath("/home"), python="/python", path="/bin", threads=2)
    assert env["HOME"] == "/home"
    assert env["DATA_DIR"] == "/home/data"
    assert env["SAMPLE_SUBMISSION"] == "/home/data/sample_submission.csv"
    assert (env["OMP_NUM_THREADS"], env["MKL_NUM_THREADS"]) == ("7", "2")
    assert (env["OWN"], env["RUN"], env["SEED"], env["TIME_LIMIT_SECONDS"]) == ("yes", "1", "3", "60")


def test_the_instructions_say_what_matters_as_the_agent_sees_it(spec: RunSpec, tmp_path: Path) -> None:
    spec = replace(spec, sample_submission="sample_submission.csv", validation_url="http://validation:5000/")
    lay_out(spec, tmp_path / "home", PurePosixPath("/home"))
    text = (tmp_path / "home" / "instructions.txt").read_text()
    for part in (
        "/home/data/description.md",
        "/home/submission/submission.csv",
        "1 minute",
        "/home/data/sample_submission.csv",
    ):
        assert part in text
    assert "sh /home/validate_submission.sh /home/submission/submission.csv" in text
    assert str(tmp_path) not in text
    assert "http://validation:5000/validate" in (tmp_path / "home" / "validate_submission.sh").read_text()


def test_the_agent_is_told_what_it_may_ask_of_the_services(spec: RunSpec) -> None:
    def told(**allowance: Any) -> tuple[str, dict[str, str]]:
        asks = replace(spec, validation_url="http://validation:5000", allowance=Allowance(**allowance))
        env = environment(asks, PurePosixPath("/home"), python="/python", path="/bin", threads=2)
        return instructions(asks, PurePosixPath("/home")), {k: v for k, v in env.items() if k.startswith("LLM_")}

    text, env = told(language_models=True, llm_requests=1000, llm_dollars=2.5)
    assert "Language models: at most 1,000 requests, 2.5 US dollars for the whole run; after that" in text
    assert env == {"LLM_REQUESTS_LIMIT": "1000", "LLM_DOLLARS_LIMIT": "2.5"}
    text, env = told(language_models=True, llm_tokens=10_000_000)
    assert "at most 10,000,000 tokens (input and output together) for" in text
    assert env == {"LLM_TOKENS_LIMIT": "10000000"}
    text, env = told(language_models=True)
    assert ("Language models: as many requests as you need." in text, env) == (True, {})
    text, env = told(validation_calls=2000, validation_calls_per_minute=20)
    assert ("Language models" in text, env) == (False, {})
    assert "You can use it 2,000 times, at most 20 times per minute." in text


def test_a_scorer_is_told_of_only_where_there_is_one(spec: RunSpec, tmp_path: Path) -> None:
    texts = ScorerTexts(
        "accuracy, higher is better", "A CSV file:\n  id: it's $HOME `id`", "example_truth.csv", "id\n1\n"
    )
    allowance = Allowance(scorer_calls=7)
    scored = replace(spec, scorer=texts, scorer_url="http://validation:5000/", allowance=allowance)
    for name, run in (("with", scored), ("without", spec), ("not open", replace(scored, scorer_url=None))):
        lay_out(run, tmp_path / name, PurePosixPath("/home"))
        text = (tmp_path / name / "instructions.txt").read_text()
        env = environment(run, PurePosixPath("/home"), python="/python", path="/bin", threads=2)
        assert ("sh /home/score.sh PREDICTIONS TRUTH" in text) == (name == "with")
        assert (tmp_path / name / "score.sh").exists() == (tmp_path / name / "example_truth.csv").exists()
        assert ("SCORE_SCRIPT" in env, "EXAMPLE_TRUTH" in env) == (name == "with", name == "with")
    assert "You can use it 7 times." in (tmp_path / "with" / "instructions.txt").read_text()
    assert not (tmp_path / "with" / "validate_submission.sh").exists()
    usage = subprocess.run(
        ["sh", str(tmp_path / "with" / "score.sh"), "--help"], capture_output=True, text=True, check=False
    )
    assert usage.returncode == 0
    assert "accuracy, higher is better" in usage.stdout
    assert "  id: it's $HOME `id`" in usage.stdout, "a shell does not read the help"


def test_start_files_run_by_themselves_when_executable(spec: RunSpec, tmp_path: Path) -> None:
    lay_out(spec, tmp_path / "home")
    start = tmp_path / "home" / "agent" / "start.sh"
    assert start_command(spec, tmp_path / "home", PurePosixPath("/home"))[1:] == ["/home/agent/start.sh"]
    start.write_text("#!/bin/sh\n")
    start.chmod(0o755)
    assert start_command(spec, tmp_path / "home") == [str(start)]


def test_disk_use_counts_blocks_and_empty_files_but_no_holes(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10**9)
    for number in range(100):
        (tmp_path / f"empty{number}").touch()
    (tmp_path / "hard").write_bytes(b"x" * 100_000)
    (tmp_path / "link").hardlink_to(tmp_path / "hard")
    (tmp_path / "skipped").mkdir()
    (tmp_path / "skipped" / "file").write_bytes(b"x" * 10**6)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert 100 * 4096 + 100_000 <= bytes_on_disk(tmp_path, frozenset({"skipped"})) < 600_000


def test_trees_that_are_read_only_or_too_deep_are_removed(tmp_path: Path) -> None:
    deep = tmp_path / "tree"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (deep / "locked").mkdir()
    (deep / "locked" / "file").touch()
    (deep / "locked").chmod(0)
    bytes_on_disk(deep)
    remove_tree(deep)
    remove_tree(deep)
    assert not deep.exists()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (86400, "24 hours"),
        (3600, "1 hour"),
        (5400, "1.5 hours"),
        (90, "1.5 minutes"),
        (60, "1 minute"),
        (1, "1 second"),
        (0.5, "0.5 seconds"),
    ],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 bytes"), (1536, "1.5 KiB"), (2 * 1024**3, "2 GiB"), (5 * 1024**5, "5120 TiB")]
)
def test_sizes_are_for_people(count: int, text: str) -> None:
    assert size(count) == text
