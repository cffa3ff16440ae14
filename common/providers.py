"""Providers of language models, and what they charge, as settings name them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

Api = Literal["openai", "anthropic"]


class Provider(BaseModel):
    """One provider: `MLEBENCH_PROVIDERS__<NAME>__BASE_URL`, `..._API_KEY`, or `[providers.<name>]` in mlebench.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    api: Api = Field(default="openai", description="Which API it speaks; many speak OpenAI's.")
    base_url: str = Field(
        pattern=r"^https?://[^\s?#@]+$",
        description="As its client libraries take it: https://api.openai.com/v1, https://api.anthropic.com.",
    )
    api_key: SecretStr = Field(default=SecretStr(""), description="Stays in this process; empty for none.")
    models: list[str] = Field(
        default_factory=lambda: ["*"], description="Patterns of the models it serves; the longest that fits wins."
    )
    stream_usage: bool = Field(
        default=True, description="Whether it understands stream_options.include_usage (OpenAI's API)."
    )

    @field_validator("api_key")
    @classmethod
    def _key_is_one_word(cls, value: SecretStr) -> SecretStr:
        key = value.get_secret_value().strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("an API key is one word of plain letters, digits and signs")
        return SecretStr(key)

    def fits(self, model: str) -> int:
        """How closely a model is described: the length of the longest pattern that fits it, 0 for none."""
        return max((len(pattern) for pattern in self.models if fnmatchcase(model, pattern)), default=0)


class Price(BaseModel):
    """US dollars for a million tokens of one model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0, description="Read from the provider's cache; else as input.")
    cache_write: float | None = Field(default=None, ge=0, description="Written to the cache; else as input.")
