"""The public and the private part of each test set: `python -m benchmarks.parts` prints the table of docs/feedback.md.

Rows and units of the real test sets are those of `real_rows.json`, where they are known. Standard errors come from the
miniatures, whose data are invented: a submission with the right answers for half of the units, and the sample
submission's for the others, is scored on random halves of the miniature's test set. Its standard error is converted to
the number of units of a part, and shows the order of magnitude.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from competitions import registry
from grading.workers.cutting import Uncuttable, cutter
from grading.workers.halves import MIN_UNITS, Halves, score_halves
from grading.workers.parts import SHARE, public_units

_REAL = Path(__file__).with_name("real_rows.json")
HEAD = "| competition | units | rows | public | private | error, public | error, private | can be divided |"


def half_right(sample: pd.DataFrame, gold: pd.DataFrame, answers: Any, how: Any) -> pd.DataFrame:
    """The right answers for half of the units, the sample submission for the others. Raises `Uncuttable`."""
    first, second = cutter(gold, answers, how), cutter(sample, answers, how)
    right = public_units(first.names, "half right", 0.5)
    return pd.concat([first.of(right)[0].reindex(columns=sample.columns), second.of(~right)[0]], ignore_index=True)


def noise_of(subject: Any) -> tuple[float, str, str | None]:
    """Standard deviation of the score of one unit, a mark if that is of the sample submission, or why there is none."""
    competition, facts = subject.competition, subject.competition.facts
    sample, gold = (
        competition.read_submission(subject.path / path)
        for path in (facts.files.sample_submission, facts.files.gold_submission)
    )
    gold = gold.rename(columns={name: column for column, name in facts.files.gold_columns.items()})
    found = Halves()
    for mark in ("", " *"):
        try:
            table = sample if mark else half_right(sample, gold, subject.answers, facts.resampling)
            whole = competition.score_table(table.copy(), competition.answers(subject.path))
        except Uncuttable as error:
            return math.nan, mark, str(error)
        except Exception:  # this mixture is no valid submission here
            continue
        found = score_halves(competition.score_table, table, subject.answers, facts.resampling, whole=whole)
        if len(found.scores) > 1 and (deviation := statistics.stdev(found.scores)) > 0:
            return deviation * math.sqrt(found.drawn * found.units / (found.units - found.drawn)), mark, None
    return math.nan, "", found.message


def row(competition_id: str, deviation: float, mark: str, reason: str | None, real: dict[str, Any]) -> str:
    """The line of a competition."""
    how = registry.get(competition_id).facts.resampling
    rows = real.get("answers", real["rows"])
    units = real.get("units") if how is not None and (how.column or how.pattern or how.unknown) else rows
    cells = [competition_id, _count(units), _count(rows)]
    if how is not None and how.unknown:
        divided = f"no: {how.unknown}"
    elif reason and ("column of ids" in reason or "not a function" in reason):
        divided = f"no: {reason}"
    elif units is None:
        divided = "known when it is prepared"
    elif min(sizes := (round(SHARE * units), units - round(SHARE * units))) < MIN_UNITS:
        divided = f"no: {units} {'units are' if units != 1 else 'unit is'} too few"
    else:
        errors = [f"{deviation / math.sqrt(size):.2g}{mark}" if deviation > 0 else "?" for size in sizes]
        return "| " + " | ".join([*cells, *map(_count, sizes), *errors, "yes"]) + " |"
    return "| " + " | ".join([*cells, *["-"] * 4, divided]) + " |"


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def main() -> None:
    """Print the table."""
    from tests.prepared import PreparedCompetitions  # not part of the installed package

    real = json.loads(_REAL.read_text())
    print(HEAD, "|---|" + "---:|" * 6 + "---|", sep="\n")
    with tempfile.TemporaryDirectory(prefix="mlebench-parts-") as root, warnings.catch_warnings(action="ignore"):
        prepared = PreparedCompetitions(Path(root))
        for competition_id in sorted(real, key=str.lower):
            print(row(competition_id, *noise_of(prepared[competition_id]), real[competition_id]), flush=True)


if __name__ == "__main__":
    main()
