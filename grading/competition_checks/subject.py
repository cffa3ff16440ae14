"""The subject of a competition's checks: its prepared dataset, and the grader's responses to hostile submissions.

For each hostile submission, a grader must return a score or raise `InvalidSubmission`, never another exception. The
validity must not depend on the answers: agents may call the validation service thousands of times, and could learn
something about the answers each time. Each submission is read once for the two checks of the outcome.
"""

from __future__ import annotations

import contextlib
import copy
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import line_of
from common.units import counted, data_size
from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.csvfile import table
from grading.competition_checks.hostile import hostile_submissions
from grading.competition_checks.replaced_answers import replaced_answers

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition
    from competitions.editions import Edition

MAX_SAMPLE_BYTES = 32 << 20
"""Maximum size of a sample submission from which hundreds of hostile files are generated."""
MAX_MESSAGE_CHARACTERS = 400
_SECRET = re.compile(r"[\w.+-]{6,}")  # shorter words of an answer may appear in a message by chance


class Skipped(Exception):
    """The check would take too long on this dataset."""


@dataclass
class HostileOutcomes:
    """The problems that hostile submissions show, one line each."""

    grading: list[str] = field(default_factory=list)
    """The grader raises another exception, its message is not one short line or reveals an answer, or later scores
    change."""
    validity: list[str] = field(default_factory=list)
    """The grader responds differently with other answers."""
    raises: str = ""
    """Which exceptions were left out of the problems: all but the first at each place."""
    died: list[str] = field(default_factory=list)
    """Of which submissions a grader in the published format died, so that they are not valid; a line for each place."""
    failure: Exception | None = None
    """The error because of which no other answers could be made."""


@dataclass(frozen=True)
class Subject:
    """A prepared competition under test."""

    competition: Competition
    prepared: Path
    edition: Edition = "v1"
    raised: set[str] = field(default_factory=set)
    """The places of exceptions that an earlier check has shown; see `place_of`."""
    not_covered: dict[str, str] = field(default_factory=dict)
    """By check, what an `ok` of it does not cover; a line."""

    @cached_property
    def manifest(self) -> pd.DataFrame:
        """The prepared files, by part and path."""
        import pandas as pd

        return pd.read_parquet(self.prepared / "manifest.parquet")

    @cached_property
    def answers(self) -> Any:
        """The parsed answers."""
        return self.competition.answers(self.prepared)

    def path(self, role: str) -> Path:
        """The path of the file that the facts name for a role: answers, sample_submission or gold_submission."""
        path: Path = self.prepared / getattr(self.competition.facts.files, role)
        return path

    def file(self, role: str) -> Path:
        """The path of the table with a role. Raises `Skipped` if it is no table."""
        if (path := self.path(role)).suffix == ".jsonl":
            raise Skipped(f"there is no {role.replace('_', ' ')} as a table: {path.name} has JSON lines")
        if role == "gold_submission" and self.edition != "v1" and self.competition.facts.submission:
            return self._plain_gold
        return path

    @cached_property
    def _plain_gold(self) -> Path:
        """The gold submission without columns that the sample submission does not have, which v2 refuses."""
        import pandas as pd

        files = self.competition.facts.files
        paths = (self.prepared / files.gold_submission, self.prepared / files.sample_submission)
        header, columns = (list(pd.read_csv(path, nrows=0).columns) for path in paths)
        names = [files.gold_columns.get(name, name) for name in columns]
        if set(header) == set(columns) or not set(names) <= set(header):
            return paths[0]
        path = Path(self.scratch) / "gold_submission.csv"
        gold = pd.read_csv(paths[0], usecols=names, dtype=str, keep_default_na=False)[names]
        gold.set_axis(columns, axis=1).to_csv(path, index=False)
        return path

    @property
    def scratch(self) -> str:
        """A directory for files of checks, which is removed with the subject."""
        return self._scratch.name

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="mlebench-check-")  # removed with the subject

    @cached_property
    def hostile_outcomes(self) -> HostileOutcomes:
        """The problems in grading hostile submissions, which are graded once for all checks."""
        return _grade_hostile(self)

    def score(self, submission: Path) -> float:
        """The score of a submission."""
        return self.competition.score(submission, self.answers, self.edition)

    def declares(self, oddity: str) -> bool:
        """Whether competition.yaml declares this oddity as intended. Declarations apply to edition v1."""
        return self.edition == "v1" and oddity in self.competition.facts.oddities


def require_small_sample(subject: Subject, *roles: str) -> None:
    """Raises `Skipped` if the sample submission is too large for what is made of its rows; or a file of `roles`."""
    for role in roles or ("sample_submission",):
        size = subject.file(role).stat().st_size
        if size > MAX_SAMPLE_BYTES:
            raise Skipped(f"the {role.replace('_', ' ')} has {data_size(size)}; try it on a smaller download")


def number_of(score: float, whose: str) -> float:
    """The score. Raises `Skipped` if it is NaN, with which nothing can be compared."""
    if math.isnan(score):
        raise Skipped(f"{whose} score NaN: the grader returns no number")
    return score


@dataclass(frozen=True)
class _Response:
    """The outcome of a call, as the validation service would report it."""

    text: str
    place: str | None = None
    """Of an exception that is not meant for the agent, and that `text` is about."""
    value: Any = field(default=None, compare=False)
    """The value that was returned."""
    cause: Exception | None = field(default=None, compare=False)
    """The exception because of which the submission is not valid."""


def _grade_hostile(subject: Subject) -> HostileOutcomes:
    """Grade every hostile submission, and check it with other answers to the same rows."""
    competition, edition, answers = subject.competition, subject.edition, subject.answers
    sample = gold = subject.file("sample_submission").read_bytes()
    with contextlib.suppress(Skipped):
        gold = subject.file("gold_submission").read_bytes()
    # Words of the description, such as the names of classes, are no secret.
    public_text = sample.decode() + competition.describe(edition)
    secrets = set(_SECRET.findall(gold.decode())) - set(_SECRET.findall(public_text))
    outcomes, other_answers, counts = HostileOutcomes(), {}, Counter[str]()
    deaths: dict[str, list[str]] = {}

    def first_at_its_place(name: str, response: _Response) -> list[str]:
        """The exception as a problem, if none was raised at its place before."""
        if response.place is None:
            return []
        counts[response.place] += 1
        return (
            [f"{name}: {response.text}"] if counts[response.place] == 1 and response.place not in subject.raised else []
        )

    try:
        if not hasattr(answers, "columns"):
            raise Skipped("answers that are no table cannot be replaced by others")
        other_answers = dict(replaced_answers(answers, *table(sample), competition.facts.public_answers))
    except Exception as error:  # the check of validity raises it
        outcomes.failure = error
    checked_apart = hasattr(competition.module("grade"), "check")
    before = _scores(subject)
    with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder) / "submission.csv"
        for name, content in chain([("missing", b"")], hostile_submissions(sample, gold)):
            if name != "missing":
                path.write_bytes(content)
            response = read = _respond(competition.read_submission, path, edition)
            if read.value is not None:
                # Scoring may change its argument.
                scored = copy.deepcopy(read.value) if checked_apart else read.value
                response = _respond(competition.score_table, scored, answers, edition)
                if competition.published_format and response.cause is not None:
                    deaths.setdefault(place_of(response.cause), []).append(
                        f"{name!r}: {' '.join(str(response.cause).split())[:120]}"
                    )
            outcomes.grading += first_at_its_place(name, response)
            outcomes.grading += [f"{name}: {problem}" for problem in _problems(response, secrets, content)]
            if read.value is not None and checked_apart:
                response = _respond(competition.check_table, read.value, answers, edition)
                outcomes.validity += first_at_its_place(name, response)
            for description, replaced in other_answers.items() if read.value is not None else ():
                other_response = _respond(competition.check_table, read.value, replaced, edition)
                if other_response != response and (response.place is None or other_response.place != response.place):
                    outcomes.validity.append(
                        f"{name}: {response.text!r} with the answers, {other_response.text!r} with {description}"
                    )
    changed = [
        f"the {role} scored {old} before the hostile submissions, and {new} after them"
        for (role, old), new in zip(before.items(), _scores(subject).values(), strict=True)
        if old != new
    ]
    outcomes.died = [
        f"the grader dies of {counted(len(texts), 'submission')}: {place}, first of {texts[0]}"
        for place, texts in sorted(deaths.items(), key=lambda item: -len(item[1]))
    ]
    outcomes.raises = ", ".join(f"{count} times {place}" for place, count in counts.items())
    outcomes.grading[:0] = changed  # the worst first, because only a few are shown
    return outcomes


def _respond(function: Callable[..., Any], *arguments: Any) -> _Response:
    try:
        return _Response("valid", value=function(*arguments))
    except InvalidSubmission as error:
        cause = error.__cause__
        if not isinstance(cause, Exception) or isinstance(cause, InvalidSubmission):
            cause = None
        return _Response(str(error), cause=cause)
    except Exception as error:  # the check reports such bugs
        return _Response(shown(error, 120), place_of(error))


def place_of(error: Exception) -> str:
    """The type of an exception, and where the competition's code raised it: the same place is shown once."""
    line = line_of(error)
    return f"{type(error).__name__} in {line}" if line else f"{type(error).__name__}: {error}"


def shown(error: Exception, characters: int) -> str:
    """An exception as a problem, with that many characters of its text, and where the competition's code raised it."""
    line = line_of(error)
    text = f"raises {type(error).__name__}: {' '.join(str(error).split())[:characters]}"
    return f"{text} ({line})" if line else text


def _scores(subject: Subject) -> dict[str, str]:
    """The scores of gold and sample submission with the answers in memory, as texts that can be compared."""
    scores = {}
    for role in ("gold_submission", "sample_submission"):
        try:
            scores[role.replace("_", " ")] = repr(subject.score(subject.file(role)))
        except Exception as error:  # other checks report it, if it is an error
            scores[role.replace("_", " ")] = f"no score ({type(error).__name__})"
    return scores


def _problems(response: _Response, secrets: set[str], content: bytes) -> Iterator[str]:
    """The problems of this response to a submission with this content."""
    if response.place is not None:
        return
    if not response.text.strip() or "\n" in response.text or "\r" in response.text:
        yield f"the message must be one line, not {response.text[:80]!r}"
    if len(response.text) > MAX_MESSAGE_CHARACTERS:
        yield f"the message has {len(response.text)} characters"
    for word in set(_SECRET.findall(response.text)) & secrets:
        if word.encode() not in content:
            yield f"the message reveals {word!r} from the answers"
