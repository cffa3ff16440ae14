"""Costs of the stages: seconds and rates, measured or assumed, each with its source."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from competitions import registry

_CPU_SECONDS = (
    "start",
    "download",
    "split",
    "checksum",
    "turn",
    "launch",
    "collect",
    "grade",
    "report",
    "hand_out",
    "flow_run",
    "server",
)

UNKNOWN_BYTES = 30 * 10**9
"""Assumed bytes of downloads whose size competition.yaml does not state (22 of the 75), a conservative value."""

_TABLES = ("Tabular", "Forecasting", "Text (Other)", "Text Classification", "Sequence->Sequence", "Training LLMs")


@dataclass(frozen=True)
class Costs:
    """Costs per stage of one piece of work without concurrency. CPU seconds are of one core of the measured machine.

    The defaults of the first group are rough shares of the 29 s that the demo with the dummy agent took on two mostly
    idle cores; a calibration (written by `--validate`) replaces them. They are negligible next to 24 hours. The rates
    of the second group come from `python -m benchmarks`, cases a and c, on two cores.
    """

    start: float = 7.5
    """CPU seconds from the command to the first download: imports, Prefect's server, Dask's workers."""
    download: float = 0.5
    """CPU seconds of a download apart from its bytes: task run, lease, hashing a small file."""
    split: float = 1.5
    """CPU seconds of a split apart from its bytes: planning, manifest, commit."""
    checksum: float = 0.3
    """CPU seconds of a checksum step: it compares the manifest and reads no data."""
    turn: float = 1.0
    """CPU seconds between preparing and running: the Dask workers end and the next flow begins."""
    launch: float = 2.5
    """CPU seconds from an agent's slot to its start: task run, services, supervisor."""
    collect: float = 1.0
    """CPU seconds from an agent's end until its slot is free: its files are copied to the store."""
    grade: float = 2.0
    """CPU seconds of grading: a separate process that imports the grader and scores."""
    report: float = 3.0
    """CPU seconds of the tables, the page and the end of the command."""

    hand_out: float = 0.1
    """CPU seconds to submit an attempt to a work pool, and to watch it."""
    flow_run: float = 4.0
    """CPU seconds of an attempt's process in a work pool, apart from `launch`, `collect` and `grade`."""
    server: float = 0.5
    """CPU seconds of the Prefect server for an attempt in a work pool, without its database."""
    poll: float = 15.0
    """Seconds between two looks of a worker for work (PREFECT_WORKER_QUERY_SECONDS)."""

    table_bytes: float = 22e6
    """Bytes per second that one worker splits if the data are tables (case c: 1,011 MB in 22.4 s on two workers)."""
    file_bytes: float = 250e6
    """The same for many files (case a: 20,000 pictures, 450 MB in 0.75 s on two workers, minus a sixth as a margin)."""
    prepared_share: float = 1.3
    """Size of a prepared dataset relative to its download; `mlebench doctor` assumes the same."""
    public_share: float = 0.9
    """Share of the prepared dataset that agents read."""

    def slower(self, factor: float) -> Costs:
        """The costs on a machine that needs `factor` seconds for each CPU second."""
        return replace(self, **{name: getattr(self, name) * factor for name in _CPU_SECONDS})

    @classmethod
    def read(cls, path: Path) -> Costs:
        """Read the costs from a JSON file. Missing costs keep their defaults."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(path.read_text()).items() if name in known})

    def write(self, path: Path) -> None:
        """Write the costs to a JSON file, which `read` reads."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True)
class Job:
    """A competition as the simulation sees it."""

    name: str
    download_bytes: float
    split_rate: float
    """Bytes of the download that one worker splits per second."""


def jobs(split: str, costs: Costs, unknown_bytes: float = UNKNOWN_BYTES) -> list[Job]:
    """The competitions of a split with the sizes of their downloads, from the registry."""
    found = []
    for facts in (registry.get(name).facts for name in registry.list(split)):
        size = facts.size_bytes or (unknown_bytes if facts.source == "kaggle" else 0)
        rate = costs.table_bytes if facts.category in _TABLES else costs.file_bytes
        found.append(Job(facts.id, float(size), rate))
    return found
