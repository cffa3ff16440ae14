"""Where v2 differs, the code says why: beside it stands the id of the known issue that competition.yaml explains."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.fingerprints import closure

pytestmark = pytest.mark.slow

ALL = [registry.get(name) for name in registry.list()]
PARTS = ("prepare", "grade")
MARK = re.compile(r"v2 fixes ([a-z0-9-]+(?:, [a-z0-9-]+)*)")


@cache
def comments(text: str) -> str:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type == tokenize.COMMENT)


def named(competition: Competition, part: str) -> set[str]:
    """Ids of issues in the code of a part: in comments, and as what the record of a dataset names."""
    path = competition.folder / f"{part}.py"
    texts = [file.read_text("utf-8") for file in closure(path, competition.folder).files if file.suffix == ".py"]
    marked = {each for text in texts for found in MARK.findall(comments(text)) for each in found.split(", ")}
    return marked | {each for text in texts for each in re.findall(r'LeftOut\(\s*"([a-z0-9-]+)"', text)}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
def test_code_names_each_issue_that_it_fixes(competition: Competition, part: str) -> None:
    fixed = {each.id for each in competition.facts.known_issues if each.v2 == "fixed" and part in each.affects}
    assert not fixed - named(competition, part), f"write `# v2 fixes ID` where {part}.py fixes it"


@pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
def test_each_named_issue_is_one_that_v2_fixes(competition: Competition) -> None:
    fixed = {each.id for each in competition.facts.known_issues if each.v2 == "fixed"}
    for path in competition.folder.glob("*.py"):
        marks = {each for found in MARK.findall(comments(path.read_text("utf-8"))) for each in found.split(", ")}
        assert marks <= fixed, path.name


@pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
def test_each_condition_on_the_edition_has_a_reason(competition: Competition) -> None:
    """In its line, or in the one above."""
    for part in PARTS:
        lines = (competition.folder / f"{part}.py").read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bedition (==|!=|in) ", line) and not line.lstrip().startswith("#"):
                above = lines[number - 1].lstrip()
                assert "#" in line or above.startswith("#"), f"{part}.py, line {number + 1}: {line.strip()}"


def test_comments_are_what_is_read() -> None:
    assert comments('x = "# v2 fixes a"  # v2 fixes b\n') == "# v2 fixes b"
