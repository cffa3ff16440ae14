"""The cost of requests to language models: the operator's prices, then the dated list prices of `genai-prices`.

A list price depends on the date, on the tier of service, on the length of the prompt and on what was read from or
written to a cache. A model that neither names has no price: its cost is unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from common.providers import Price, Provider
from sandbox.gateway.tokens import Usage

if TYPE_CHECKING:
    from genai_prices import types

_PLAIN_TIERS = frozenset({"", "auto", "default", "standard"})


@dataclass(frozen=True)
class Rates:
    """The prices of one model."""

    own: Price | None = None
    listed: types.ModelInfo | None = field(default=None, repr=False)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time of the request; list prices change."""

    def cost(self, usage: Usage, tier: str = "") -> float:
        """Cost in US dollars, at the tier of service that the provider names, or at the most expensive one."""
        if self.own is not None:
            return _own_cost(usage, self.own)
        assert self.listed is not None
        tiers = {
            variant.when["service_tier"]
            for variant in self.listed.price_variants or ()
            if "service_tier" in variant.when
        }
        try:
            if tier in _PLAIN_TIERS:
                return self._listed_cost(usage, {})
            if tier in tiers:
                return self._listed_cost(usage, {"service_tier": tier})
        except ValueError:  # the provider's counts contradict each other
            pass
        return self.most(usage)

    def most(self, usage: Usage) -> float:
        """The most that these tokens can cost: at the most expensive tier, with all of the input written to a cache."""
        if self.own is not None:
            dearest = max(self.own.input, self.own.cached_input or 0, self.own.cache_write or 0)
            return _own_cost(usage, self.own.model_copy(update={"input": dearest, "cached_input": None}))
        assert self.listed is not None
        contexts: list[dict[str, str]] = [{}, *(variant.when for variant in self.listed.price_variants or ())]
        cache_writes = (0, usage.input_tokens) if self._priced("cache_write_mtok", "cache_write_1h_mtok") else (0,)
        usages = [Usage(usage.input_tokens, usage.output_tokens, 0, written, written) for written in cache_writes]
        return max(self._listed_cost(possible, context) for possible in usages for context in contexts)

    @property
    def window(self) -> int | None:
        """Tokens that the model can read and write in one request; None if that is not known."""
        return self.listed.context_window if self.listed is not None else None

    def _priced(self, *names: str) -> bool:
        assert self.listed is not None
        prices = self.listed.get_prices(self.at)
        return any(getattr(prices, name, None) is not None for name in names)

    def _listed_cost(self, usage: Usage, context: Mapping[str, str]) -> float:
        from genai_prices import Usage as Counts

        assert self.listed is not None
        prices = self.listed.get_prices(self.at, dict(context))
        counts: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        # A kind of token without a price of its own costs as much as the other input.
        if self._priced("cache_read_mtok"):
            counts["cache_read_tokens"] = usage.cache_read_tokens
        if self._priced("cache_write_mtok"):
            counts["cache_write_tokens"] = usage.cache_write_tokens
            if self._priced("cache_write_1h_mtok"):
                counts["cache_write_1h_tokens"] = usage.cache_write_long_tokens
        return float(prices.calc_price(Counts(**counts))["total_price"])


@dataclass(frozen=True)
class PriceList:
    """Prices by model."""

    own: Mapping[str, Price] = field(default_factory=dict)
    """The operator's prices, by model or by a pattern such as `llama-*`; the longest that matches counts."""

    def rates(self, provider: Provider, model: str, at: datetime | None = None) -> Rates | None:
        """The prices of a model of a provider; None if they are not known.

        Args:
            provider: the list prices are those of the provider named by its `price_list`, or by its address.
            model: the model's name, as in a request.
            at: when the request is made; now by default.
        """
        now = at or datetime.now(UTC)
        fitting = [pattern for pattern in self.own if pattern == model or fnmatchcase(model, pattern)]
        if fitting:
            return Rates(own=self.own[model if model in fitting else max(fitting, key=len)], at=now)
        listed = _listed(provider.price_list, provider.base_url, model)
        return Rates(listed=listed, at=now) if listed is not None and _has_price(listed, now) else None

    def names(self, provider: Provider, model: str) -> bool:
        """Whether the operator's prices or the list prices of the provider name a model, or it has no such list."""
        if any(fnmatchcase(model, pattern) for pattern in self.own) or model in self.own:
            return True
        try:
            _provider(None, provider.price_list, None if provider.price_list else provider.base_url)
        except LookupError:
            return True
        return _listed(provider.price_list, provider.base_url, model) is not None


def version_of_prices() -> str:
    """Name and version of the list prices, for the record of a run."""
    return f"genai-prices {version('genai-prices')}"


def _listed(price_list: str | None, base_url: str, model: str) -> types.ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider = _provider(None, price_list, None if price_list else base_url)
        return provider.find_model(model.lower(), all_providers=get_snapshot().providers)
    except LookupError:
        return None


@cache  # of a constant: the list is part of the installed package
def _provider(model: None, price_list: str | None, base_url: str | None) -> types.Provider:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider(model, price_list, base_url)


def _has_price(listed: types.ModelInfo, at: datetime) -> bool:
    prices = listed.get_prices(at)
    return any(isinstance(value, Decimal) or hasattr(value, "tiers") for value in vars(prices).values())


def _own_cost(usage: Usage, price: Price) -> float:
    read = price.input if price.cached_input is None else price.cached_input
    write = price.input if price.cache_write is None else price.cache_write
    plain = max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0)
    total = plain * price.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
    return (total + usage.output_tokens * price.output) / 1e6
