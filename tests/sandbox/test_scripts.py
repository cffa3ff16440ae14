"""Scripts that Linux cannot run are refused before a run, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.agent_registry import load_agent
from sandbox.errors import AgentError

STARTS: dict[str, tuple[bytes, int, str | None]] = {
    "as it should be": (b"#!/bin/sh\necho a\n", 0o644, None),
    "without an interpreter": (b"echo a\n", 0o644, None),
    "Python": (b"#!/usr/bin/env python3\nprint(1)\n", 0o755, None),
    "Python with line ends of Windows below": (b"#!/usr/bin/env python3\nprint(1)\r\n", 0o755, None),
    "bash by env": (b"#!/usr/bin/env -S bash -eu\necho a\n", 0o644, None),
    "a carriage return in a text": (b"printf 'a\\r'\n", 0o644, None),
    "Windows": (b"#!/bin/bash\r\necho a\r\n", 0o755, "Windows line ends.*sed -i"),
    "Windows without an interpreter": (b"echo a\r\n", 0o644, "Windows line ends"),
    "Windows below the first line": (b"#!/bin/bash\necho a\r\n", 0o755, "Windows line ends"),
    "Python of Windows": (b"#!/usr/bin/env python3\r\nprint(1)\r\n", 0o755, "Windows line ends"),
    "an archive behind it": (b"#!/bin/bash\ntail -n +4 $0 | tar xz\nexit 0\n\x1f\x8b\x08\0\r\n\0", 0o755, None),
    "an archive behind many lines": (b"#!/bin/sh\n" + b"true\n" * 30 + b"\x1f\r\n\x8b", 0o755, None),
    "Windows before an archive": (b"#!/bin/sh\ntrue\r\n\x1f\x8b\x08\0", 0o755, "Windows line ends"),
    "an old Mac": (b"#!/bin/sh\recho a\r", 0o755, "Windows line ends"),
    "a byte order mark": (b"\xef\xbb\xbf#!/bin/sh\necho a\n", 0o755, "byte order mark"),
    "UTF-16": ("#!/bin/sh\necho a\n".encode("utf-16"), 0o755, "byte order mark"),
    "UTF-16 without a mark": ("echo a\n".encode("utf-16-le"), 0o755, "no text"),
    "Python that is not executable": (b"#!/usr/bin/env python3\nprint(1)\n", 0o644, r"not executable.*chmod \+x"),
    "empty": (b"", 0o644, None),
    "a program": (b"\x7fELF\x02\x01", 0o755, "is a program"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n", 0o755, "git lfs pull"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "agent.yaml").write_text("description: Mine.\n")
    (tmp_path / "mine" / "start.sh").write_text("true\n")
    return tmp_path / "mine"


@pytest.mark.parametrize("kind", STARTS)
def test_a_start_file(folder: Path, kind: str) -> None:
    content, mode, said = STARTS[kind]
    start = folder / "start.sh"
    start.write_bytes(content)
    start.chmod(mode)
    if said is None:
        assert load_agent(folder).fingerprint()
        return
    with pytest.raises(AgentError, match=f"/mine/start.sh .*{said}"):
        load_agent(folder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tool", b"#!/usr/bin/env python3\r\nprint(1)\r\n", "Windows line ends"),
        ("bin/lib.sh", b"a=1\r\n", "Windows line ends"),
        ("tool", b"\xef\xbb\xbf#!/bin/sh\n", "byte order mark"),
        ("weights.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n", "git lfs pull"),
    ],
)
def test_the_other_files(folder: Path, name: str, content: bytes, said: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    with pytest.raises(AgentError, match=f"/mine/{name} .*{said}"):
        load_agent(folder).fingerprint()


def test_other_texts_may_come_from_windows(folder: Path) -> None:
    (folder / "agent.yaml").write_bytes("description: Mine.\r\n".encode("utf-16"))
    (folder / "run.py").write_bytes(b"print(1)\r\n")
    assert load_agent(folder).description == "Mine."
    assert load_agent(folder).fingerprint()
