"""Providers, prices and limits of a run's gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.providers import Api, Price, Provider
from sandbox.limits import MIB


@dataclass(frozen=True)
class Budget:
    """Limits of one run; ``None`` means no limit.

    A request is only sent if the most that it can use fits into what is left after the most that requests under way can
    use; its output is limited accordingly. A request whose usage stays unknown counts as the most that it can use.
    """

    requests: int | None = None
    tokens: int | None = None
    """Input and output tokens together."""
    dollars: float | None = None


@dataclass(frozen=True)
class GatewayPolicy:
    """Providers, prices and limits."""

    providers: Mapping[str, Provider]
    prices: Mapping[str, Price] = field(default_factory=dict)
    """The operator's prices by model, or by a pattern such as `llama-*`. They precede the list prices."""
    refuse_unpriced: bool = False
    """Refuse models without a price. A budget in dollars refuses them in any case."""
    budget: Budget = Budget()
    transcripts: bool = False
    """Log every request and response in full."""
    hosted_tools: bool = False
    """Let providers search the web, fetch pages or run code for the agent."""
    requests_per_minute: int | None = 600
    """Requests that cost nothing count as well."""
    tokens_per_minute: int | None = None
    body_bytes: int = 32 * MIB
    memory_bytes: int = 256 * MIB
    """Requests and answers that the gateway holds at a time, all together."""
    concurrent: int = 16
    silence_seconds: float = 600.0
    """Time without data from the provider after which a request is aborted."""
    request_seconds: float = 3600.0

    def provider_for(self, api: Api, model: str) -> tuple[str, Provider] | None:
        """Name and settings of the provider with that API whose patterns match the model most specifically."""
        fitting = [
            (name, provider)
            for name, provider in self.providers.items()
            if provider.api == api and provider.fits(model)
        ]
        return max(fitting, key=lambda pair: pair[1].fits(model), default=None)

    def secrets(self) -> list[str]:
        """All API keys, which must not be visible to agents."""
        keys = (provider.api_key.get_secret_value() for provider in self.providers.values())
        return [key for key in keys if key]
