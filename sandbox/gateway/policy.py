"""What a run may ask of language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.providers import Api, Price, Provider
from sandbox.limits import MIB


@dataclass(frozen=True)
class Budget:
    """Limits of one run; ``None`` means no limit.

    A request is refused once a limit is reached. Requests under way count with an estimate, so a run can go over a
    limit by what its last requests exceed theirs.
    """

    requests: int | None = None
    tokens: int | None = None
    """Input and output together."""
    dollars: float | None = None


@dataclass(frozen=True)
class GatewayPolicy:
    """Providers, prices and limits."""

    providers: Mapping[str, Provider]
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model; models with a date behind the name cost what the name costs."""
    budget: Budget = Budget()
    transcripts: bool = False
    """Keep every request and response in full."""
    hosted_tools: bool = False
    """Let providers search the web, fetch pages or run code for the agent."""
    body_bytes: int = 32 * MIB
    concurrent: int = 16
    silence_seconds: float = 600.0
    """Without a byte from the provider, after which a request is given up."""
    request_seconds: float = 3600.0

    def provider_for(self, api: Api, model: str) -> tuple[str, Provider] | None:
        """Name and settings of the provider of that API whose patterns describe the model most closely."""
        fitting = [(name, each) for name, each in self.providers.items() if each.api == api and each.fits(model)]
        return max(fitting, key=lambda pair: pair[1].fits(model), default=None)

    def secrets(self) -> list[str]:
        """Every key that must not be seen."""
        keys = (provider.api_key.get_secret_value() for provider in self.providers.values())
        return [key for key in keys if key]
