"""The end of an agent's output that an engine did not send while the log was followed."""

from __future__ import annotations

import pytest

from sandbox.docker.watch import END_BYTES, END_LINES, missing_output

LOST = b"\n[... some output was lost ...]\n"
MANY = b"".join(b"line %d\n" % number for number in range(10 * END_LINES))


@pytest.mark.parametrize(
    ("seen", "end", "missing"),
    [
        (b"", b"", b""),
        (b"begun\noops\n", b"begun\noops\n", b""),
        (b"begun\n", b"begun\noops\nno newline", b"oops\nno newline"),
        (b"", b"begun\noops\n", b"begun\noops\n"),
        (MANY[-END_BYTES:], b"".join(MANY.splitlines(keepends=True)[-END_LINES:]), b""),
        (MANY[:END_BYTES], MANY[-END_BYTES:], LOST + MANY[-END_BYTES:]),
        (b"", b"x\n" * END_LINES, LOST + b"x\n" * END_LINES),
    ],
)
def test_what_is_missing_is_appended_once(seen: bytes, end: bytes, missing: bytes) -> None:
    assert missing_output(seen, end) == missing
