"""Planted plagiarism: what people do to copied code so that it does not look copied. And honest code."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

SOURCES = Path(__file__).parent / "sources"
KERNELS = ("kernel_gbm", "kernel_cnn", "kernel_text")
HONEST = ("honest_gbm", "honest_forest", "honest_cnn", "honest_text", "own_code")
CELL = "# %%\n"


def read(name: str) -> str:
    return (SOURCES / f"{name}.txt").read_text()


def renamed(code: str) -> str:
    """Every variable, function, class and attribute of the author's own under another name."""
    own = set(re.findall(r"^\s*(?:def|class) (\w+)", code, re.M))
    own |= set(re.findall(r"^\s*(?:self\.)?(\w+)(?:, \w+)* = ", code, re.M))
    own |= set(re.findall(r"\bfor (\w+)", code))
    own -= {"self", "__init__", "__len__", "__getitem__", "forward"}
    table = {name: f"zz_{place}" for place, name in enumerate(sorted(own))}
    return re.sub(
        r"(?<![\w.'\"])(self\.)?(\w+)\b(?!\s*=[^=].*[,)]$)", lambda m: (m[1] or "") + table.get(m[2], m[2]), code
    )


def reordered(code: str) -> str:
    """The cells in another order."""
    cells = code.split(CELL)
    random.Random(1).shuffle(cells)
    return CELL.join(cells)


def rewritten(code: str) -> str:
    """Other constants, other texts, comments, blank lines."""
    code = re.sub(r"\b(\d+)\b(?=[,)\n])", lambda m: str(int(m[1]) + 1), code)
    code = code.replace("../input", "/home/data").replace("# %%", "# next step of my own solution\n")
    return "\n".join(f"{line}\n" if place % 7 == 0 else line for place, line in enumerate(code.split("\n")))


def mixed(code: str) -> str:
    """Between code of one's own."""
    lines = read("own_code").split("\n\n\n")
    cells = code.split(CELL)
    longest = max(len(lines), len(cells))
    return "\n\n".join(part for i in range(longest) for part in [*cells[i : i + 1], *lines[i : i + 1]])


def everything(code: str) -> str:
    return mixed(rewritten(renamed(reordered(code))))


DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "renamed": renamed,
    "reordered": reordered,
    "rewritten": rewritten,
    "mixed": mixed,
    "everything": everything,
}
