"""Fenced code blocks of the documents, what is said about each of them, and how those that can be run are run.

A block in a language that is run (`console`, `python`) or read (`yaml`, `toml`, `json`) needs nothing beside it. A
comment on the line before says otherwise:

    <!-- not run: needs Kaggle -->    it is not run, and why
    <!-- file: agents/mine/start.sh -->    it is written to that file, for commands that follow
    <!-- exit code: 1 -->    its last command ends with this code

In a `console` block, lines after `$ ` are commands and the others what they print on standard output, where `...`
stands for anything; nothing is compared where a block shows no output.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from common.settings import get_settings
from flows.cli import main

ROOT = Path(__file__).parents[2]
# What the first ones leave, the others use.
_FIRST = ("getting-started.md", "concepts.md", "commands.md")
DOCUMENTS = [
    *(ROOT / "docs" / name for name in _FIRST),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in _FIRST),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
RUN = ("console", "python")
READ: dict[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|file|exit code): (?P<value>.+?) -->\n\n?)?```(?P<language>[\w-]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, its language, its text, and the comment before it."""

    place: str
    language: str
    text: str
    mark: str | None
    value: str | None


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a document in their order."""
    text = path.read_text("utf-8")
    for match in _BLOCK.finditer(text):
        place = f"{path.name}:{text.count(chr(10), 0, match.start('language')) + 1}"
        yield Block(place, match["language"], match["text"], match["mark"], match["value"])


def run(block: Block, folder: Path) -> None:
    """Do what the block says in `folder`, the current directory. Raises `AssertionError` if that is not as it says."""
    if block.mark == "not run":
        return
    if block.mark == "file":
        target = folder / str(block.value)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)
    if block.language in READ:
        READ[block.language](block.text)
    elif block.language == "python" and block.mark != "file":
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block.text, block.place, "exec"), {"__name__": "__document__"})
    elif block.language == "console":
        _console(block)


def _console(block: Block) -> None:
    steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not steps[0].strip(), f"{block.place}: a console block begins with `$ `"
    for number, step in enumerate(steps[1:], 2):
        command, _, expected = step.partition("\n")
        wanted = int(block.value or 0) if block.mark == "exit code" and number == len(steps) else 0
        code, out, err = command_result(command)
        assert code == wanted, f"{block.place}: {command} ended with {code}\n{out}\n{err}"
        shown = out + err if wanted else out
        if expected.strip():
            assert matches(expected, shown), f"{block.place}: {command} printed\n{shown}\n{err}"


def command_result(command: str) -> tuple[int, str, str]:
    """Exit code, standard output and error. `mlebench` runs in this process, which has imported everything already."""
    words = shlex.split(command, comments=True)
    if words[0] == "export":
        os.environ.update(dict([words[1].split("=", 1)]))
        get_settings.cache_clear()
        return 0, "", ""
    if words[0] != "mlebench" or re.search(r"[|<>*]", command):  # something for a shell
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=env)
        return result.returncode, result.stdout, result.stderr
    out, err = io.StringIO(), io.StringIO()
    get_settings.cache_clear()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words[1:])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def matches(expected: str, printed: str) -> bool:
    r"""Whether text is as a document shows it: `...` stands for anything within a line, and for lines by itself.

    >>> matches("a ... c\n...\nz", "a b c\nd\ne\nz\n"), matches("a", "b")
    (True, False)
    """
    pattern = ""
    for line in expected.strip("\n").splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*?".join(map(re.escape, re.split(r"\.\.\.", line.rstrip()))) + r"[ \t]*\n"
    return re.fullmatch(pattern + r"\s*", printed.rstrip() + "\n") is not None
