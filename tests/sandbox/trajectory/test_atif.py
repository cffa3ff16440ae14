"""Trajectories are read by the package `atif`, whose models refuse unknown fields and references to nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox.trajectory import atif
from sandbox.trajectory.calls import Call
from sandbox.trajectory.files import write_trajectory
from sandbox.trajectory.messages import Message, ToolCall
from sandbox.trajectory.page import PAGE_CHARACTERS, render
from tests import readers
from tests.grading.page.pages import EVIL, Document

READ = """
import json, sys
from atif import Trajectory
for path in sys.argv[1:]:
    read = Trajectory.model_validate_json(open(path).read())
    assert read.to_json_dict() == json.load(open(path)), path
print(json.dumps([step.source for step in read.steps]))
"""
SYSTEM, TASK = Message("system", "Be brief."), Message("user", "Win.")
LOOK = Message("assistant", "Let me look.", "Where to begin?", (ToolCall("c1", "bash", {"command": "ls"}),))
FILES = Message("tool", "train.csv", call_id="c1")


def call(asked: Sequence[Message] | None, answer: Message | None, **fields: Any) -> Call:
    facts: dict[str, Any] = {
        "id": "x",
        "model": "gpt-4o",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        "seconds": 2.0,
    }
    facts |= {"status": "ok", "message": None, "input_tokens": 100, "cached_tokens": 40, "output_tokens": 10}
    facts |= {"cost_usd": 0.5, **fields}
    return Call(**facts, asked=None if asked is None else tuple(asked), answer=answer)


def trajectory(*calls: Call) -> dict[str, Any]:
    return atif.trajectory(calls, session="group-digits-0", agent="aide", version="abc")


def told(*calls: Call) -> list[tuple[str, str]]:
    return [(step["source"], step["message"]) for step in trajectory(*calls)["steps"]]


def test_a_conversation_is_told_once_though_every_request_repeats_it() -> None:
    asked = [SYSTEM, TASK]
    after = [*asked, Message("assistant", LOOK.text, calls=LOOK.calls), FILES]  # agents leave the reasoning out
    found = trajectory(call(asked, LOOK), call(after, Message("assistant", "Done.")))
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "agent"]
    look = found["steps"][2]
    assert look["reasoning_content"] == "Where to begin?"
    assert look["tool_calls"] == [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}]
    assert look["observation"] == {"results": [{"source_call_id": "c1", "content": "train.csv"}]}
    assert look["metrics"] == {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40, "cost_usd": 0.5}
    assert found["final_metrics"] == {
        "total_prompt_tokens": 200,
        "total_completion_tokens": 20,
        "total_cached_tokens": 80,
        "total_cost_usd": 1.0,
        "total_steps": 4,
    }


def test_a_text_that_is_said_again_is_told_again() -> None:
    go, on = Message("user", "Go on."), Message("assistant", "More.")
    assert told(call([go], on), call([go, on, go], on)) == [("user", "Go on."), ("agent", "More.")] * 2


def test_an_agent_that_forgets_old_messages_tells_the_others_once() -> None:
    talk = [Message("user" if n % 2 == 0 else "assistant", str(n)) for n in range(9)]
    found = told(*(call(talk[max(0, n - 3) : n + 1], talk[n + 1]) for n in range(0, 8, 2)))
    assert [text for _, text in found] == [str(n) for n in range(8)]


def test_conversations_beside_each_other_do_not_mix() -> None:
    asked = [[SYSTEM, Message("user", name)] for name in "ab"]
    more = [[*each, Message("assistant", "?"), Message("user", "!")] for each in asked]
    found = told(*(call(each, Message("assistant", "?")) for each in (*asked, *more)))
    users = [text for source, text in found if source == "user"]
    assert users == ["a", "b", "!", "!"]


@pytest.mark.service("readers")
def test_the_package_reads_all_of_it(tmp_path: Path) -> None:
    cases = [
        trajectory(call([SYSTEM, TASK], LOOK), call([SYSTEM, TASK, LOOK, FILES], Message("assistant", "Done."))),
        trajectory(call(None, None, cost_usd=None), call(None, None, status="error", message="out of order")),
        trajectory(call(None, None, status="refused", message="used up")),
        trajectory(call([Message("tool", "of nobody", call_id="?"), LOOK, FILES], LOOK)),
        trajectory(call([TASK], Message("assistant", "", calls=(LOOK.calls[0], ToolCall("c1", "b", {}))))),
        trajectory(),
    ]
    for number, each in enumerate(cases):
        (tmp_path / f"{number}.json").write_text(json.dumps(each))
    assert readers.read(READ, *sorted(tmp_path.glob("*.json"))) == []
    assert cases[1]["notes"] == atif.NO_MESSAGES
    assert "total_cost_usd" not in cases[1]["final_metrics"]
    assert cases[2]["steps"][0]["message"] == "request refused: used up"


@pytest.mark.service("readers")
def test_hostile_transcripts_are_read_too(tmp_path: Path) -> None:
    """Lone surrogates, numbers beyond JSON, nesting, and torn lines."""
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    arguments = json.dumps({"text": "\ud800", "number": float("inf"), "deep": deep, "big": 10**30})
    request = {"messages": [{"role": "user", "content": "\udfff"}]}
    tool = {"id": "\ud800", "function": {"name": None, "arguments": arguments}}
    response = {"choices": [{"message": {"content": "\ud800", "tool_calls": [tool]}}]}
    entry = {"id": "1", "model": "\ud800", "started_at": "never", "status": "ok"}
    (tmp_path / "gateway.jsonl").write_text(json.dumps(entry) + "\n" + '{"id": "2", "mod')
    line = json.dumps({"id": "1", "request": request, "response": response})
    (tmp_path / "transcripts.jsonl").write_text(f"{line}\nnot JSON\n")
    journals = {path.name: path for path in tmp_path.glob("*.jsonl")}
    files = write_trajectory(journals, tmp_path, session="s", agent="a", version="v")
    assert readers.read(READ, files["trajectory.json"]) == ["user", "agent"]
    assert write_trajectory({}, tmp_path, session="s", agent="a", version="v") == {}


@pytest.mark.parametrize("evil", EVIL)
def test_whatever_is_said_stays_text_on_the_page(evil: str) -> None:
    said = Message("assistant", evil, evil, (ToolCall(evil, evil, {evil: evil}),))
    found = trajectory(call([Message("user", evil)], said, model=evil, message=evil), call([said, FILES], None))
    document = Document(render(found, evil))
    assert not [
        tag for tag, _ in document.elements if tag in ("script", "iframe", "object", "embed", "img", "form", "a")
    ]
    assert document.attributes("href") == ["data:,"]
    assert not [name for _, attributes in document.elements for name in attributes if name.startswith("on")]


def test_no_control_or_bidirectional_character_is_on_the_page() -> None:
    evil = "a\x1b[2J\u202eb\u2066\u061c\x9b\ud800"
    step = call((Message("user", evil),), Message("assistant", evil, evil, (ToolCall(evil, evil, {evil: evil}),)))
    text = render(trajectory(step), evil)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text)


def test_a_long_trajectory_is_a_page_that_ends() -> None:
    steps = [call([Message("user", f"{n} " + "<" * 9000)], Message("assistant", "x" * 9000)) for n in range(200)]
    found = render(trajectory(*steps), "t")
    assert len(found) < PAGE_CHARACTERS + 10_000
    assert "more steps are in trajectory.json" in found
    assert "1,000 more characters in trajectory.json" in found
