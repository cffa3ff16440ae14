"""Names of the files in a run's folder."""

from __future__ import annotations

RUN = "run.json"
