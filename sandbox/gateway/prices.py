"""The cost of requests to language models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from common.providers import Price
from sandbox.gateway.tokens import Usage

_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)\Z")


def list_prices() -> dict[str, Price]:
    """The list prices that ship with the package, by model."""
    content = yaml.safe_load((Path(__file__).parent / "prices.yaml").read_text("utf-8"))
    return {model: Price(**price) for model, price in content.items()}


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """The price of a model, or of its name without the date; None if it is not known."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Cost in US dollars; None without a price."""
    if price is None:
        return None
    read = price.input if price.cached_input is None else price.cached_input
    write = price.input if price.cache_write is None else price.cache_write
    plain = max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0)
    total = plain * price.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
    return (total + usage.output_tokens * price.output) / 1e6
