"""Every issue that v2 fixes has a probe, and every probe belongs to such an issue."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pandas as pd
import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import DownloadError
from competitions.preparing.download import Download
from tests.competitions.issues._probe import World
from tests.prepared import PreparedCompetitions

FOLDER = Path(__file__).parent
COMPETITIONS = [registry.get(name) for name in registry.list()]


def module_of(competition: Competition) -> Path:
    return FOLDER / f"test_{competition.id.replace('-', '_').lower()}.py"


def probes(module: Path) -> set[str]:
    """The names of the tests in a module."""
    if not module.exists():
        return set()
    functions = [node for node in ast.parse(module.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if function.name.startswith("test_")}


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
def test_each_fixed_issue_has_its_probe(competition: Competition) -> None:
    fixed = {f"test_{i.id.replace('-', '_')}" for i in competition.facts.known_issues if i.v2 == "fixed"}
    found = probes(module_of(competition))
    assert not fixed - found, "fixed in v2, but no probe shows it"
    assert not found - fixed, "a probe of an issue that v2 does not fix, or that competition.yaml does not list"


def test_each_module_belongs_to_a_competition() -> None:
    expected = {module_of(each).name for each in COMPETITIONS} | {Path(__file__).name, "test_channels.py"}
    assert {path.name for path in FOLDER.glob("test_*.py")} <= expected


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
def test_ids_under_which_answers_can_be_looked_up_are_an_issue(
    competition: Competition, prepared: PreparedCompetitions
) -> None:
    """The ids of v2's test set are not those of Kaggle's files, or agents must not have a network."""
    if competition.facts.source == "bundled" or any(issue.needs for issue in competition.facts.leaks("v2")):
        return
    found = prepared.get(competition.id, "v2")
    column = next(name for name, each in competition.facts.submission.items() if each.values == "id")
    sample = pd.read_csv(found.path / competition.facts.files.sample_submission, dtype=str, keep_default_na=False)
    hidden = set(sample[column])
    for where, names in public_names(Download.open(str(found.raw))):
        if not all(name.isdigit() for name in hidden):  # small numbers occur everywhere
            assert len(hidden & names) < 0.5 * len(hidden), where


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
def test_what_is_left_out_of_train_mends_an_issue(
    competition: Competition, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    fixed = {issue.id for issue in competition.facts.known_issues if issue.v2 == "fixed"}
    assert World(prepared.get(competition.id, "v1"), tmp_path).left_out == []
    assert {each.issue for each in World(prepared.get(competition.id, "v2"), tmp_path).left_out} <= fixed


def public_names(download: Download) -> Iterator[tuple[str, set[str]]]:
    """Ids that Kaggle's files state: the names of files and folders, and the columns of tables."""
    paths = [PurePosixPath(name) for name in download.names()]
    yield "names", {part for path in paths for part in (*path.parts, path.stem)}
    for path in paths:
        if "sample" in path.name.lower():
            continue
        if path.suffix in (".zip", ".7z"):
            with contextlib.suppress(DownloadError):  # archives that no one reads are none in miniatures
                yield from public_names(download.archive(str(path)))
        elif path.suffix in (".csv", ".tsv"):
            separator = "\t" if path.suffix == ".tsv" else ","
            table = download.read_csv(str(path), dtype=str, keep_default_na=False, sep=separator)
            yield from ((f"{path}: {name}", set(table[name])) for name in table.columns)
