"""Grade hostile submissions, each read once for the two checks that look at the outcome.

For each of them a grader must return a score or raise `InvalidSubmission`, never another exception, and whether it is
valid must not depend on the answers: agents may ask the validation service thousands of times, and each question would
tell them a bit of these.
"""

from __future__ import annotations

import copy
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from competitions.scoring.errors import InvalidSubmission
from grading.selfcheck.csvfile import table, write_anew
from grading.selfcheck.hostile import hostile_submissions
from grading.selfcheck.others import replaced_answers

if TYPE_CHECKING:
    from grading.selfcheck.subject import Subject

LONGEST_MESSAGE = 400
_SECRET = re.compile(r"[\w.+-]{6,}")  # shorter words of an answer may appear in a message by chance


@dataclass
class Trials:
    """The problems that hostile submissions show, one line each."""

    grading: list[str] = field(default_factory=list)
    """The grader raises something else, its message is not one short line or tells an answer, later scores change."""
    validity: list[str] = field(default_factory=list)
    """With other answers, it says something else."""
    failure: Exception | None = None
    """Why no other answers could be made."""


@dataclass(frozen=True)
class _Said:
    """The outcome of a call, as the validation service would tell it."""

    text: str
    raised: bool = False
    """Whether `text` is about an exception that is not meant for the agent."""
    value: Any = field(default=None, compare=False)
    """What was returned."""


def try_hostile(subject: Subject) -> Trials:
    """Grade every hostile submission, and check it with other answers to the same rows."""
    competition, edition, answers = subject.competition, subject.edition, subject.answers
    sample, gold = (subject.file(role).read_bytes() for role in ("sample_submission", "gold_submission"))
    # What the description says, such as the names of classes, is no secret.
    known = sample.decode() + competition.describe(edition)
    secrets = set(_SECRET.findall(gold.decode())) - set(_SECRET.findall(known))
    found, others = Trials(), {}
    try:
        others = dict(replaced_answers(answers, *table(sample), competition.facts.public_answers))
    except Exception as error:  # the check of validity raises it
        found.failure = error
    checked_apart = hasattr(competition.module("grade"), "check")
    before = _scores(subject)
    with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder) / "submission.csv"
        for name, content in chain([("missing", b"")], hostile_submissions(sample, gold)):
            if name != "missing":
                write_anew(path, content)
            said = read = _said(competition.read_submission, path, answers, edition)
            if read.value is not None:
                # Scoring may change what it is given.
                scored = copy.deepcopy(read.value) if checked_apart else read.value
                said = _said(competition.score_table, scored, answers, edition)
            found.grading += [f"{name}: {problem}" for problem in _problems(said, secrets, content)]
            if read.value is not None and checked_apart:
                said = _said(competition.check_table, read.value, answers, edition)
            if said.raised:
                found.validity.append(f"{name}: {said.text}")
            for how, replaced in others.items() if read.value is not None else ():
                other = _said(competition.check_table, read.value, replaced, edition)
                if other != said:
                    found.validity.append(f"{name}: {said.text!r} with the answers, {other.text!r} with {how}")
    changed = [
        f"the {role} scored {old} before the hostile submissions, and {new} after them"
        for (role, old), new in zip(before.items(), _scores(subject).values(), strict=True)
        if old != new
    ]
    found.grading[:0] = changed  # the worst first, because only a few are shown
    return found


def _said(ask: Callable[..., Any], *arguments: Any) -> _Said:
    try:
        return _Said("valid", value=ask(*arguments))
    except InvalidSubmission as error:
        return _Said(str(error))
    except Exception as error:  # such bugs are looked for
        return _Said(f"raises {type(error).__name__}: {' '.join(str(error).split())[:120]}", raised=True)


def _scores(subject: Subject) -> dict[str, str]:
    """The scores of gold and sample submission with the answers in memory, as texts that can be compared."""
    found = {}
    for role in ("gold_submission", "sample_submission"):
        try:
            found[role.replace("_", " ")] = repr(subject.score(subject.file(role)))
        except Exception as error:  # other checks report it
            found[role.replace("_", " ")] = f"no score ({type(error).__name__})"
    return found


def _problems(said: _Said, secrets: set[str], content: bytes) -> Iterator[str]:
    """What is wrong with this answer to a submission with this content."""
    if said.raised:
        yield said.text
        return
    if not said.text.strip() or "\n" in said.text or "\r" in said.text:
        yield f"the message must be one line, not {said.text[:80]!r}"
    if len(said.text) > LONGEST_MESSAGE:
        yield f"the message has {len(said.text)} characters"
    for word in set(_SECRET.findall(said.text)) & secrets:
        if word.encode() not in content:
            yield f"the message reveals {word!r} from the answers"
