"""What can go wrong in the sandbox for reasons a person can mend; every message is one line that says what to do."""

from __future__ import annotations

from common.errors import UserError


class SandboxError(UserError):
    """Base of the errors below: show its message, no traceback."""


class AgentError(SandboxError):
    """An agent's folder or its ``agent.yaml`` is not usable."""


class UnknownAgent(AgentError):
    """No agent of that name; the message names close matches and what exists."""


class BackendError(SandboxError):
    """The backend cannot do what was asked (work directory unusable, run busy elsewhere, ...)."""


class UntrustedAgentRefused(BackendError):
    """The process backend does not isolate, so it takes agents marked as trusted only."""


class RunLost(BackendError):
    """Whatever supervised the run is gone and left no outcome; starting the same run again begins it anew."""


class PrivilegedAgentRefused(BackendError):
    """The agent wants a container that does not isolate, and the operator has not accepted that."""


class BuildError(BackendError):
    """An agent's image could not be built."""
