"""Splits of one's own: named sets of competitions with a version, `splits` in the settings."""

from __future__ import annotations

import datetime
import hashlib
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]


def _no_fraction(version: object) -> object:
    """Raise ValueError for a version such as 1.10 without quotes, which TOML reads as 1.1."""
    if isinstance(version, float):
        raise ValueError(f'must be in quotes, as in "{version}"')  # noqa: TRY004 - pydantic reports only these
    return version


class RecordedSplit(BaseModel):
    """What the record of a run states of the split that it was made for; columns of tables/runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    split: str
    split_version: str
    split_digest: str
    split_description: str


class OwnSplit(BaseModel):
    """One version of a split: `[splits.<name>]` in mlebench.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    version: Annotated[Text, BeforeValidator(_no_fraction)] = Field(
        description="Another one whenever the competitions change, such as 2."
    )
    date: datetime.date = Field(description="Day of this version, YYYY-MM-DD.")
    competitions: list[str] = Field(min_length=1, description="Their ids, also of competitions of your own.")
    description: Text = Field(
        description='What they are, in words that follow their number: "competitions that ended after 2026-01".'
    )

    def recorded(self, name: str) -> RecordedSplit:
        """What is recorded of the split with this name. The digest is that of the sorted ids."""
        ids = sorted(set(self.competitions))
        return RecordedSplit(
            split=name,
            split_version=self.version,
            split_digest=hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16],
            split_description=f"{len(ids)} {self.description.rstrip('.')} (version {self.version} of {self.date})",
        )
