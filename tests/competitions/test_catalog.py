"""Every competition of the catalog, by being there: facts complete, description true, samples and gold grade."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from competitions import registry
from competitions.competition import Competition
from competitions.preparing.images import PARAMETER

ALL = [registry.get(name) for name in registry.list()]


@pytest.fixture(params=ALL, ids=lambda competition: competition.id)
def competition(request: pytest.FixtureRequest) -> Competition:
    return request.param


def test_facts_are_complete(competition: Competition) -> None:
    facts = competition.facts
    assert facts.leaderboard.teams > 0
    assert facts.name
    assert facts.holdout
    if facts.source == "kaggle":
        assert facts.checksums.download, "a download can only be verified against a known MD5"
        assert facts.checksums.prepared


def test_thresholds_lie_within_the_leaderboard(competition: Competition) -> None:
    board = competition.facts.leaderboard
    if board.percentiles is not None:
        best, last = board.percentiles[0], board.percentiles[-1]
        low, high = min(best, last), max(best, last)
        assert (best <= last) == competition.facts.lower_is_better or best == last
        assert low <= board.gold <= high


def test_description_has_what_an_agent_needs(competition: Competition) -> None:
    text = competition.description
    for heading in ("## Overview", "## Data", "## Evaluation", "## Submission"):
        assert heading in text
    assert "```" in text or re.search(r"\n    \S+,\S+", text), "an example of a submission"


def test_description_points_at_no_leak(competition: Competition) -> None:
    assert not re.search(r"\bleak|exploit|cheat|private/", competition.description, re.IGNORECASE)


def test_yaml_says_nothing_twice(competition: Competition) -> None:
    content = yaml.safe_load((competition.folder / "competition.yaml").read_text())
    assert content.get("params") != {}, "leave out what is empty"
    assert content.get("known_issues") != []


@pytest.mark.parametrize("part", ["prepare", "grade"])
def test_code_knows_the_editions_where_the_facts_name_a_fix(competition: Competition, part: str) -> None:
    code = (competition.folder / f"{part}.py").read_text().replace("edition: Edition", "")
    fixed = [issue.id for issue in competition.facts.known_issues if issue.v2 == "fixed" and part in issue.affects]
    optional = part == "prepare" and PARAMETER in competition.facts.params
    assert bool(re.search(r"\bedition\b", code)) == bool(fixed or optional), fixed


def test_known_issues_say_what_they_mean_for_scores(competition: Competition) -> None:
    content = yaml.safe_load((competition.folder / "competition.yaml").read_text())
    assert all("severity" in issue for issue in content.get("known_issues", []))


def test_no_fixed_issue_needs_agents_without_network(competition: Competition) -> None:
    assert not [issue.id for issue in competition.facts.known_issues if issue.needs and issue.v2 == "fixed"]


def test_comparability_and_columns_are_stated(competition: Competition) -> None:
    assert competition.facts.v2_comparable
    assert any(column.values == "id" for column in competition.facts.submission.values())


def test_oddities_are_known_issues(competition: Competition) -> None:
    assert bool(competition.facts.oddities) <= bool(competition.facts.known_issues)


@pytest.mark.parametrize("part", ["prepare", "grade"])
def test_signatures_are_alike(competition: Competition, part: str) -> None:
    wanted = {
        "prepare": "def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:",
        "grade": "def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:",
    }
    code = (competition.folder / f"{part}.py").read_text()
    assert wanted[part] in code
    assert "__future__" not in code
    assert "TYPE_CHECKING" not in code


def test_the_catalog_holds_the_whole_benchmark() -> None:
    sizes = {split: len(registry.list(split)) for split in registry.SPLITS}
    assert sizes == {
        "low": 22, "lite": 22, "medium": 38, "high": 15, "all": 75, "dev": 7, "demo": 3, "systemcard": 30,
    }  # fmt: skip


def test_folders_hold_only_what_belongs_there(competition: Competition) -> None:
    known = {"competition.yaml", "description.md", "description_obfuscated.md", "prepare.py", "grade.py", "bundle.py"}
    extra = {path.name for path in competition.folder.iterdir() if path.name != "__pycache__"} - known
    assert all(Path(name).suffix in {".py", ".json", ".csv", ".txt"} for name in extra), extra


def test_what_both_parts_need_is_defined_once(competition: Competition) -> None:
    """Names, and lists of the same literals, that prepare.py and grade.py share belong in a module of their own."""
    prepare, grade = (definitions((competition.folder / f"{part}.py").read_text()) for part in ("prepare", "grade"))
    assert prepare & grade == set()


def definitions(code: str) -> set[str]:
    """Names that a module defines for itself, and its literal collections of two or more values.

    Not those of `Reads`, which names columns of the file that prepare.py has written.
    """
    tree = ast.parse(code)
    reads = {each for node in ast.walk(tree) if _is_reads(node) for each in ast.walk(node)}
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node in tree.body:
            found |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > 1 and node not in reads:
            values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            if len(values) == len(node.elts):
                found.add(repr(sorted(map(repr, values))))
    return found


def _is_reads(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reads"


def test_imports_within_a_folder_are_relative_and_found(competition: Competition) -> None:
    for path in competition.folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                assert all((competition.folder / f"{name}.py").is_file() for name in names)
