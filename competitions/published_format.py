"""Competition folders in the format of the published benchmark, with `config.yaml` instead of `competition.yaml`.

Their `prepare(raw, public, private)` writes files, and their `grade(submission, answers)` knows no editions: both
editions have the same files and scores. Thresholds come from `leaderboard.csv`, MD5s from `checksums.yaml`.
"""

from __future__ import annotations

import csv
import json
import math
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from common.errors import UserError, one_line
from common.texts import read_text
from competitions import published_code
from competitions.competition import Competition, Part, facts_in
from competitions.editions import EDITIONS, Edition
from competitions.errors import BadCompetition
from competitions.facts import Checksums, CompetitionFacts, Direction, Files, Leaderboard, Metric
from competitions.fingerprints import Closure, closure, digest, shown
from competitions.leaderboard import leaderboard_of
from competitions.published_code import Entry, entry

if TYPE_CHECKING:
    from competitions.preparing.declaration import Preparation
    from competitions.preparing.download import Download

_NOT_CODE = ("leaderboard.csv", "kernels.txt")
_MAX_MESSAGE_CHARACTERS = 300
_MAX_DETAIL_CHARACTERS = 20_000


class _Dataset(BaseModel):
    answers: str
    sample_submission: str
    gold_submission: str | None = None


class _Grader(BaseModel):
    name: str = "score"
    grade_fn: str


class Config(BaseModel):
    """What is used of a `config.yaml`. Forks have further fields."""

    id: str
    name: str
    description: str = "description.md"
    dataset: _Dataset
    grader: _Grader
    preparer: str


class PublishedCompetition(Competition):
    """A competition whose folder has the published format."""

    published_format: ClassVar[bool] = True
    config: Config = Field(description="The content of config.yaml.")

    @classmethod
    def load(cls, folder: Path) -> PublishedCompetition:
        """Load the competition in `folder`. Raises `BadCompetition` naming what is missing or invalid."""
        path = folder.absolute() / "config.yaml"
        configs: list[Config] = []

        def facts_of(content: Any) -> CompetitionFacts:
            configs.append(Config.model_validate(content))
            if configs[0].id != folder.name:
                raise BadCompetition(f"{path}: id {configs[0].id!r} differs from the folder's name")
            return _facts(configs[0], path.parent)

        facts = facts_in(path, facts_of)
        competition = cls(folder=path.parent, facts=facts, config=configs[0])
        competition.entry("prepare")
        competition.entry("grade")
        return competition

    def describe(self, edition: Edition, *, obfuscated: bool = False) -> str:
        """The description for agents. `config.yaml` may name its file from the top of the repository."""
        if obfuscated or (self.folder / "description.md").is_file():
            return super().describe(edition, obfuscated=obfuscated)
        tops = (self.folder, *list(self.folder.parents)[:3])
        found = [path for top in tops if (path := top / self.config.description).is_file()]
        if not found:
            raise BadCompetition(f"{self.folder} has no description for agents: write description.md")
        return read_text(found[0])

    def files_of(self, edition: Edition) -> Edition:
        """The first edition: `prepare` knows none."""
        return EDITIONS[0]

    def fingerprint(self, part: Part = "prepare") -> str:
        """Hash of the code that `part` depends on, also of modules next to the folder."""
        return digest(f"{super().fingerprint(part)} {self.config.preparer} {self.config.grader.grade_fn}", {})

    def declare(self, raw: Download, edition: Edition = "v1", params: Mapping[str, Any] | None = None) -> Preparation:
        """Have the files written below a temporary directory, and declare them.

        Raises `BadCompetition` if `prepare` fails, or did not write what `config.yaml` names.
        """
        from competitions.preparing.written_files import written_by

        self._check_edition(edition)
        self.params(params)
        out = written_by(self.folder, "prepare", self.entry("prepare").function, raw)
        written = {f"{part}/{path}" for part, path, _ in out.operations()}
        files = self.facts.files
        for role in ("answers", "sample_submission", "gold_submission"):
            if (path := getattr(files, role)) not in written:
                names = ", ".join(sorted(written)[:5]) or "nothing"
                raise BadCompetition(f"{self.id}: prepare wrote no {path}, the {role} of config.yaml; it wrote {names}")
        return out

    def answers(self, prepared: Path) -> Any:
        """The parsed answers: a data frame, or of JSON lines a list."""
        path = prepared / self.facts.files.answers
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.strip()]
        from competitions.scoring.reading import read_answers

        return read_answers(path)

    def _kept_answers(self, prepared: Path) -> Any:
        return self.answers(prepared)  # a grader may change them

    def read_submission(self, submission: Path, edition: Edition = "v1") -> Any:
        """The parsed CSV `submission`. Raises `InvalidSubmission` if it cannot be parsed."""
        from competitions.scoring.reading import read_submission

        return read_submission(submission)

    def score_table(self, submission: Any, answers: Any, edition: Edition = "v1") -> float:
        """The unrounded score. Raises `InvalidSubmission`, also if the grader dies of the submission.

        Graders of this format often check little: a missing column is a KeyError. As in the published benchmark, the
        submission is invalid. Agents read the message, so it has the type of such an exception alone: its text may be
        an answer or a path. A grader that cannot be imported, or returns no number, is at fault itself.
        """
        from competitions.scoring.errors import InvalidSubmission

        self._check_edition(edition)
        with published_code.lock:
            grade = getattr(self.module("grade"), self.entry("grade").function)
            try:
                score = grade(submission, answers)
            except InvalidSubmission as error:
                raise InvalidSubmission(one_line(error)[:_MAX_MESSAGE_CHARACTERS]) from error
            except (ImportError, MemoryError):
                raise
            except (Exception, SystemExit) as error:
                invalid = InvalidSubmission(f"the grader cannot score this submission ({type(error).__name__})")
                invalid.detail = traceback.format_exc()[-_MAX_DETAIL_CHARACTERS:]
                raise invalid from error
        return float(score)

    def check_table(self, submission: Any, answers: Any, edition: Edition = "v1") -> None:
        """Raise `InvalidSubmission` if the submission cannot be scored. The answers decide, too."""
        self.score_table(submission, answers, edition)

    def entry(self, part: Part) -> Entry:
        """The function that `config.yaml` names for a part. Raises `BadCompetition` if there is none."""
        if part == "prepare":
            return entry(self.folder, self.config.preparer, "preparer")
        return entry(self.folder, self.config.grader.grade_fn, "grader.grade_fn")

    def _imported(self, name: str) -> ModuleType:
        part: Part = "prepare" if name == "prepare" else "grade"
        return published_code.imported(self.folder, self.entry(part).module, self.fingerprint(part))

    def _closure(self, part: Part) -> Closure:
        path = self.folder / "bundle.py" if part == "bundle" else self.entry(part).file
        return closure(path, self.folder, self.folder.parent)

    def _shown(self, path: Path) -> str:
        directory = self.folder.parent
        return f"../{path.relative_to(directory).as_posix()}" if path.is_relative_to(directory) else shown(path)

    def _files(self) -> list[Path]:
        return [path for path in super()._files() if path.name not in _NOT_CODE]


def _facts(config: Config, folder: Path) -> CompetitionFacts:
    dataset = config.dataset
    gold = dataset.gold_submission or dataset.answers
    leaderboard, direction = _leaderboard(folder / "leaderboard.csv")
    return CompetitionFacts(
        id=config.id,
        name=config.name,
        category="unknown",
        complexity="unknown",
        metric=Metric(name=config.grader.name, direction=direction),
        holdout="as its prepare.py draws it",
        leaderboard=leaderboard,
        files=Files(
            answers=_prepared(config.id, dataset.answers),
            sample_submission=_prepared(config.id, dataset.sample_submission),
            gold_submission=_prepared(config.id, gold),
        ),
        checksums=_checksums(folder / "checksums.yaml"),
    )


def _prepared(competition_id: str, path: str) -> str:
    prefix = f"{competition_id}/prepared/"
    if not path.startswith(prefix):
        raise ValueError(f"dataset: {path!r} does not begin with {prefix}, where prepare writes public/ and private/")
    return path.removeprefix(prefix)


def _leaderboard(path: Path) -> tuple[Leaderboard, Direction]:
    """The thresholds of a leaderboard, best score first, and the direction that follows from its order.

    Raises `BadCompetition` for a file that is missing, only a pointer, or has no scores.
    """
    if not path.is_file():
        raise BadCompetition(
            f"{path} is missing: medals and the metric's direction follow from it. Write the scores of the leaderboard "
            "into a column `score`, best first; without one, those of a few good and bad submissions of your own"
        )
    rows = list(csv.DictReader(read_text(path).splitlines()))
    if not rows or "score" not in rows[0]:
        raise BadCompetition(f"{path} has no scores: it needs a column `score` and a row for each team, best first")
    scores = []
    for number, row in enumerate(rows, 2):
        try:
            score = float(row["score"] or math.nan)
        except ValueError:
            raise BadCompetition(f"{path}, line {number}: the score {row['score']!r} is not a number") from None
        if not math.isnan(score):  # teams without a score have no rank
            scores.append(score)
    if not scores:
        raise BadCompetition(f"{path} has no scores: no team has one")
    direction: Direction = "lower" if scores[0] < scores[-1] else "higher"
    return leaderboard_of(scores, direction == "lower"), direction


def _checksums(path: Path) -> Checksums:
    """The MD5s in a `checksums.yaml`, none without the file. Those of Parquet depend on its writer and are left out."""
    if not path.is_file():
        return Checksums()
    import yaml

    try:
        content = yaml.safe_load(read_text(path)) or {}
        files = ((part, name, md5) for part in ("public", "private") for name, md5 in (content.get(part) or {}).items())
        prepared = {f"{part}/{name}": md5 for part, name, md5 in files if not name.endswith(".parquet")}
        return Checksums(download=content.get("zip"), prepared=prepared)
    except (yaml.YAMLError, AttributeError, ValueError) as error:
        raise BadCompetition(f"{path} is not of the form zip: MD5, public: {{name: MD5}}, private: ...") from error
    except UserError as error:
        raise BadCompetition(str(error)) from error
