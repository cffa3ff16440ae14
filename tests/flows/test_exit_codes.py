"""Exit codes of all commands are those of the table in `docs/commands.md`, and names of groups have close matches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows.cli import COMMANDS, main
from tests.docs.blocks import ROOT
from tests.flows.graded import GROUP, dataset, group
from tests.stores import Store

__all__ = ["dataset", "group"]

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
    "regrade": [TYPO],
    "export": [TYPO],
    "make-submission": [TYPO],
    "plagiarism": [TYPO],
    "violations": [TYPO],
    "contamination": [TYPO, "--model", "m"],
    "split-noise": [TYPO],
}
"""Commands about run groups, with the name of a group that does not exist."""
FAILING = OF_GROUPS | {
    "list": ["--split", "lo"],
    "issues": ["nobody"],
    "prepare": ["-c", "nobody"],
    "run": ["-c", "nobody"],
    "watch": ["nobody"],  # without a Prefect server
    "worker": [],
    "notify": ["--off"],
    "adopt": ["."],  # an existing folder without prepared competitions
    "agents": ["nobody"],
    "agent new": ["Not A Name"],
    "agent try": ["nobody"],
    "build": ["nobody"],
    "grade": ["--submission", "nowhere.jsonl", "--output-dir", "out"],
    "grade-sample": ["nowhere.csv", "nobody"],
    "leaderboard": ["nobody"],
    "dev download-leaderboard": ["-c", "nobody"],
    "kernels": ["nobody"],
    "new": ["Not A Name"],
    "check": ["nobody"],
    "config": ["nobody"],
    "doctor": ["-c", "nobody"],
    "du": ["--store", "nonsense://x"],
    "gc": ["--raw", "--store", "nonsense://x"],
    "import-report": ["broken.json", "--group", "g"],
}
"""A mistake of the user for each command that is no wrong usage: something that does not exist, or cannot be used."""


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
def test_codes_of_help_wrong_usage_and_failure(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    (tmp_path / "broken.json").write_text("{")
    assert ended(capfd, command, "--help")[0] == 0
    assert ended(capfd, command, "--no-such-option")[0] == 2
    if command == "completion":  # all that can be wrong with it is its usage
        return
    code, said = ended(capfd, command, *FAILING[command])
    assert code == 1, said
    assert re.search(r"^mlebench: ", said, re.MULTILINE), "the last lines say what is wrong"


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
    assert (code, said.startswith(f"mlebench: run group '{GROUP}/diabetes': use letters")) == (1, True), said


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
