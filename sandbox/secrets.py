"""Replace ``${{ secrets.NAME }}`` in an agent's environment by secrets that the operator has released to agents."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sandbox.errors import AgentError

REFERENCE = re.compile(r"\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
LOOSE = re.compile(r"\$\{\{.*?\}\}")


def resolve(
    agent: str,
    env: Mapping[str, str],
    *,
    allowed: Collection[str],
    operator: Mapping[str, str],
    provided: Collection[str] = (),
) -> dict[str, str]:
    """Replace the references to secrets in an agent's environment.

    Args:
        agent: name of the agent, for messages.
        env: the field ``env`` of ``agent.yaml``.
        allowed: names of the secrets that agents may have.
        operator: the operator's environment.
        provided: variables that the run's services set, such as OPENAI_API_KEY with a token of the gateway. They are
            left out without resolving them, so a real key never enters the sandbox.

    Raises:
        AgentError: a secret is not allowed or not set, or something other than a secret is referenced.
    """
    resolved = {}
    for name, text in env.items():
        if name in provided:
            continue
        for secret in REFERENCE.findall(text):
            if secret not in allowed:
                raise AgentError(
                    f"agent {agent!r} requests the secret {secret} as {name}: add it to MLEBENCH_AGENT_SECRETS to "
                    "allow this (LLM keys belong to the gateway: MLEBENCH_PROVIDERS)"
                )
            if not operator.get(secret):
                raise AgentError(
                    f"agent {agent!r} requests the secret {secret} as {name}: set {secret} in your environment"
                )
        value = REFERENCE.sub(lambda match: operator[match[1]], text)
        if LOOSE.search(REFERENCE.sub("", text)):
            raise AgentError(f"agent {agent!r}: env {name} may only refer to secrets.NAME, not: {text}")
        resolved[name] = value
    return resolved
