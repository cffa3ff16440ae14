"""Recipes: everything that decides the bytes of a prepared dataset. Equal recipes make equal datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from competitions.competition import Competition
from competitions.editions import Edition
from competitions.fingerprints import digest, libraries_of, module_file, shown
from storage.keys import content_key

# The modules of the engine that decide bytes. The others move bytes, and decide where they are written and when.
ENGINE = ("storage.datasets.archives", "storage.datasets.zipwriter")

ADOPTED = "published"
"""The `code` of a dataset that the published benchmark prepared. Its `download` stands for the adopted files."""


@dataclass(frozen=True)
class Recipe:
    """What a dataset is made of.

    Args:
        edition: edition of the benchmark, the first of those that have the same files.
        download: hash of the downloaded archive.
        code: fingerprint of the code that prepares the competition, with the versions of its libraries.
        params: the parameters of prepare.py.
    """

    edition: Edition
    download: str
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Content key, also of the dataset that is made by this recipe first."""
        return content_key("dataset", self.edition, self.download, self.code, self.params)

    def same_inputs(self, other: Recipe) -> bool:
        """Whether both are made from the same download with the same parameters, perhaps by different code."""
        return (self.download, self.params) == (other.download, other.params)

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return asdict(self)


def recipe_of(
    competition: Competition, download_hash: str, edition: Edition, params: Mapping[str, Any] | None = None
) -> Recipe:
    """The recipe by which the code of this process makes a dataset. `params` override those of competition.yaml.

    A parameter that is null changes nothing, so it is no part of the recipe.
    """
    given = {name: value for name, value in competition.params(params).items() if value is not None}
    return Recipe(competition.files_of(edition), download_hash, code_of(competition), given)


def code_of(competition: Competition) -> str:
    """Fingerprint of the code that decides the bytes of a competition's datasets, and of its libraries."""
    return content_key(competition.fingerprint("prepare"), engine_fingerprint())


@cache  # the engine does not change while a process runs
def engine_fingerprint() -> str:
    """Fingerprint of the modules in `ENGINE` and of the libraries that they import."""
    files = {shown(path): path for path in map(module_file, ENGINE)}
    return digest("engine", files, {name for path in files.values() for name in libraries_of(path)})
