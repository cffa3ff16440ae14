"""What the documents say can be done can be done: commands exist, Python blocks run, links lead somewhere."""

from __future__ import annotations

import pkgutil
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from common.settings import OTHER_VARIABLES, PREFIX, Settings
from competitions.facts import CompetitionFacts
from flows.cli import cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]
ROOMS = "common|competitions|grading|storage|sandbox|tasks|flows|deployments|benchmarks|tests|docs"


def blocks(language: str) -> list[tuple[str, str]]:
    """(document, block) of every fenced code block in that language."""
    return [
        (path.name, block)
        for path in PAGES
        for block in re.findall(rf"^```{language}\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[str]:
    lines = [line.split("#")[0].strip() for _, block in blocks("bash") for line in block.splitlines()]
    inline = [code for path in PAGES for code in re.findall(r"`(mlebench [^`]+)`", path.read_text("utf-8"))]
    return sorted({line for line in [*lines, *inline] if line.startswith("mlebench ")})


@pytest.mark.parametrize("line", commands())
def test_every_command_exists_with_its_options(line: str) -> None:
    name, command, arguments = cli.resolve_command(click.Context(cli), shlex.split(line)[1:])
    assert command is not None, name
    if arguments:
        command.make_context(name, arguments)


def test_the_complete_competition_yaml_is_valid() -> None:
    (text,) = [block for document, block in blocks("yaml") if document == "competitions.md" and block.startswith("id:")]
    assert CompetitionFacts.model_validate(yaml.safe_load(text)).resampling


@pytest.mark.parametrize(
    "target", re.findall(r"`make (\w+)`|^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
)
def test_every_make_target_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_both_forms_of_the_citation_say_the_same() -> None:
    (entry,) = [block for document, block in blocks("bibtex") if document == "README.md"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["preferred-citation"]
    fields = dict(re.findall(r"^  (\w+) += \{(.*?)\},?$", entry, re.MULTILINE | re.DOTALL))
    names = [name.split(",")[0].strip() for name in " ".join(fields["author"].split()).split(" and ")]
    assert [name.replace("\\k{a}", "ą").replace("{ą}", "ą") for name in names] == [
        author["family-names"] for author in cited["authors"]
    ]
    assert fields["title"].replace("{", "").replace("}", "") == cited["title"]
    assert (fields["year"], f"arXiv:{fields['eprint']}") == (str(cited["year"]), cited["identifiers"][0]["value"])


@pytest.mark.parametrize(("document", "block"), blocks("python"))
def test_python_blocks_compile_and_import(document: str, block: str) -> None:
    code = compile(block, document, "exec")
    # Some need a store, or another environment.
    if not re.search("read_parquet|inspect_ai|openenv|trl|mlebench.env|store/", block):
        exec(code, {})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_within_the_project_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_path_of_the_project_exists(path: Path) -> None:
    """Paths in code type that begin with a folder of the project; `*`, `<id>` and `NAME` stand for any name."""
    named = re.findall(rf"`((?:{ROOMS})/[^` ]*)`", path.read_text("utf-8"))
    patterns = {re.sub(r"<\w+>|NAME", "*", name).split("::")[0].rstrip("/") for name in named}
    patterns -= {"grading/grade"}  # a deployment
    assert [pattern for pattern in sorted(patterns) if not list(ROOT.glob(pattern))] == []


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_every_dotted_name_exists(path: Path) -> None:
    """Modules, classes and functions by their full name, such as `storage.datasets.prepare`."""
    for name in re.findall(rf"(?<![\w./-])((?:{ROOMS})(?:\.\w+)+)", path.read_text("utf-8")):
        if not name.endswith(".md"):
            pkgutil.resolve_name(name)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_name_is_in_the_file_that_is_named_with_it(path: Path) -> None:
    for name, file in re.findall(r"`(\w+)` (?:of|in) `([\w/]+)\.py`", path.read_text("utf-8")):
        pkgutil.resolve_name(f"{file.replace('/', '.')}:{name}")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_setting_exists(path: Path) -> None:
    """Variables `MLEBENCH_...` in the documents are settings, or variables that other parts of the project read."""
    names = set(re.findall(r"MLEBENCH_[A-Z0-9_]*[A-Z0-9]", path.read_text("utf-8")))
    known = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields} | OTHER_VARIABLES.keys()
    assert {name.split("__")[0] for name in names} - known == set()


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_the_index_lists_every_page(page: str) -> None:
    assert page == "index.md" or f"]({page})" in (ROOT / "docs" / "index.md").read_text("utf-8")
