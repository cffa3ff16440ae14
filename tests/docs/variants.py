"""The table of docs/variants.md, from variants of the miniatures of all competitions.

`python -m tests.docs.variants` brings it up to date. What precedes the line BEGIN is written by hand.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from competitions import registry
from grading.competition_checks.run import Result
from grading.competition_checks.variants import check_variant
from storage.datasets import prepare
from tests.prepared import Prepared, PreparedCompetitions

DOCUMENT = Path(__file__).parents[2] / "docs" / "variants.md"
BEGIN = "<!-- generated from the miniatures of tests by python -m tests.docs.variants -->"


def checked(prepared: Prepared, scratch: Path) -> list[Result]:
    """The results of checking a variant of a miniature."""
    return list(check_variant(prepared.competition, prepared.path, scratch / "variant", prepared.edition, prepare))


def row(competition_id: str, results: list[Result]) -> str:
    """What the table says of a competition."""
    first = results[0]
    if first.verdict == "skipped":
        return f"| {competition_id} | no | {first.problems[0]} |"
    remarks = [f"stays whole: {_code(first.problems[0])}"] if "; whole: " in first.problems[0] else []
    remarks += [f"`{each.check}` is skipped: {each.problems[0]}" for each in results[1:] if each.verdict == "skipped"]
    return f"| {competition_id} | yes | {'; '.join(remarks)} |"


def _code(summary: str) -> str:
    return ", ".join(f"`{name}`" for name in summary.partition("; whole: ")[2].split(", "))


def rows_in(text: str) -> dict[str, str]:
    """The rows of the document by competition."""
    rows = [line for line in text.partition(BEGIN)[2].splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in rows[1:]}


def main() -> None:
    """Write the table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        prepared = PreparedCompetitions(Path(folder))
        for name in registry.list():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                rows.append(row(name, checked(prepared[name], Path(scratch))))
    count = sum(" | yes | " in line for line in rows)
    above = DOCUMENT.read_text("utf-8").partition(BEGIN)[0]
    head = ["## Which competitions have variants", "", f"{count} of {len(rows)}.", ""]
    table = [*head, "| competition | variants | remarks |", "|---|---|---|", *rows, ""]
    DOCUMENT.write_text(above + BEGIN + "\n\n" + "\n".join(table), "utf-8")


if __name__ == "__main__":
    main()
