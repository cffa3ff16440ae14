"""Run the checks one after the other, for `mlebench check`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from common.errors import UserError, keep_line, line_of
from competitions.proposals.rewriting import noted
from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.checks import CHECKS, Skipped, Subject
from grading.competition_checks.gates import GATES
from grading.competition_checks.measured import Measured, RunBaseline
from grading.competition_checks.subject import place_of, shown

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition
    from competitions.editions import Edition

_FORMAT = (
    "in this format, preparing is one piece: it has no chunks that workers share or an interruption leaves done",
    "prepare.py writes into a temporary directory, in which the unpacked download and the dataset need room",
    "edition v2 has the same files and scores as v1",
    "the grader may let answers decide what is valid, and show them to agents in its messages (see `validity`)",
)
_FORMAT_ABOUT = {"facts": "Files with a role exist."}
"""What is checked of a folder in the published format, where that is less than of ours."""
_NOT_PROMISED = ("description", "gold", "order", "hostile", "validity")
"""What published graders do not promise either. Answers in public files are an error in every format."""
_MAX_PROBLEMS = 10  # maximum number of problems shown per check
_MAX_FIGURES = 4


@dataclass(frozen=True)
class Result:
    """The result of a check. `about` describes the check."""

    check: str
    about: str
    verdict: Literal["ok", "failed", "skipped", "noted"]
    """"noted": no failure, but for a person to judge: what a gate has found, or what a competition in the published
    format does not promise."""
    problems: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    """What a gate has measured."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What to show: what was found; if nothing was, what holds, with the first figures."""
        if self.verdict != "ok":
            return self.problems or (self.about,)
        shown = [f"{name} {_short(value)}" for name, value in self.figures.items() if math.isfinite(value)]
        about = f"{self.about.removesuffix('.')}: {', '.join(shown[:_MAX_FIGURES])}" if shown else self.about
        return (about, *self.problems)


class Prepare(Protocol):
    """Prepares the download `raw` in the directory `out` and returns the manifest."""

    def __call__(
        self,
        competition_id: str,
        raw: Path,
        out: Path,
        edition: Edition,
        params: Mapping[str, Any] | None,
        folder: Path | None,
    ) -> pd.DataFrame:
        """See `storage.datasets.prepare`."""
        ...


def check_download(
    measured: Measured, raw: Path | None, scratch: Path, prepare_with: Prepare, params: Mapping[str, Any] | None = None
) -> Iterator[Result]:
    """Prepare the dataset, and again below `scratch`, then run every check.

    Args:
        measured: the dataset, which is not there yet.
        raw: the download; None if it is bundled.
        scratch: a directory for what is not kept.
        prepare_with: prepares.
        params: overrides of the competition's parameters.
    """
    competition, edition = measured.subject.competition, measured.subject.edition
    if raw is None:
        raw = scratch / f"{competition.id}.zip"
        bundled = raw
        result = result_of("bundle", "bundle.py makes the download", lambda: _write(bundled, competition.bundle()))
        yield result
        if result.problems:
            yield from _skipped("prepare", "repeat", *CHECKS, *GATES)
            return

    def prepare() -> list[str]:
        prepare_with(competition.id, raw, measured.subject.prepared, edition, params, competition.folder)
        return []

    def repeat() -> list[str]:
        from joblib.externals.loky import get_reusable_executor

        # In another process, where sets of texts have another order.
        other_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        pool = get_reusable_executor(1, env={"PYTHONHASHSEED": other_seed})
        arguments = (competition.id, raw, scratch / "again", edition, params, competition.folder)
        try:
            again = pool.submit(_prepare_apart, prepare_with, *arguments).result()
        except BaseException:  # also Ctrl-C
            pool.shutdown(kill_workers=True)
            raise
        return _differences(measured.subject.manifest, again)

    result = result_of("prepare", "prepare.py prepares the download", prepare)
    yield result
    if result.problems:
        yield from _skipped("repeat", *CHECKS, *GATES)
        return
    yield result_of("repeat", "A second preparation, in another process, gives the same files.", repeat)
    yield from check_prepared(measured)


def check_prepared(measured: Measured) -> Iterator[Result]:
    """Run every check and gate on a prepared dataset without changing it. Raises `UserError` if it is incomplete."""
    subject, competition = measured.subject, measured.subject.competition
    if not (subject.prepared / "manifest.parquet").is_file():
        raise UserError(f"{subject.prepared} is not a prepared dataset: it has no manifest.parquet")
    if competition.published_format:
        yield Result("format", "Folders in the published format promise less.", "noted", _FORMAT)
    if written := noted(competition.folder):
        yield Result("model", "Files that a language model wrote are read by a person.", "noted", (written,))
    for name, check in CHECKS.items():
        about = _FORMAT_ABOUT.get(name) if competition.published_format else None
        result = result_of(name, about or first_line(check), lambda check=check: check(subject), subject.raised)  # type: ignore[misc]
        if competition.published_format and name in _NOT_PROMISED and result.verdict == "failed":
            result = replace(result, verdict="noted")
        yield _with_coverage(result, subject)
    for name in GATES:
        yield pass_gate(name, measured)


def measured_of(
    competition: Competition, prepared: Path, edition: Edition, run_baseline: RunBaseline | None = None
) -> Measured:
    """A dataset, of which nothing is measured yet."""
    prepared = prepared.resolve()  # the baseline agent runs in another directory
    return Measured(Subject(competition, prepared, edition), run_baseline)


def pass_gate(name: str, measured: Measured) -> Result:
    """The result of a gate. What a good competition may have as well is no failure."""
    gate = GATES[name]
    raised = measured.subject.raised
    result = result_of(name, first_line(gate.check), lambda: gate.check(measured), raised)
    if result.verdict == "failed" and gate.reason and name in measured.figures:  # without them, it raised an exception
        result = replace(result, verdict="noted", problems=(*result.problems, f"why this may be fine: {gate.reason}"))
    return replace(_with_coverage(result, measured.subject), figures=measured.figures.get(name, {}))


def _with_coverage(result: Result, subject: Subject) -> Result:
    """The result of a check, with what an `ok` of it does not cover."""
    line = subject.not_covered.get(result.check)
    return replace(result, problems=(line,)) if line and result.verdict == "ok" else result


def result_of(name: str, about: str, check: Callable[[], list[str]], raised: set[str] | None = None) -> Result:
    """The result of a check. An exception at one of the places in `raised` was shown before; other ones are added."""
    raised = set() if raised is None else raised
    try:
        problems = check()
    except Skipped as reason:
        return Result(name, about, "skipped", (str(reason),))
    except (UserError, InvalidSubmission) as error:
        line = line_of(error)
        problems = [f"{error} ({line})" if line else str(error)]
    except Exception as error:  # an exception in the competition's code is a problem as well
        place = place_of(error)
        if place in raised:
            return Result(name, about, "skipped", (f"raises the same {place}",))
        raised.add(place)
        problems = [shown(error, 200)]
    if len(problems) > _MAX_PROBLEMS:
        problems = [*problems[:_MAX_PROBLEMS], f"and {len(problems) - _MAX_PROBLEMS} more"]
    return Result(name, about, "failed" if problems else "ok", tuple(problems))


def _prepare_apart(prepare_with: Prepare, *arguments: Any) -> pd.DataFrame:
    try:
        return prepare_with(*arguments)
    except Exception as error:
        keep_line(error)
        raise


def _skipped(*names: str) -> Iterator[Result]:
    for name in names:
        yield Result(name, "needs a prepared dataset", "skipped")


def _differences(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    columns = ["part", "path", "hash"]
    merged = first[columns].merge(second[columns], how="outer", indicator=True)
    paths = merged[merged["_merge"] != "both"]
    return [f"{part}/{path} differs" for part, path in sorted({*zip(paths["part"], paths["path"], strict=True)})]


def _short(value: float) -> str:
    """A figure with four digits, whole numbers with all."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def first_line(check: Callable[..., Any]) -> str:
    """What a check says of itself: the first line of its documentation."""
    return (check.__doc__ or "").splitlines()[0]


def _write(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return []
