"""Editions of the benchmark.

``v1`` reproduces the published benchmark bit for bit, its bugs and leaks included, so that scores stay comparable. The
exception is the order of repeated ids in two published graders, which depends on the processor; see docs/editions.md.
``v2`` differs from it only in the known issues that ``competition.yaml`` marks as fixed in v2.
"""

from __future__ import annotations

from typing import Literal, get_args

Edition = Literal["v1", "v2"]
EDITIONS: tuple[Edition, ...] = get_args(Edition)

Choice = Literal["v1", "v2", "both"]
"""The editions that one command can prepare."""

VERSIONS: dict[Edition, str] = {"v1": "v1.0", "v2": "v2.5"}
"""The version of each edition, as in records and reports. docs/editions.md lists the changes of each version."""

_MARKS: dict[str, tuple[Edition, ...]] = {
    "<!-- v1 -->": ("v1",),
    "<!-- v2 -->": ("v2",),
    "<!-- both editions -->": EDITIONS,
}


def chosen(choice: Choice) -> tuple[Edition, ...]:
    """The editions of a choice."""
    return EDITIONS if choice == "both" else (choice,)


def text_of(text: str, edition: Edition) -> str:
    r"""The description of a competition in one edition.

    A line that is a mark states the edition of the lines after it, until the next mark. Marks are removed.

    >>> text_of("A\n<!-- v1 -->\nold\n<!-- v2 -->\nnew\n<!-- both editions -->\nZ\n", "v2")
    'A\nnew\nZ\n'
    """
    belongs, lines = EDITIONS, []
    for line in text.splitlines(keepends=True):
        mark = _MARKS.get(line.strip())
        if mark is None and edition in belongs:
            lines.append(line)
        belongs = mark or belongs
    return "".join(lines)
