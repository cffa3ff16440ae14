"""A graded run group whose first run asked a language model and left snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from sandbox.trajectory.files import write_trajectory
from tests.flows.graded import GROUP, dataset, grade_group, mlebench, regrade
from tests.stores import KeptStore, Store

__all__ = ["GROUP", "asked", "dataset", "once"]

SECRET = "sk-THE-KEY-OF-THE-OPERATOR"
TOOL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": "ls"})}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Win."},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [TOOL]},
    {"role": "tool", "tool_call_id": "c1", "content": "train.csv"},
    {"role": "assistant", "content": "Done."},
]


def entry(number: int, **fields: Any) -> dict[str, Any]:
    """A line of the gateway's journal."""
    when = {"started_at": f"2026-01-01T00:00:{10 * number:02}+00:00", "latency_seconds": 2.0}
    used = {"input_tokens": 1000, "cached_tokens": 400, "output_tokens": 50, "cost_usd": 0.25}
    how = {"provider": "openai", "path": "/v1/chat/completions", "model": "gpt-4o", "status": "ok", "message": None}
    return {"id": f"call-{number}", **when, **how, **used, **fields}


@pytest.fixture(scope="module")
def once(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> KeptStore:
    group = grade_group(Store(str(tmp_path_factory.mktemp("asked") / "store")), dataset)
    url = group.run(GROUP, "diabetes", 0)
    entries = [entry(1), entry(2), entry(3, status="error", message="out of order", cost_usd=0.0)]
    lines = [
        {
            **entries[turn],
            "request": {"messages": CONVERSATION[: 2 * turn + 2]},
            "response": {"choices": [{"message": CONVERSATION[2 * turn + 2]}]},
        }
        for turn in (0, 1)
    ]
    for name, records in {"gateway.jsonl": entries, "transcripts.jsonl": lines}.items():
        group.write(f"{url}/{name}", b"".join(json.dumps(each).encode() + b"\n" for each in records))
    folder = Path(str(group.local("runs", GROUP, "diabetes", 0)))
    journals = {path.name: path for path in folder.glob("*.jsonl")}
    write_trajectory(journals, folder, session=f"{GROUP}-diabetes-0", agent="mine", version="abc")
    conditions = {"network": "gateway", "hardware": "a machine", "gateway_requests": 3, "memory_bytes": 2**30}
    for seed in range(3):
        run = group.read_json(f"{group.run(GROUP, 'diabetes', seed)}/run.json")
        group.write_json(f"{group.run(GROUP, 'diabetes', seed)}/run.json", {**run, **conditions})
    sample = group.read(f"{group.run(GROUP, 'diabetes', 1)}/submission.csv")
    group.write(f"{url}/snapshots/15.000.csv", sample)
    group.write(f"{url}/snapshots/40.000.csv", group.read(f"{url}/submission.csv"))
    (folder / "grade.json").unlink()  # so that it is graded again, with its snapshots
    regrade(group)
    return KeptStore(group)


@pytest.fixture
def asked(once: KeptStore) -> Iterator[Store]:
    """Seeds 0 to 2 of diabetes: perfect, the sample, and no submission; seed 0 asked a model and left snapshots."""
    with once.copied() as store:
        yield store


def answers_of(store: Store, competition_id: str = "diabetes") -> list[bytes]:
    """The contents of all private files, and of every submission: nothing that an export may contain."""
    private = store.local("prepared", "v1", competition_id).rglob("private/*")
    submissions = store.local("runs").rglob("*.csv")
    return [path.read_bytes() for path in (*private, *submissions) if path.is_file()]


__all__ += ["CONVERSATION", "SECRET", "answers_of", "entry", "main", "mlebench"]
