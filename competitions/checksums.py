"""Write the MD5s of a download and of prepared files into a competition's `competition.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping

# The block with its indented lines; competition.yaml has no comments or blank lines within it.
_BLOCK = re.compile(r"^checksums:.*\n(?:[ \t]+.*(?:\n|\Z))*", re.MULTILINE)
_NEXT = re.compile(r"^known_issues:", re.MULTILINE)


def with_checksums(text: str, download: str | None, prepared: Mapping[str, str]) -> str:
    r"""The text of a `competition.yaml` with these MD5s instead of its own. All other lines stay unchanged.

    Args:
        text: the file.
        download: MD5 of the downloaded archive, if it is known.
        prepared: MD5s of prepared files by path, such as `public/train.csv`.

    >>> print(with_checksums("id: x\nknown_issues: []\n", None, {"public/a.csv": "0" * 32}), end="")
    id: x
    checksums:
      prepared:
        public/a.csv: '00000000000000000000000000000000'
    known_issues: []
    """
    # MD5s are quoted, because YAML reads one of digits only, or of digits and one e, as a number.
    lines = ["checksums:"]
    if download:
        lines.append(f"  download: '{download}'")
    lines.append("  prepared:" if prepared else "  prepared: {}")
    lines += [f"    {_name(path)}: '{md5}'" for path, md5 in prepared.items()]
    block = "\n".join(lines) + "\n"
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    if _NEXT.search(text):
        return _NEXT.sub(lambda match: block + match[0], text, count=1)
    return text + ("" if text.endswith("\n") or not text else "\n") + block


def _name(path: str) -> str:
    return path if re.fullmatch(r"[\w./-]+", path) else "'" + path.replace("'", "''") + "'"
