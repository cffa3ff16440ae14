"""What the documents say can be done can be done: commands exist, Python blocks run, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from flows.cli import cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """(document, block) of every fenced code block in that language."""
    return [
        (path.name, block)
        for path in DOCUMENTS
        for block in re.findall(rf"^```{language}\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[str]:
    lines = [line.split("#")[0].strip() for _, block in blocks("bash") for line in block.splitlines()]
    inline = [code for path in DOCUMENTS for code in re.findall(r"`(mlebench [^`]+)`", path.read_text("utf-8"))]
    return sorted({line for line in [*lines, *inline] if line.startswith("mlebench ")})


@pytest.mark.parametrize("line", commands())
def test_every_command_exists_with_its_options(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    if arguments:
        command.make_context(name, arguments)


@pytest.mark.parametrize(
    "target", re.findall(r"`make (\w+)`|^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
)
def test_every_make_target_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("document", "block"), blocks("python"))
def test_python_blocks_compile_and_import(document: str, block: str) -> None:
    code = compile(block, document, "exec")
    if "read_parquet" not in block:  # needs a store
        exec(code, {})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_the_project_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []
