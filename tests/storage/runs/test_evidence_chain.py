"""The hash chain: whatever is changed afterwards is told, with the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.runs.evidence.chain import GENESIS, chain, check_chain, head_of, to_bytes
from storage.runs.evidence.signing import sign, signed

RECORDS: list[dict[str, Any]] = [
    {"kind": "begin", "at": "2026-01-01T00:00:00+00:00", "agent": "dummy"},
    {"kind": "validation", "call": {"sha256": "ab" * 32, "verdict": "valid", "seconds": 0.25}},
    {"kind": "gateway", "call": {"model": "gpt-4o", "cost_usd": 0.003, "message": "naïve ☃"}},
    {"kind": "snapshot", "path": "snapshots/12.5.csv", "sha256": "cd" * 32, "bytes": 17, "at_seconds": 12.5},
    {"kind": "end", "record": "ef" * 32},
]
ENTRIES = chain(RECORDS)
CONTENT = to_bytes(ENTRIES)


def told(content: bytes) -> list[str]:
    return [str(problem) for problem in check_chain(content, head_of(ENTRIES), len(ENTRIES))[1]]


def test_a_ledger_that_nobody_touched_is_sound() -> None:
    assert told(CONTENT) == []
    assert ENTRIES[0]["prev"] == GENESIS
    assert [entry["prev"] for entry in ENTRIES[1:]] == [entry["hash"] for entry in ENTRIES[:-1]]


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 255))
@settings(max_examples=300)
def test_one_changed_byte_is_told_with_its_line(place: int, byte: int) -> None:
    changed = CONTENT[:place] + bytes([byte]) + CONTENT[place + 1 :]
    problems = told(changed)
    if changed == CONTENT:
        assert not problems
    else:
        line = CONTENT[:place].count(b"\n") + 1
        assert any(f"line {line}:" in each for each in problems), problems


def test_every_single_byte_matters() -> None:
    for place in range(len(CONTENT)):
        assert told(CONTENT[:place] + bytes([CONTENT[place] ^ 1]) + CONTENT[place + 1 :]), place


@pytest.mark.parametrize("number", range(len(ENTRIES)))
def test_a_removed_line_is_told(number: int) -> None:
    lines = CONTENT.splitlines(keepends=True)
    problems = told(b"".join(lines[:number] + lines[number + 1 :]))
    if number < len(lines) - 1:
        assert any(each.startswith(f"line {number + 1}: is entry {number + 1}") for each in problems)
    assert "ledger: has 4 entries, 5 were recorded" in problems


@pytest.mark.parametrize("kept", range(len(ENTRIES)))
def test_a_ledger_cut_after_whole_lines_is_told(kept: int) -> None:
    problems = told(b"".join(CONTENT.splitlines(keepends=True)[:kept]))
    assert f"ledger: has {kept} entries, 5 were recorded" in problems
    assert any("recorded is" in each for each in problems)


def test_a_ledger_cut_within_a_line_is_told() -> None:
    assert "line 5: is truncated: it has no newline" in told(CONTENT[:-1])
    assert "line 5: is not an entry of a ledger" in told(CONTENT[:-9])


def test_exchanged_and_repeated_lines_are_told() -> None:
    lines = CONTENT.splitlines(keepends=True)
    assert any(each.startswith("line 2:") for each in told(b"".join([lines[0], lines[2], lines[1], *lines[3:]])))
    assert any(each.startswith("line 3:") for each in told(b"".join([*lines[:2], lines[1], *lines[2:]])))


def test_a_chain_made_anew_does_not_end_in_the_recorded_head() -> None:
    forged = to_bytes(chain([*RECORDS[:-1], {"kind": "end", "record": "00" * 32}]))
    (problem,) = told(forged)
    assert problem.startswith("ledger: ends in")


def test_a_signature_needs_the_key() -> None:
    head = head_of(ENTRIES)
    assert signed(head, sign(head, "key"), "key")
    assert not signed(head, sign(head, "other key"), "key")
    assert not signed(head_of(ENTRIES[:-1]), sign(head, "key"), "key")


def test_white_space_in_a_line_is_a_change() -> None:
    spaced = CONTENT.replace(b'"seq":0', b'"seq": 0')
    assert told(spaced) == ["line 1: was changed: it is not in canonical form"]
    assert json.loads(spaced.splitlines()[0]) == ENTRIES[0]
