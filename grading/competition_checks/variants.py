"""Check a small variant of a competition against the dataset that it is made of, for `mlebench check --variants`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from competitions import registry
from competitions.scoring.errors import InvalidSubmission
from competitions.variant import VariantName
from grading.competition_checks.checks import CHECKS, Skipped, Subject
from grading.competition_checks.csvfile import table
from grading.competition_checks.run import Prepare, Result, first_line, result_of
from grading.competition_checks.submissions import mixture, rows_of, score_rows

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

ROWS = 40
"""Units of train of the variant that is checked: few, so that also a miniature is cut."""
_CHECKS = ("sample", "gold", "order", "secrecy", "public")
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of rows that are as in the sample submission and not right
_FAR_APART = 0.5  # shares from which the better submission must score better on the variant as well


def check_variant(
    competition: Competition, prepared: Path, scratch: Path, edition: Edition, prepare_with: Prepare
) -> Iterator[Result]:
    """Derive a variant of a prepared dataset below `scratch`, and check it.

    A competition without variants is no failure: the first result says why it has none.
    """
    variant = registry.get(str(VariantName(competition.id, ROWS, 0)))
    whole = Subject(competition, prepared, edition)
    small: list[Subject] = []

    def derive() -> list[str]:
        prepare_with(variant.id, prepared, scratch, edition, None, None)
        small.append(Subject(variant, scratch, edition))
        return []

    result = result_of("variant", f"{variant.id} can be derived by rule.", derive)
    if not small:
        reason = result.problems[0].rpartition(" has no variants: ")[2]
        is_reason = " has no variants: " in result.problems[0]
        yield Result("variant", result.about, "skipped", (reason,)) if is_reason else result
        return
    yield Result("variant", result.about, "ok", (_summary(scratch),))
    for name in _CHECKS:
        check = CHECKS[name]
        yield result_of(name, first_line(check), lambda check=check: check(small[0]))  # type: ignore[misc]
    yield result_of("form", "Files and columns are those of the competition.", lambda: form(whole, small[0]))
    yield result_of(
        "ranking", "The better of two submissions is the better one here too.", lambda: ranking(whole, small[0])
    )


def _summary(prepared: Path) -> str:
    summary = json.loads((prepared / "public" / "variant.json").read_text("utf-8"))
    whole = f"; whole: {', '.join(summary['whole'])}" if summary["whole"] else ""
    return f"{summary['train_units']} units of train, {summary['test_units']} of test{whole}"


def form(whole: Subject, small: Subject) -> list[str]:
    """Files and columns are those of the competition, and so are the rows of submissions and answers."""
    paths = [{*zip(subject.manifest["part"], subject.manifest["path"], strict=True)} for subject in (whole, small)]
    problems = [f"{part}/{path} is no file of the competition" for part, path in sorted(paths[1] - paths[0])]
    problems = [problem for problem in problems if "public/variant.json" not in problem]
    for role in ("answers", "sample_submission", "gold_submission"):
        if whole.path(role).suffix != ".csv":
            continue
        (header, rows), (own_header, own_rows) = (table(subject.path(role).read_bytes()) for subject in (whole, small))
        if header != own_header:
            problems.append(f"{role} has the columns {', '.join(own_header)}")
        if not {*map(tuple, own_rows)} <= {*map(tuple, rows)}:
            problems.append(f"{role} has rows that those of the competition are not")
        if not own_rows:
            problems.append(f"{role} has no rows")
    return problems


def ranking(whole: Subject, small: Subject) -> list[str]:
    """Of right answers, more and more of which are replaced by those of the sample submission, the better score better.

    Raises `Skipped` where that cannot be measured.
    """
    scores = [_scores(subject) for subject in (whole, small)]
    problems = []
    for first, second in itertools.combinations(range(len(_SHARES)), 2):
        if _SHARES[second] - _SHARES[first] < _FAR_APART:
            continue
        difference, own_difference = (each[first] - each[second] for each in scores)
        if difference * own_difference < 0:
            problems.append(
                f"with {_SHARES[first]:.0%} and {_SHARES[second]:.0%} of the rows wrong, the scores are "
                f"{scores[1][first]:.5g} and {scores[1][second]:.5g}, of the competition {scores[0][first]:.5g} and "
                f"{scores[0][second]:.5g}"
            )
    if all(each[0] == each[-1] for each in scores):
        raise Skipped("the sample submission scores like the right answers")
    return problems


def _scores(subject: Subject) -> list[float]:
    """The score of right answers with each share of wrong rows."""
    rows = rows_of(subject)
    try:
        return [score_rows(subject, rows.header, mixture(rows, share)) for share in _SHARES]
    except InvalidSubmission as error:
        raise Skipped(f"a mixture of right answers and sample submission is not valid: {error}") from error
