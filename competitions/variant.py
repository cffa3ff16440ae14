"""Small variants of competitions, to try and to train agents on. No variant is part of the benchmark.

The id says what a variant is: `spaceship-titanic--rows200-seed0` has 200 units of train, chosen with the seed 0. Its
dataset is made of the prepared dataset of its competition (`competitions.variants`); grader and thresholds are those of
the competition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from common.errors import UsageError, UserError
from competitions.competition import Competition, Part
from competitions.editions import Edition
from competitions.facts import Checksums
from competitions.fingerprints import digest, module_file, shown

if TYPE_CHECKING:
    from competitions.preparing.declaration import Preparation
    from competitions.preparing.download import Download

MODULES = tuple(f"competitions.variants.{name}" for name in ("derive", "draw", "links", "records", "units"))
LEAST_ROWS = 10
_ID = re.compile(r"(?P<parent>.+)--rows(?P<rows>[1-9][0-9]{0,8})-seed(?P<seed>0|[1-9][0-9]{0,8})")


class VariantName(NamedTuple):
    """What the id of a variant says."""

    parent_id: str
    """The id of the competition."""
    rows: int
    """Units of train that are kept."""
    seed: int = 0
    """Chooses the units."""

    @classmethod
    def of(cls, competition_id: str) -> VariantName | None:
        """What an id says; None if it is not that of a variant.

        >>> VariantName.of("spaceship-titanic--rows200-seed0")
        VariantName(parent_id='spaceship-titanic', rows=200, seed=0)
        """
        match = _ID.fullmatch(competition_id)
        return cls(match["parent"], int(match["rows"]), int(match["seed"])) if match else None

    def __str__(self) -> str:
        """The id."""
        return f"{self.parent_id}--rows{self.rows}-seed{self.seed}"


class Variant(Competition):
    """A competition with fewer units of train and of test."""

    parent: Competition = Field(description="The competition that it is a variant of.")
    name: VariantName = Field(description="How it differs.")

    @classmethod
    def make(cls, parent: Competition, name: VariantName) -> Variant:
        """The variant of a competition. Raises `UserError` if it has none."""
        if parent.published_format:
            raise UserError(
                f"{parent.id} has no variants, because its folder is in the published format; `mlebench new ID "
                "--from-published` makes one that has"
            )
        if isinstance(parent, Variant):
            raise UsageError(f"{parent.id} is a variant itself: use -c {parent.parent.id} --rows {name.rows}")
        if name.rows < LEAST_ROWS:
            raise UsageError(f"{name}: a variant has at least {LEAST_ROWS} rows")
        changed: dict[str, Any] = {
            "id": str(name),
            "name": f"{parent.facts.name} ({name.rows} rows, seed {name.seed})",
            "complexity": "variant",
            "splits": [],
            "checksums": Checksums(),
            "params": {"rows": name.rows, "seed": name.seed},
            "availability": None,
        }
        facts = parent.facts.model_copy(update=changed)
        return cls(folder=parent.folder, facts=facts, parent=parent, name=name)

    def describe(self, edition: Edition, *, obfuscated: bool = False) -> str:
        """The description of the competition, with a note on what is different."""
        from competitions.variants.derive import SUMMARY, test_units

        return (
            f"{self.parent.describe(edition, obfuscated=obfuscated).rstrip()}\n\n## Size of this variant\n\n"
            f"This is a small variant. Of the training data it has {self.name.rows} units (rows, images, patients, or "
            f"whatever belongs together), of the test set {test_units(self.name.rows)}, or fewer where there are not "
            f"as many. Numbers of rows and files above are those of the full competition; `{SUMMARY}` has those of "
            "this variant.\n"
        )

    def fingerprint(self, part: Part = "prepare") -> str:
        """Hash of the code that `part` depends on: of preparing, that of variants."""
        if part != "prepare":
            return self.parent.fingerprint(part)
        return digest("variant", {shown(path): path for path in map(module_file, MODULES)}, set())

    def declare(self, raw: Download, edition: Edition = "v1", params: Mapping[str, Any] | None = None) -> Preparation:
        """The declaration of its files. `raw` is the prepared dataset of its competition.

        Raises `UserError` if they cannot be derived by rule, or with the parameter `only_smaller` if that competition
        has no more units of train.
        """
        from competitions.variants.derive import Roles, Underivable, derive
        from competitions.variants.units import TooFewUnits, Units

        files, how = self.facts.files, self.facts.resampling
        roles = Roles(files.answers, files.sample_submission, files.gold_submission)
        units = Units(how.id, how.column, how.pattern) if how is not None else Units()
        try:
            only_smaller = bool((params or {}).get("only_smaller"))
            return derive(raw, roles, units, self.name.rows, self.name.seed, only_smaller=only_smaller)
        except TooFewUnits as error:
            advice = "use --rows below that" if error.units > LEAST_ROWS else "that is too few for a variant"
            raise UserError(f"{self.parent.id} has only {error.units:,} units of train: {advice}") from error
        except Underivable as error:
            raise UserError(f"{self.parent.id} has no variants: {error}") from error
