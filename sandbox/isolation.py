"""What the operator lets agents do: where they run, and what they reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

BackendName = Literal["process", "docker"]
Network = Literal["none", "gateway", "allowlist", "open"]


@dataclass(frozen=True)
class Isolation:
    """The operator's choice, the same for all runs of a group."""

    backend: BackendName = "process"
    network: Network = "gateway"
    """Containers only: see `sandbox.docker.network.Policy`."""
    runtime: str | None = None
    """Of the container engine; its default if None."""
    allow_untrusted: bool = False
    """Run untrusted agents without isolation (process backend)."""
    allow_privileged: bool = False
    """Run agents that want a privileged container, which does not isolate."""

    def conditions(self) -> dict[str, Any]:
        """What of it can change a result, for the run's record; nothing where nothing is isolated."""
        return {"network": self.network, "runtime": self.runtime or "default"} if self.backend == "docker" else {}


PROCESSES = Isolation()
"""The default: trusted agents as processes."""
