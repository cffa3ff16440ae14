"""An ``agent.yaml`` that exhausts its reader, or makes it fail with a traceback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.agent_registry import load_agent
from sandbox.definitions import Agent
from sandbox.errors import AgentError
from sandbox.world.layout import lay_out
from tests.sandbox.attacks.conftest import Hostile

LAUGHS = "".join(f"b{n}: &b{n} [*b{n - 1}, *b{n - 1}]\n" for n in range(1, 40))
MERGED = "".join(f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}]}}\n" for n in range(1, 40))
NESTED = "".join(f"b{n}: &b{n} {{x: *b{n - 1}, y: *b{n - 1}}}\n" for n in range(1, 40))
BOMBS = {
    "brackets": "[" * 100_000,
    "dashes": "- " * 5000,
    "one list many times": "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(50)),
    "lists of lists in a message": f"b0: &b0 [x, x]\n{LAUGHS}env: {{A: *b39}}\n",
    "lists of lists within the number of aliases": "description: ["
    + "[" * 300
    + "]" * 300
    + ", "
    + "x, " * 50_000
    + "]\n",
    "mappings merged": f"b0: &b0 {{x: 1}}\n{MERGED}kwargs: *b39\n",
    "mappings merged by a variant": f"b0: &b0 {{x: 1}}\n{NESTED}kwargs: *b39\nvariants: {{v: {{kwargs: *b39}}}}\n",
    "a mapping in itself": "kwargs: &a {x: *a}\nvariants: {v: {kwargs: *a}}\n",
    "a list in itself": "description: &a [*a]\n",
    "a number of many parts": "description: x\nkwargs: {a: " + "1:" * 200_000 + "1}\n",
    "no text": "\x00",
}
VALUES = {
    "a date that does not exist": "2001-99-99",
    "a time that does not exist": "2001-01-01 99:99:99",
    "a number of many digits": "1" * 5000,
    "a number in base 60 of no digits": "0x_",
    "bytes": "!!binary x",
    "a set": "!!set {? [a] : }",
    "a name of Python": "!!python/object/apply:os.system [true]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_definition_that_is_a_bomb(make_agent: Callable[..., Agent], bomb: str) -> None:
    agent = make_agent("true")
    (agent.folder / "agent.yaml").write_text(BOMBS[bomb])
    for name in (str(agent.folder), f"{agent.folder}@v"):
        with pytest.raises(AgentError) as caught:
            load_agent(name, [agent.folder])
        assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("value", VALUES)
def test_values_that_nobody_can_read(make_agent: Callable[..., Agent], value: str) -> None:
    agent = make_agent("true")
    (agent.folder / "agent.yaml").write_text(f"description: {VALUES[value]}\n")
    with pytest.raises(AgentError):
        load_agent(agent.folder, [agent.folder])


def test_a_file_in_the_agents_folder_whose_name_is_no_text(
    make_folder: Callable[..., Agent], hostile: Hostile, tmp_path: Path
) -> None:
    agent = make_folder(lambda folder: (folder / "a\udcff").write_text("x"))
    with pytest.raises(AgentError, match="not valid UTF-8"):
        agent.fingerprint()
    with pytest.raises(AgentError, match="not valid UTF-8"):
        lay_out(replace(hostile.spec("true"), agent=agent), tmp_path / "home")
