"""An isolated agent that is not to know its competition: another description over the read-only data, and no name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sandbox.backend import RunSpec
from tests.sandbox.confinement.conftest import Isolating

LOOK = """
cat /home/data/description*.md; cat /home/instructions.txt; env
echo changed > /home/data/description.md || echo "cannot write"
find /home -name '*.md'
"""


def test_the_description_is_another_one(
    isolating: Callable[..., Isolating], isolated_spec: Callable[..., RunSpec]
) -> None:
    backend, spec = isolating(), isolated_spec(LOOK)
    for name in ("description.md", "description_official.md"):
        (Path(spec.data) / name).write_text("# The secret name\n")
    handle = backend.start(replace(spec, competition_id="secret-name", description="# Something\n", obfuscated=True))
    result = backend.wait(handle)
    log = (result.logs / "agent.log").read_text()
    assert result.status == "completed"
    assert log.count("# Something\n") == 2
    assert "secret" not in log.lower()
    assert "COMPETITION_ID=competition\n" in log
    assert "cannot write" in log
    assert {path.read_text() for path in Path(spec.data).glob("description*.md")} == {"# The secret name\n"}
    backend.discard(handle)
