"""Find scripts of agents that Linux cannot run, because of the editor, archive or file system that they came from.

They are refused and not converted: a run is recorded with the fingerprint of the files that it was started with.
"""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path

from common import trees
from common.texts import IS_POINTER, is_pointer
from sandbox.errors import AgentError

_SHELL = re.compile(rb"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|k|z)?sh\b")
_START_BYTES = 1 << 20
"""Number of bytes of a start file that are looked at."""
_SCRIPT_LINES = 20
"""Number of lines whose ends are looked at, because an archive may follow."""
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WINDOWS = "has Windows line ends, with which Linux cannot run it: convert it with sed -i 's/\\r$//'"
_MARKED = "begins with a byte order mark, with which Linux cannot run it: save it as UTF-8 without one"


def interpreter(start: Path, shell: str) -> list[str]:
    """What comes before the path of a start file in the command that runs it.

    Nothing if it is executable and names its interpreter; that interpreter if its disk is mounted `noexec`; otherwise
    `shell`.
    """
    with start.open("rb") as file:
        first_line = file.readline(_START_BYTES)
    if not (start.stat().st_mode & 0o111 and first_line.startswith(b"#!")):
        return [shell]
    # The kernel passes the rest of the line as one argument, too.
    return [] if os.access(start, os.X_OK) else os.fsdecode(first_line[2:]).strip().split(maxsplit=1)


def require_sound(path: Path, beginning: bytes) -> None:
    """Raise `AgentError` for a script that Linux cannot run, and for a file that Git LFS has not fetched."""
    if (reason := problem(path.name, beginning)) is not None:
        raise AgentError(f"{path} {reason}")


def require_startable(folder: Path, start: Path) -> None:
    """Raise `AgentError` if the start file of the agent in `folder` cannot be run."""
    with trees.opened_below(folder, start) as file:
        content = b"".join(trees.pieces(file, _START_BYTES))
        executable = bool(os.fstat(file).st_mode & 0o111)
    require_sound(folder / start, content)
    if (reason := problem_of_start(content, executable=executable)) is not None:
        raise AgentError(f"{folder / start} {reason}")


def problem(name: str, beginning: bytes) -> str | None:
    r"""What is wrong with a file of an agent; None if nothing is.

    >>> problem("tool.py", b"#!/usr/bin/env python3\r\nimport os\r\n")[:22]
    'has Windows line ends,'
    >>> problem("tool.py", b"import os\r\n")
    """
    if is_pointer(beginning):
        return IS_POINTER
    first_line = beginning.partition(b"\n")[0]
    if first_line.endswith(b"\r") and (first_line.startswith(b"#!") or name.endswith((".sh", ".bash"))):
        return _WINDOWS
    return _MARKED if any(beginning.startswith(mark + b"#!") for mark in _BYTE_ORDER_MARKS) else None


def problem_of_start(content: bytes, *, executable: bool) -> str | None:
    r"""What else is wrong with a start file. Bash runs one that is not executable.

    >>> problem_of_start(b"#!/usr/bin/env python3\n", executable=False)
    'begins with #!/usr/bin/env python3, but is not executable, so that bash would run it: chmod +x'
    >>> problem_of_start(b"echo a\n", executable=False)
    """
    if content.startswith(_BYTE_ORDER_MARKS):
        return _MARKED
    if content.startswith(b"\x7fELF"):
        return "is a program, and must be a script: write one that starts it"
    first_line = content.partition(b"\n")[0]
    if b"\0" in first_line:  # as bash decides it: a script may have an archive behind its last command
        return "is no text: save it as UTF-8"
    if first_line.startswith(b"#!") and not _SHELL.match(first_line):
        interpreter = first_line.decode(errors="replace")[:100]
        wrong = f"begins with {interpreter}, but is not executable, so that bash would run it: chmod +x"
        return None if executable else wrong
    script = b"\n".join(content.partition(b"\0")[0].split(b"\n")[:_SCRIPT_LINES])
    return _WINDOWS if b"\r\n" in script or (b"\r" in script and b"\n" not in script) else None
