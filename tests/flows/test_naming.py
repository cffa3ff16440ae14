"""Flow runs are named after agent, split and group, whatever they were called with."""

from __future__ import annotations

import pytest

from competitions import registry
from flows.watching.naming import agent_name, selection_name
from sandbox.definitions import BUILTIN_AGENTS


@pytest.mark.parametrize("split", ["low", "all", "demo", "dev"])
def test_a_split_is_named_however_its_competitions_were_chosen(split: str) -> None:
    assert selection_name(registry.list(split)) == split
    assert selection_name(registry.list(split)[::-1] * 2) == split


def test_others_are_named_or_counted() -> None:
    assert selection_name(["digits"]) == "digits"
    assert selection_name(["digits", "leaf-classification"]) == "2 competitions"


@pytest.mark.parametrize(
    ("given", "name"),
    [("dummy", "dummy"), (str(BUILTIN_AGENTS / "dummy"), "dummy"), ("/no/such/agent", "agent"), ("nobody", "nobody")],
)
def test_an_agent_is_named_not_its_folder(given: str, name: str) -> None:
    assert agent_name(given) == name
