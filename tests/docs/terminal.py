"""Pictures of `mlebench run` in a terminal: while agents run, and at its end.

`python -m tests.docs.terminal` runs the demo in a pseudo-terminal and writes docs/run-live.svg and docs/run-end.svg.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = ["run", "--split", "demo", "--agent", "baseline", "--seeds", "2", "--run-group", "demo", "--agents", "2"]
COLUMNS, ROWS = 100, 40
_CONTROL = re.compile(r"\r|\n|\x1b\[\d*[A-Za-z]|\x1b\[\?\d+[hl]|\x1b\[[\d;]*m|[^\x1b\r\n]+")
# The format of rich without its fonts, which are fetched from elsewhere.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


class Screen:
    r"""The lines of a terminal, as far as programs write that go back over whole lines only.

    >>> screen = Screen()
    >>> screen.feed("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2KONE\r\n")
    >>> screen.lines
    ['ONE', '']
    """

    def __init__(self) -> None:
        self.lines = [""]
        self._row = 0
        self._fresh = False

    def feed(self, text: str) -> None:
        """Take what a program has written."""
        for part in _CONTROL.findall(text):
            if part == "\n":
                self._row += 1
                self._fresh = False
                if self._row == len(self.lines):
                    self.lines.append("")
            elif part == "\r":
                self._fresh = True
            elif part.endswith("A") and part.startswith("\x1b"):
                self._row = max(0, self._row - int(part[2:-1] or 1))
            elif part == "\x1b[2K":
                self.lines[self._row] = ""
            elif not part.startswith("\x1b") or part.endswith("m"):
                self.lines[self._row] = part if self._fresh else self.lines[self._row] + part
                self._fresh = False


def recorded(folder: Path) -> list[str]:
    """What the command writes to a terminal, piece by piece. Raises `RuntimeError` if it fails."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "MLEBENCH_STORE": "store"}
    env["PYTHONPATH"] = str(DOCS.parent)
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *COMMAND], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            pieces.append(piece.decode("utf-8", "replace").replace(str(folder), "/home/me"))
    os.close(ours)
    if process.returncode:
        raise RuntimeError("".join(pieces))
    return pieces


def pictures(pieces: list[str]) -> tuple[list[str], list[str]]:
    """The lines on the screen when most agents ran, and those at the end."""
    screen, live, most = Screen(), [""], -1
    for piece in pieces:
        screen.feed(piece)
        running = sum("running" in line for line in screen.lines)
        if running >= most:
            live, most = list(screen.lines), running
    return live, screen.lines


def svg(lines: list[str], title: str) -> str:
    """The lines as a picture of a terminal."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    while lines and not Text.from_ansi(lines[-1]).plain.strip():
        lines = lines[:-1]
    for line in [f"$ mlebench {' '.join(COMMAND)}", *lines]:
        console.print(Text.from_ansi(line), soft_wrap=True)
    return console.export_svg(title=title, code_format=_SVG, unique_id="run")


def main() -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        live, end = pictures(recorded(Path(folder).resolve()))
    for name, lines in (("run-live", live), ("run-end", end)):
        (DOCS / f"{name}.svg").write_text(svg(lines, "mlebench run"), "utf-8")


if __name__ == "__main__":
    main()
