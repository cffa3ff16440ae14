"""Competition folders made for a measurement, in the same form as those that users add."""

from __future__ import annotations

from pathlib import Path

_FACTS = """\
id: {id}
name: 'A measurement'
category: 'Image Classification'
complexity: demo
metric: {{name: accuracy, direction: higher}}
holdout: 'random'
leaderboard: {{teams: 1, gold: 0.9, silver: 0.8, bronze: 0.7, median: 0.5, human: false}}
files:
  answers: private/test.csv
  sample_submission: public/sample_submission.csv
  gold_submission: private/test.csv
"""
_HEAD = """\
from competitions.preparing.tables.bigtable import BigTable
from competitions.preparing.declaration import Preparation
from competitions.preparing.holdout import hold_out


def prepare(raw, edition, params):
    out = Preparation()
"""
_TABLES = """\
    train, test = hold_out(raw.read_csv("labels.csv", dtype={"id": str}), 0.2)
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(label=0))
"""
PREPARE = {
    "bench-pictures": _TABLES
    + """\
    images = raw.archive("images.zip")
    for name, rows in (("train", train), ("test", test)):
        out.public.copies(images.each("images/{}.png", rows["id"], to=name + "/{}.png"))
    return out
""",
    "bench-zips": _TABLES
    + """\
    images = raw.archive("images.zip")
    for name, rows in (("train.zip", train), ("test.zip", test)):
        out.public.archive(name, images.each("images/{}.png", rows["id"], to="{}.png"))
    return out
""",
    "bench-table": """\
    table = BigTable(raw, "train.csv")
    train, test = hold_out(table.rows, 0.1)
    out.public.content("train.csv", table.content(train))
    out.public.table("test.csv", (rows.drop(columns="fare") for rows in table.frames(test)))
    out.private.content("test.csv", table.content(test))
    out.public.table("sample_submission.csv", (rows[["key"]].assign(fare=0) for rows in table.frames(test)))
    return out
""",
    "bench-folders": _TABLES
    + """\
    for name, rows in (("train", train), ("test", test)):
        for each in rows["id"]:
            out.public.copy_tree(f"{name}/{each}", raw, f"scans/{each}")
    return out
""",
}


def make(below: Path, competition_id: str) -> Path:
    """The folder of one of `PREPARE`."""
    folder = below / competition_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "competition.yaml").write_text(_FACTS.format(id=competition_id))
    (folder / "description.md").write_text("A measurement.\n")
    (folder / "prepare.py").write_text(_HEAD + PREPARE[competition_id])
    (folder / "grade.py").write_text("def grade(submission, answers, edition):\n    return 0.0\n")
    return folder
