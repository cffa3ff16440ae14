"""The end of an agent's output that an engine did not send while the log was followed."""

from __future__ import annotations

import pytest

from sandbox.docker.watch import END_BYTES, END_LINES, missing_output, rest_of

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


@pytest.mark.parametrize("piece", [1, 7, END_BYTES, len(MANY)])
@pytest.mark.parametrize("seen", [0, 1, END_BYTES, END_BYTES + 5, len(MANY) - 1, len(MANY)])
def test_what_follows_after_an_early_end_of_the_stream_is_read_anew(piece: int, seen: int) -> None:
    pieces = (MANY[place : place + piece] for place in range(0, len(MANY), piece))
    rest = rest_of(pieces, seen, MANY[:seen][-END_BYTES:])
    assert rest is not None
    assert b"".join(rest) == MANY[seen:]


@pytest.mark.parametrize("seen", [MANY[100:2000], MANY + b"more\n"])
def test_a_log_that_is_not_how_the_output_begins_has_no_rest(seen: bytes) -> None:
    assert rest_of(iter([MANY]), len(seen), seen[-END_BYTES:]) is None
