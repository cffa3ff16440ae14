"""Editions of the benchmark.

``v1`` reproduces the published benchmark bit for bit, its bugs and leaks included, so that scores stay comparable. The
exception are repeated ids that two published graders sort in an order of the processor's, see docs/editions.md.
``v2`` differs from it only in the known issues that ``competition.yaml`` marks as fixed in v2.
"""

from __future__ import annotations

from typing import Literal, get_args

Edition = Literal["v1", "v2"]
EDITIONS: tuple[Edition, ...] = get_args(Edition)

Choice = Literal["v1", "v2", "both"]
"""What can be prepared in one go."""

VERSIONS: dict[Edition, str] = {"v1": "v1.0", "v2": "v2.5"}
"""The version of each edition, which records and reports state. docs/editions.md says what changed in each."""

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

    A line that is a mark says which edition the lines after it belong to, until the next mark. Marks are left out.

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
