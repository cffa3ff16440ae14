"""What the documents show is what happens: their code blocks are run, on one store, in their order."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from tests.docs.blocks import DOCUMENTS, READ, ROOT, RUN, blocks, matches, run

ABSENT = ("try-", "checkpoints/", "misplaced/", "episodes/")
LONG = ("README.md", "concepts.md", "commands.md")
pytestmark = pytest.mark.timeout(900)  # a document is one test, and runs many commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory in which a reader works, with the store that `getting-started.md` makes."""
    place = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("MLEBENCH_SCRATCH", str(place / "scratch"))
        patch.setenv("MLEBENCH_DASK_WORKERS", "1")
        patch.setenv("MLEBENCH_STORE", "store")
        patch.setenv("MLEBENCH_COMPETITIONS", "")
        patch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([]))
        patch.setenv("COLUMNS", "100")
        for block in blocks(ROOT / "docs" / "getting-started.md"):
            run(block, place)
        yield place
    get_settings.cache_clear()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_is_run_or_says_why_not(path: Path) -> None:
    silent = [each.place for each in blocks(path) if each.language not in (*RUN, *READ) and each.mark is None]
    assert not silent, "put <!-- not run: REASON --> or <!-- file: PATH --> on the line before"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_fence_is_missed(path: Path) -> None:
    """A fence that is indented or not closed would not be looked at."""
    fences = sum(line.lstrip().startswith("```") for line in path.read_text("utf-8").splitlines())
    assert fences == 2 * len(list(blocks(path)))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.name in LONG else [])
        for path in DOCUMENTS
        if path.name != "getting-started.md"
    ],
    ids=lambda path: path.name,
)
def test_blocks_run_and_print_what_is_shown(path: Path, folder: Path) -> None:
    environment = dict(os.environ)  # what a document exports is its own reader's
    try:
        for block in blocks(path):
            run(block, folder)
    finally:
        os.environ.clear()
        os.environ.update(environment)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\n", False),
        ("a ... c", "a b b c\n", True),
        ("a ... c", "a b\nc\n", False),
        ("...\nz", "x\ny\nz\n", True),
        ("a\n...", "a\n", True),
        ("1.5", "1x5\n", False),
    ],
)
def test_dots_stand_for_anything(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) == same


def test_a_store_is_laid_out_as_shown(folder: Path) -> None:
    layout = next(each for each in blocks(ROOT / "docs" / "concepts.md") if each.text.startswith("raw/"))
    for line in layout.text.splitlines():
        path = re.sub(r"<\w+>", "*", line.split("  ")[0]).replace("...", "*")
        # Archives are removed after preparing. No run of these pages replaces another one, is in progress, or leaves no
        # submission, and the episodes are those of a test of docs/training.md.
        if not path.endswith(".zip") and not any(part in path for part in ABSENT):
            assert list((folder / "store").glob(path)), line
