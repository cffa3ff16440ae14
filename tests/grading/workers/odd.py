"""A competition whose grader a test writes."""

from __future__ import annotations

from pathlib import Path

from competitions import registry
from competitions.competition import Competition


def odd_competition(scratch: Path, grade: str, answers: str, **replaced: str) -> tuple[Competition, Path]:
    """The competition `odd` with this grade.py, and its prepared dataset, which has these answers and nothing else.

    Its facts are those of diabetes, with the texts that are keys of `replaced` replaced by their values.
    """
    folder, prepared = scratch / "odd", scratch / "prepared"
    folder.mkdir(parents=True)
    facts = (registry.get("diabetes").folder / "competition.yaml").read_text()
    facts = facts.replace("id: diabetes", "id: odd", 1)
    for old, new in replaced.items():
        facts = facts.replace(old, new)
    (folder / "competition.yaml").write_text(facts)
    (folder / "description.md").write_text("# Odd\n")
    (folder / "prepare.py").write_text("")
    (folder / "grade.py").write_text(grade)
    competition = Competition.load(folder)
    path = prepared / competition.facts.files.answers
    path.parent.mkdir(parents=True)
    path.write_text(answers)
    return competition, prepared
