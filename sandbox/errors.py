"""The errors of the sandbox. Each message is one line that says what to do. `common.errors` shows the tree."""

from __future__ import annotations

from common.errors import UsageError, UserError


class AgentError(UserError):
    """An agent's folder or its ``agent.yaml`` is not usable."""


class UnknownAgent(AgentError, UsageError):
    """There is no agent, or no variant of one, with that name."""


class BackendError(UserError):
    """The backend cannot do what was asked: the work directory is unusable, another process has the run, ..."""


class BackendClosed(BackendError):
    """The backend was closed, and starts no more runs."""


class UntrustedAgentRefused(BackendError):
    """The process backend does not isolate agents, so it only runs those that are marked as trusted."""


class RunLost(BackendError):
    """The run was ended by its machine, engine or supervisor and has no outcome. ``start`` runs it from scratch."""


class BuildError(BackendError):
    """An agent's image could not be built."""
