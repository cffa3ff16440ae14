"""Exit codes of all commands are those of the table in `docs/commands.md`, and names of groups have close matches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows.cli import COMMANDS, main
from tests.docs.blocks import ROOT
from tests.flows.graded import GROUP, dataset, graded, group
from tests.stores import Store

__all__ = ["dataset", "graded", "group"]

TYPO = f"{GROUP}x"
OF_GROUPS = {
    "ls": [TYPO],
    "show": [f"{TYPO}/diabetes/0"],
    "logs": [f"{TYPO}/diabetes/0"],
    "cancel": [TYPO],
    "open": [TYPO],
    "rm": [TYPO, "--yes"],
    "report": [TYPO],
    "verify": [TYPO],
    "compare": [GROUP, TYPO],
    "plan": [GROUP, TYPO],
    "regrade": [TYPO],
    "export": [TYPO],
    "make-submission": [TYPO],
    "examine": [TYPO],
    "examine --only contamination": [TYPO, "--model", "m"],
    "examine --only split-noise": [TYPO],
}
"""Commands about run groups, with the name of a group that does not exist in the store."""
WRONG = {
    "list": ["--split", "lo"],
    "issues": ["nobody"],
    "prepare": ["-c", "nobody"],
    "run": ["--agent", "nobody", "-c", "digits"],
    "grade": ["--submission", "nowhere.jsonl", "--output-dir", "out"],
    "grade-sample": ["nowhere.csv", "nobody"],
    "leaderboard": ["nobody"],
    "ls": ["no/group"],
    "show": ["nothing"],
    "logs": ["nothing"],
    "report": ["no/group"],
    "open": ["no/group"],
    "compare": ["a@v7", "b"],
    "plan": [GROUP, "--power", "100"],
    "regrade": ["no/group"],
    "export": ["--format", "harbor", "-c", "nobody"],
    "import-report": ["nowhere.json", "--group", "g"],
    "rm": ["no/group"],
    "examine": [GROUP, "--submission", "nowhere.jsonl"],
    "kernels": ["nobody"],
    "verify": ["no/group"],
    "agents": ["nobody"],
    "agent new": ["Not A Name"],
    "agent try": ["nobody"],
    "build": ["nobody"],
    "new": ["Not A Name"],
    "check": ["nobody"],
    "worker": ["--slots", "0"],
    "watch": ["no/group"],
    "cancel": ["a/b/c/d"],
    "notify": ["--slack", "x", "--off"],
    "doctor": ["-c", "nobody"],
    "config": ["nobody"],
    "du": ["--store", "a", "--data-dir", "b"],
    "gc": [],
    "completion": ["tcsh"],
    "adopt": ["nowhere"],
    "serve": ["-c", "nobody"],
}
"""A wrong use of each command: a name that does not exist or cannot be one, a value out of range, options that exclude
each other."""
FAILING = OF_GROUPS | {
    "run": ["-c", "digits", "--store", "/proc/nowhere"],
    "prepare": ["-c", "digits", "--store", "/proc/nowhere"],
    "watch": ["nobody"],  # without a Prefect server
    "worker": [],
    "notify": ["--off"],
    "adopt": ["."],  # an existing folder without prepared competitions
    "agent new": ["mine", "--into", "/proc"],
    "grade": ["--submission", "empty.jsonl", "--output-dir", "out"],
    "grade-sample": ["nowhere.csv", "digits"],
    "new": ["mine", "--into", "/proc"],
    "du": ["--store", "nonsense://x"],
    "gc": ["--raw", "--store", "nonsense://x"],
    "import-report": ["broken.json", "--group", "g"],
}
"""What can fail although the use is right."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.jsonl").write_text("# no submission yet\n\n")
    return tmp_path


def ended(capfd: pytest.CaptureFixture[str], command: str, *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    code = main([*command.split(), *arguments])
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    return code, err


def test_the_table_in_the_docs() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    assert re.findall(r"^\| (\d+) \| ", text, re.MULTILINE) == ["0", "1", "2", "130"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("here")
def test_wrong_use_of_every_command_is_2(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(capfd, command, "--help")[0] == 0
    for arguments in (["--no-such-option"], WRONG[command]):
        code, said = ended(capfd, command, *arguments)
        assert (code, said.count("\n")) == (2, 1), said
        assert said.startswith("mlebench: "), "one line says what is wrong"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("here")
def test_an_option_that_a_command_lacks_is_told_with_the_command(
    command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said = ended(capfd, command, "--no-such-option")[1]
    assert said.rstrip().endswith(f"(see `mlebench {command} --help`)")


@pytest.mark.parametrize("command", FAILING)
@pytest.mark.usefixtures("here")
def test_a_failure_is_1(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = ended(capfd, command, *FAILING[command])
    assert code == 1, said
    assert re.search(r"^mlebench: ", said, re.MULTILINE), "the last lines say what is wrong"


def test_nothing_to_grade_writes_no_report(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = ended(capfd, "grade", "--submission", "empty.jsonl", "--output-dir", "out")
    assert (code, "empty.jsonl has no submissions" in said, (here / "out").exists()) == (1, True, False)


@pytest.mark.parametrize("command", OF_GROUPS)
def test_close_matches_of_groups(command: str, group: Store, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = ended(capfd, command, *OF_GROUPS[command], "--store", group.root)
    assert (code, f"Did you mean {GROUP}" in said) == (1, True), said


@pytest.mark.parametrize("command", sorted(OF_GROUPS.keys() - {"show", "logs", "cancel"}))
def test_a_part_of_a_group_is_no_group(
    command: str, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_STORE", store.root)
    arguments = [f"{GROUP}/diabetes" if each == TYPO else each for each in OF_GROUPS[command]]
    code, said = ended(capfd, command, *arguments)
    assert code == 2, said
    assert f"mlebench: run group '{GROUP}/diabetes': use letters" in said


def test_advice_repeats_edition_and_store_and_works(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text("id\n")
    command = (str(tmp_path / "mine.csv"), "diabetes", "--edition", "v2", "--store", store.root)
    code, said = ended(capfd, "grade-sample", *command)
    (advice,) = re.findall(r"run: mlebench (.*)", said)
    assert (code, advice) == (1, f"prepare -c diabetes --edition v2 --store {store.local()}")
    assert ended(capfd, *advice.split())[0] == 0
    assert "invalid" in ended(capfd, "grade-sample", *command)[1]
