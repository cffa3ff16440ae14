"""`mlebench completion bash`, evaluated in a real bash: what Tab offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import main
from tests.docs.blocks import ROOT
from tests.stores import Store

BASH = """
eval "$(mlebench completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_mlebench_completion mlebench "${{COMP_WORDS[COMP_CWORD]}}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def offered(recorded_store: Store, tmp_path: Path) -> object:
    """What bash offers for the words of a command line, the last of which is being typed."""
    program = tmp_path / "mlebench"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m flows.cli "$@"\n')
    program.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MLEBENCH_STORE": recorded_store.root,
    }

    def complete(words: str) -> set[str]:
        script = BASH.format(words=words)
        done = subprocess.run(
            ["bash", "--norc", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert not done.stderr, "it would be printed into the prompt"
        return set(done.stdout.split())

    return complete


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("mlebench com", {"compare", "completion"}),
        ("mlebench agent ''", {"new", "try"}),
        ("mlebench run --dr", {"--dry-run"}),
        ("mlebench run -c leaf", {"leaf-classification"}),
        ("mlebench prepare --split sy", {"systemcard"}),
        ("mlebench run --agent base", {"baseline"}),
        ("mlebench agent try base", {"baseline"}),
        ("mlebench check spaceship", {"spaceship-titanic"}),
        ("mlebench ls old-p", {"old-process"}),
        ("mlebench logs old-process/", {"old-process/digits/0"}),
        ("mlebench config llm_d", {"llm_dollars"}),
        ("mlebench ls --store s3://nothing/here old", set()),
    ],
)
def test_tab_completes(offered: object, words: str, offers: set[str]) -> None:
    assert callable(offered)
    assert offered(words) == offers


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_MLEBENCH_COMPLETE" in capfd.readouterr().out
