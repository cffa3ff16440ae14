"""The trajectories of a run group in ATIF, one file a run that asked language models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from common import plain_json
from sandbox.trajectory import atif
from tasks.export.gathered import Series, file_name


def write_trajectories(series: Series, folder: Path) -> Iterator[Path]:
    """Write `<group>+<competition>+<seed>.trajectory.json` of each run into a folder; yields their paths.

    They are made from the journals of the runs.
    """
    for result in series.results:
        if result.run is None:
            continue
        version = result.run.code_fingerprint or "unknown"
        trajectory = atif.trajectory(result.calls(), session=result.run.run_id, agent=series.agent, version=version)
        if trajectory["steps"]:
            name = file_name(series.run_group, result.competition_id, str(result.seed))
            path = folder / f"{name}.trajectory.json"
            path.write_text(plain_json.dumps(trajectory), "utf-8")
            yield path
