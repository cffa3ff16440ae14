"""One competition: its facts, its folder, and what can be done with it."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.errors import UserError, one_line
from competitions.editions import EDITIONS, Edition
from competitions.errors import BadCompetition
from competitions.facts import CompetitionFacts

if TYPE_CHECKING:
    from competitions.preparing.declaration import Preparation
    from competitions.preparing.download import Download

# Part of every content key: raise it when the meaning of the shared preparation vocabulary changes.
PREPARATION_VERSION = 1
_REQUIRED = ("competition.yaml", "description.md", "prepare.py", "grade.py")


class Competition(BaseModel):
    """A competition of the catalog, or of a user's own folder."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, ignored_types=(cached_property,))

    folder: Path = Field(description="Where competition.yaml, prepare.py and grade.py lie.")
    facts: CompetitionFacts = Field(description="What competition.yaml says.")

    @classmethod
    def load(cls, folder: Path) -> Competition:
        """The competition in `folder`. Raises `BadCompetition` naming what is missing or does not validate."""
        import yaml

        missing = [name for name in _REQUIRED if not (folder / name).is_file()]
        if missing:
            raise BadCompetition(f"{folder} is no competition: {', '.join(missing)} missing")
        try:
            # The C loader is ten times faster and not in every build of PyYAML.
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            content = yaml.load((folder / "competition.yaml").read_text("utf-8"), Loader=loader)  # noqa: S506
            facts = CompetitionFacts.model_validate(content)
        except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
            raise BadCompetition(f"{folder / 'competition.yaml'} is not valid: {one_line(error)}") from error
        if facts.id != folder.name:
            raise BadCompetition(f"{folder / 'competition.yaml'}: id {facts.id!r} differs from the folder's name")
        return cls(folder=folder, facts=facts)

    @property
    def id(self) -> str:
        """Kaggle's slug."""
        return self.facts.id

    @cached_property
    def description(self) -> str:
        """What the agent reads, Markdown."""
        return (self.folder / "description.md").read_text("utf-8")

    @cached_property
    def obfuscated_description(self) -> str:
        """The same task without what it could be recognised by. Raises `UserError` if nobody wrote it."""
        path = self.folder / "description_obfuscated.md"
        if not path.is_file():
            raise UserError(f"{self.id} has no obfuscated description: write {path}")
        return path.read_text("utf-8")

    def params(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The parameters of `prepare`, with `overrides` laid over. Raises `UserError` for an unknown name."""
        unknown = sorted(set(overrides or {}) - set(self.facts.params))
        if unknown:
            known = ", ".join(sorted(self.facts.params)) or "none"
            raise UserError(f"{self.id} has no parameter {', '.join(unknown)}; it has: {known}")
        return {**self.facts.params, **(overrides or {})}

    def fingerprint(self, part: str = "prepare") -> str:
        """Hash of the code and data files behind `part` ("prepare" or "grade"): 16 hexadecimal digits.

        Descriptions and figures do not count: a mended sentence must not cause 100 GB to be prepared again.
        """
        other = {"prepare": "grade.py", "grade": "prepare.py"}[part]
        digest = hashlib.blake2b(f"{part} {PREPARATION_VERSION}".encode(), digest_size=8)
        for path in sorted(self.folder.iterdir()):
            if path.is_file() and path.name != other and path.suffix in {".py", ".json", ".csv", ".txt"}:
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def declare(self, raw: Download, edition: Edition = "v1", params: Mapping[str, Any] | None = None) -> Preparation:
        """Run prepare.py: the prepared dataset as a declaration; nothing is written."""
        self._check_edition(edition)
        preparation: Preparation = self._module("prepare").prepare(raw, edition=edition, params=self.params(params))
        return preparation

    def grade(self, submission: Path, prepared: Path, edition: Edition = "v1") -> float:
        """The unrounded score of the CSV `submission`, against the answers below the directory `prepared`.

        Raises `grading.InvalidSubmission` with a message for the agent.
        """
        return self.score(Path(submission), self.answers(Path(prepared)), edition)

    def answers(self, prepared: Path) -> Any:
        """The parsed answers below `prepared`; parse once, score many submissions. Usually a data frame."""
        from competitions.scoring.reading import read_answers

        reader = getattr(self._module("grade"), "read_answers", None)
        return reader(prepared) if reader else read_answers(prepared / self.facts.files.answers)

    def score(self, submission: Path, answers: Any, edition: Edition = "v1") -> float:
        """As `grade`, with the answers already parsed."""
        return self.score_table(self.read_submission(submission), answers, edition)

    def read_submission(self, submission: Path) -> Any:
        """The parsed CSV `submission`, usually a data frame. Raises `grading.InvalidSubmission` if it is no table."""
        from competitions.scoring.reading import read_submission

        return getattr(self._module("grade"), "read_submission", read_submission)(submission)

    def score_table(self, submission: Any, answers: Any, edition: Edition = "v1") -> float:
        """The unrounded score of a submission that `read_submission` read. Raises `grading.InvalidSubmission`."""
        self._check_edition(edition)
        return float(self._module("grade").grade(submission, answers, edition))

    def load_grader(self) -> None:
        """Import all that grading needs, so that processes forked from now on have it."""
        import competitions.scoring.reading  # noqa: F401

        self._module("grade")

    def bundle(self) -> bytes:
        """The download archive of a competition whose source is `bundled`, made by its bundle.py."""
        if not (self.folder / "bundle.py").is_file():
            raise BadCompetition(f"{self.id} has source 'bundled' but no bundle.py")
        archive: bytes = self._module("bundle").bundle()
        return archive

    def function(self, name: str) -> Any:
        """A function of prepare.py by name; derived files are made by such functions, on any worker."""
        return getattr(self._module("prepare"), name)

    def _module(self, stem: str) -> ModuleType:
        name = f"mlebench_competition.{self.id}.{stem}"
        path = self.folder / f"{stem}.py"
        known = sys.modules.get(name)
        if known is not None and known.__file__ == str(path):
            return known
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise BadCompetition(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
        return module

    def _check_edition(self, edition: str) -> None:
        if edition not in EDITIONS:
            raise UserError(f"unknown edition {edition!r}; editions are {', '.join(EDITIONS)}")
