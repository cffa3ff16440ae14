"""Make a competition's folder in our format of one in the published format, as far as that can be done by rule.

The functions of `prepare.py` and `grade.py` are kept in modules of other names and called. What has to be decided by a
person is marked with CHECK, which `mlebench check` refuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from common.errors import UserError
from common.texts import read_text
from competitions.facts import Category
from competitions.published_code import PACKAGE
from competitions.published_format import PublishedCompetition
from flows.commands.options import create_folder

MARK = "CHECK"
_NOT_COPIED = ("config.yaml", "checksums.yaml", "leaderboard.csv", "kernels.txt", "description.md", "__pycache__", ".*")
_SECTIONS = ("## Overview", "## Data", "## Evaluation", "## Submission")
_ELSEWHERE = re.compile(rf"{re.escape(PACKAGE)}\.(?!utils\b)[\w.-]+")
_PREPARE = '''"""The files are written by the function of the published format, in a process of its own."""

from pathlib import Path

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.written_files import written_by

from .{module} import {function} as write_files


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    return written_by(Path(__file__).parent, "{module}", write_files.__name__, raw)
'''
_GRADE = '''"""The score is computed by the function of the published format."""

from competitions.editions import Edition

from .{module} import {function} as score


def grade(submission, answers, edition: Edition) -> float:
    return score(submission, answers)
'''
_READ_ANSWERS = """

def read_answers(prepared):
    return load_answers(prepared / "{answers}")
"""


def convert(source: Path, folder: Path) -> list[str]:
    """Write `folder` from the published folder `source`; returns what is marked, a line for each place.

    Raises `UserError` if `source` is not in the published format, or its functions are not in its own modules.
    """
    if not (source / "config.yaml").is_file():
        raise UserError(f"{source} is no competition in the published format: it has no config.yaml")
    competition = PublishedCompetition.load(source)
    entries = {part: competition.entry(part) for part in ("prepare", "grade")}
    for part, entry in entries.items():
        if entry.file.parent != competition.folder:
            raise UserError(f"{source}: {part} is in {entry.file}: copy it into the folder, and correct config.yaml")
    create_folder(competition.folder, folder, _NOT_COPIED)
    for part, entry in entries.items():
        module = f"published_{part}"
        if (folder / entry.file.name).is_file():
            (folder / entry.file.name).rename(folder / f"{module}.py")
        text = (_PREPARE if part == "prepare" else _GRADE).format(module=module, function=entry.function)
        if part == "grade" and competition.facts.files.answers.endswith(".jsonl"):
            text = text.replace("\nfrom .", "from mlebench.utils import load_answers\n\nfrom .", 1)
            text += _READ_ANSWERS.format(answers=competition.facts.files.answers)
        (folder / f"{part}.py").write_text(text, "utf-8")
    (folder / "competition.yaml").write_text(_facts(competition, folder.name), "utf-8")
    (folder / "description.md").write_text(_description(competition), "utf-8")
    for path in folder.rglob("*.py"):
        path.write_text("".join(map(_marked, read_text(path).splitlines(keepends=True))), "utf-8")
    return [
        f"{path.relative_to(folder)}, line {number}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".yaml", ".md")
        for number, line in enumerate(read_text(path).splitlines(), 1)
        if f" {MARK}: " in line
    ]


def _facts(competition: PublishedCompetition, competition_id: str) -> str:
    import yaml

    facts = competition.facts.model_copy(update={"id": competition_id}).model_dump(mode="json", exclude_defaults=True)
    categories = ", ".join(name for name in get_args(Category) if name != "unknown")
    marks = {"category: ": f"choose one of {categories}", "holdout: ": "say how the test set is drawn"}
    gold = competition.facts.files.gold_submission
    if gold.endswith(".jsonl"):
        marks["  gold_submission: "] = "prepare the right answers as a submission (CSV), and name that file"
    text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=1000)
    lines = []
    for line in text.splitlines():
        mark = next((f"  # {MARK}: {what}" for start, what in marks.items() if line.startswith(start)), "")
        lines.append(f"{line}{mark}\n")
    return "".join(lines)


def _description(competition: PublishedCompetition) -> str:
    text = competition.description
    missing = ", ".join(section for section in _SECTIONS if section not in text)
    return f"<!-- {MARK}: give it the sections {missing} -->\n{text}" if missing else text


def _marked(line: str) -> str:
    """A line of code, marked if it names a module of another folder, which is not part of this one."""
    if not _ELSEWHERE.search(line) or line.lstrip().startswith("#"):
        return line
    return (
        f"{line.rstrip()}  # {MARK}: copy this module into the folder, and import it with `from .module import ...`\n"
    )
