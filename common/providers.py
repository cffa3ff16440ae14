"""Settings of language model providers, and prices of models."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from common.errors import close_matches

Api = Literal["openai", "anthropic", "gemini"]


class Provider(BaseModel):
    """One provider: `MLEBENCH_PROVIDERS__<NAME>__BASE_URL`, `..._API_KEY`, or `[providers.<name>]` in mlebench.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    api: Api = Field(default="openai", description="The API that it implements; many implement OpenAI's.")
    base_url: str = Field(
        pattern=r"^https?://[^\s?#@]+$",
        description="The base URL of its client libraries: https://api.openai.com/v1, https://api.anthropic.com, "
        "https://generativelanguage.googleapis.com.",
    )
    api_key: SecretStr = Field(default=SecretStr(""), description="Never leaves the gateway; empty for none.")
    models: list[str] = Field(
        default_factory=list,
        description="Patterns of the models that it serves; the longest match wins. Default: those of its list prices, "
        "or all if it has none.",
    )
    fields: list[str] = Field(
        default_factory=list, description="Fields of requests that agents may use beside the usual ones."
    )
    price_list: str | None = Field(
        default=None, description="Whose list prices apply, such as openai. Default: found by base_url."
    )
    output_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        default="max_completion_tokens", description="How OpenAI's chat requests to it limit the output."
    )
    output_tokens: int = Field(
        default=16_384, gt=0, description="Limit of the output that is set if an agent sets none and the budget is low."
    )
    stream_usage: bool = Field(
        default=True, description="Whether it supports stream_options.include_usage (OpenAI's API)."
    )

    @field_validator("api_key")
    @classmethod
    def _key_is_one_word(cls, value: SecretStr) -> SecretStr:
        key = value.get_secret_value().strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("an API key consists of printable ASCII characters without spaces")
        return SecretStr(key)

    @field_validator("price_list")
    @classmethod
    def _price_list_exists(cls, value: str | None) -> str | None:
        """With an unknown name, no model would have a price, and a budget in dollars would not limit any."""
        if value is None:
            return None
        from genai_prices.data_snapshot import get_snapshot

        prices = get_snapshot()
        try:
            prices.find_provider(None, value, None)
        except LookupError:
            hint = close_matches(value.lower(), (provider.id for provider in prices.providers))
            raise ValueError(f"there are no list prices of {value!r}.{hint}") from None
        return value

    def fits(self, model: str) -> int:
        """Length of the longest pattern that matches the model, 0 if none does."""
        return max((len(pattern) for pattern in self.models or ["*"] if fnmatchcase(model, pattern)), default=0)


class Price(BaseModel):
    """US dollars per million tokens of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, description="Input tokens.")
    output: float = Field(ge=0, description="Output tokens.")
    cached_input: float | None = Field(
        default=None, ge=0, description="Read from the provider's cache. Default: as input."
    )
    cache_write: float | None = Field(default=None, ge=0, description="Written to the cache. Default: as input.")
