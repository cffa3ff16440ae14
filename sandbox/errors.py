"""The errors of the sandbox. Each message is one line that says what to do.

The hierarchy:

    SandboxError
        AgentError                    an agent's folder is not usable
            UnknownAgent
        BackendError                  a backend cannot do what was asked
            BackendClosed
            UntrustedAgentRefused
            PrivilegedAgentRefused
            RunLost
            BuildError
            EngineUnreachable         (sandbox.docker.engine)
"""

from __future__ import annotations

from common.errors import UserError


class SandboxError(UserError):
    """Base class: the message is shown without a traceback."""


class AgentError(SandboxError):
    """An agent's folder or its ``agent.yaml`` is not usable."""


class UnknownAgent(AgentError):
    """There is no agent of that name; the message names close matches, or the known agents."""


class BackendError(SandboxError):
    """The backend cannot do what was asked: the work directory is unusable, another process has the run, ..."""


class BackendClosed(BackendError):
    """The backend was closed, and starts no more runs."""


class UntrustedAgentRefused(BackendError):
    """The process backend does not isolate agents, so it only runs those that are marked as trusted."""


class RunLost(BackendError):
    """The run was ended by its machine, engine or supervisor and has no outcome. ``start`` runs it from scratch."""


class PrivilegedAgentRefused(BackendError):
    """The agent asks for a privileged container, which does not isolate, and the operator has not allowed it."""


class BuildError(BackendError):
    """An agent's image could not be built."""
