"""Checks of credentials before the work begins: without them each run would fail, hours later."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from common.errors import UserError
from common.settings import Settings
from common.units import counted
from sandbox import backends, secrets
from sandbox.definitions import Agent
from tasks.wiring.attempts import attempts_of, finished_run
from tasks.wiring.context import RunContext

_HOSTS_WITH_KEYS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com")
"""Hosts of providers that need an API key."""


def require_agent_credentials(context: RunContext, competition_ids: Iterable[str]) -> None:
    """Check that this machine has the secrets of the agent, and the language models that it needs with their keys.

    Raises:
        UserError: a run is to be made, and every one would fail; the message names the remedy.
    """
    try:
        _require_agent_credentials(context)
    except UserError:
        if any(
            finished_run(context.store, attempt) is None
            for name in competition_ids
            for attempt in attempts_of(context, name)
        ):
            raise


def _require_agent_credentials(context: RunContext) -> None:
    agent, settings, isolation = context.agent, context.settings, context.request.isolation
    reachable = backends.policy(isolation) != "none"
    if agent.language_models:
        _require_models(agent, settings, reachable)
    apis = {provider.api for provider in settings.providers.values()} if reachable else set()
    provided = {f"{api.upper()}_{part}" for api in apis for part in ("BASE_URL", "API_BASE", "API_KEY")}
    provided |= {"GOOGLE_GEMINI_BASE_URL"} if "gemini" in apis else set()
    secrets.resolve(agent.name, agent.env, allowed=settings.agent_secrets, operator=os.environ, provided=provided)


def _require_models(agent: Agent, settings: Settings, reachable: bool) -> None:
    if not reachable:
        raise UserError(f"agent {agent.name!r} needs language models: choose another --network than none")
    if not settings.providers:
        raise UserError(
            f"agent {agent.name!r} needs language models, and no provider is configured: set "
            "MLEBENCH_PROVIDERS__OPENAI__BASE_URL=https://api.openai.com/v1 and MLEBENCH_PROVIDERS__OPENAI__API_KEY, "
            "or those of another provider"
        )
    for name, provider in settings.providers.items():
        if urlsplit(provider.base_url).hostname in _HOSTS_WITH_KEYS and not provider.api_key.get_secret_value():
            raise UserError(
                f"agent {agent.name!r} needs language models, and {provider.base_url} wants an API key: set "
                f"MLEBENCH_PROVIDERS__{name.upper()}__API_KEY"
            )


def no_credentials(missing: Iterable[str]) -> UserError:
    """The error about competitions that would have to be downloaded from Kaggle."""
    from storage.sources.kaggle.errors import CREDENTIALS, NoCredentials

    names = sorted(set(missing))  # both editions of a competition share a download
    subject = names[0] if len(names) == 1 else counted(len(names), "competition")
    return NoCredentials(
        f"{subject} would have to be downloaded from Kaggle, and there are no credentials: {CREDENTIALS}; or give a "
        "directory of downloads as --raw-dir"
    )


def logged_in() -> bool | UserError:
    """Whether this machine has credentials for Kaggle, or the error about a file of them that cannot be read.

    A login that has expired is renewed, which takes the network. If that fails, the download will tell or wait.
    """
    from storage.sources.kaggle import credentials

    try:
        return credentials.find() is not None
    except UserError as error:
        return error
    except Exception:
        return True
