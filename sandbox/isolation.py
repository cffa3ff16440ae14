"""The operator's choice of isolation: where agents run, and what they can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

UNPRIVILEGED = 1000
"""User and group id of an isolated agent."""
Network = Literal["none", "gateway", "allowlist", "open", "private"]


@dataclass(frozen=True)
class Isolation:
    """The isolation of the runs of a group."""

    backend: str = "process"
    """A name that `sandbox.backends` knows."""
    network: Network = "gateway"
    """What agents can reach, if the backend restricts that. none: only the validation service. gateway: also the LLM
    gateway. The others through a proxy, see `sandbox.confinement.proxy`. allowlist: also the hosts in the operator's
    settings, over TLS. open: also all public addresses, but no private or link-local ones, nor those of this machine.
    private: everything that this machine reaches over TCP, and the services that it offers itself."""
    runtime: str | None = None
    """The container engine's runtime, such as runsc; None for its default."""
    allow_untrusted: bool = False
    """Run untrusted agents without isolation (process backend)."""
    allow_privileged: bool = False
    """Run agents that ask for a privileged container, which does not isolate."""


PROCESSES = Isolation()
"""The default: trusted agents as processes."""
