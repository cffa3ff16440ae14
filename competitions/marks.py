"""The marks of `mlebench new` in a competition's folder: places that a person has to decide on."""

from __future__ import annotations

import re
from pathlib import Path

_MARK = re.compile(r"(?:#|<!--) CHECK: ")


def marked_places(folder: Path) -> list[str]:
    """The places in a competition's folder that are marked with CHECK: file, line, and what is to be decided."""
    return [
        f"{path.relative_to(folder)}, line {number}: {line.partition('CHECK: ')[2].removesuffix(' -->')}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".yaml", ".md") and path.is_file()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if _MARK.search(line)
    ]
